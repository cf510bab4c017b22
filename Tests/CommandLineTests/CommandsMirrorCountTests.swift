import TestSupport
import Testing

/// A field that a mirrored file has lost: the record is told once, and nothing of it was left out.
@Test func aFieldThatAMirrorTakesAway_isToldOnce() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{k, title={K}, author={A, B}, year={2001}, note={old}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.write("a.bib", "@misc{k, title={K}, author={A, B}, year={2001}}\n")
    let plan = try bench.tool(exit: 0, "import", "--mirror", "--dry-run", "a.bib")
    #expect(plan.stdout.contains("~ k") && !plan.stdout.contains("= k"), "\(plan)")
    let run = try bench.tool(exit: 0, "import", "--mirror", "a.bib")
    #expect(!(run.stdout + run.stderr).contains("protected") && !run.stderr.contains("--overwrite"), "\(run)")
}
