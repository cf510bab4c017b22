import TestSupport
import Testing

/// What BibTeX reads as one entry is one, however its words are set.
@Test(arguments: [
    ("@Article{k, title={A  b}, note={x y}}", "@article{k, Title={A b},\n  note = {x\n\ty}}", 0),
    ("@MISC{k, title=\"A b\"}", "@misc{k, title={ A b }}", 0),
    ("@misc{k, title={A b}}\r", "@misc{k, title={A\r\nb}}", 0),
    ("@misc{k, title={A b}}", "@misc{k, title={Ab}}", 1), ("@misc{k, title={A b}}", "@misc{k, title={a b}}", 1),
    ("@misc{k, title={A}}", "@book{k, title={A}}", 1),
])
func twinsInOtherWords_areNoConflict(_ first: String, _ second: String, conflicts: Int64) throws {
    let bench = try Workbench()
    try bench.write("a.bib", "\(first)\n\(second)\n")
    let told = try bench.json(exit: conflicts == 0 ? 0 : 3, "import", "a.bib")
    #expect(told["conflicts"]?.integer == conflicts)
    // Each stands there as it was written.
    try bench.tool(exit: 0, "export", "-o", "out")
    let text = Array(try bench.text("out/library.bib").utf8)
    for entry in [first, second] {
        #expect(contains(text, Array(entry.utf8).filter { $0 != 13 }))
    }
}

private func contains(_ text: [UInt8], _ part: [UInt8]) -> Bool {
    let text = text.filter { $0 != 13 }
    return text.indices.contains { text[$0...].starts(with: part) }
}
