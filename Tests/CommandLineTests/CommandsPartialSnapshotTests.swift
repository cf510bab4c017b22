import TestSupport
import Testing

/// A snapshot of some kinds only does not pass for the whole library.
@Test func aSnapshotOfSomeKinds_isPartial_andPushesNoWholeOneOut() throws {
    let bench = try Workbench()
    try bench.importSamples()
    try bench.write("pw", "secret\n")
    try bench.shell(
        "chmod 600 pw; export BACKUP_TOOL_PASSWORD_FILE=pw; $T vault init --vault v; $T vault backup --vault v")
    try bench.shell("BACKUP_TOOL_PASSWORD_FILE=pw $T export -o vault:v --only publications")
    let vault = ["--vault", "v", "--password-file", "pw"]
    #expect(try bench.tool(words: ["vault", "snapshots"] + vault, exit: 0).stdout.contains("partial"))
    let restored = try bench.tool(
        words: ["restore", "vault:v", "--create", "--store", "n.db", "--password-file", "pw"], exit: 3)
    #expect(restored.stderr.contains("tagged as partial"), "\(restored.stderr)")
    try bench.tool(words: ["vault", "forget", "--keep-last", "1", "--prune"] + vault, exit: 0)
    let kept = try bench.shell(
        "BACKUP_TOOL_PASSWORD_FILE=pw $T vault snapshots --vault v --json | grep -o '\"short_id\"' | wc -l")
    #expect(kept.hasPrefix("2"), "\(kept)")
}

@Test(arguments: ["tar.gz", "tar.xz", "zip", "tar.zst"])
func everyFormatTakesEveryLevel(_ format: String) throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@article{k, title={T}}\n")
    try bench.tool(exit: 0, "import", "--create", "a.bib")
    try bench.tool(exit: 0, "export", "-o", "out.\(format)", "--level", "19")
    try bench.tool(exit: 0, "verify", "out.\(format)", "--level", "deep")
}
