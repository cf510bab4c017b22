import TestSupport
import Testing

/// A file that cannot be read is named once, with what to do about it.
@Suite struct CommandsRemedyTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let name: String
        let text: String
        let problem: String
        let remedy: String
        var testDescription: String { name }
    }

    @Test(arguments: [
        Case(name: "notes.json", text: "", problem: "is empty", remedy: "look whether it was cut off"),
        Case(name: "settings.json", text: " \n", problem: "is empty", remedy: "look whether it was cut off"),
        Case(name: "a.jsonl", text: "{}\n", problem: "has no 'time'", remedy: "correct these lines"),
        Case(name: "b.jsonl", text: "word\n", problem: "is not JSON", remedy: "correct these lines"),
        Case(name: "a.bib", text: "@misc{k, title={x\n", problem: "is never closed", remedy: "correct the file there"),
    ])
    func whatCannotBeRead_isNamedOnce_withWhatToDo(file: Case) throws {
        let bench = try Workbench()
        try bench.write(file.name, file.text)
        let said = try bench.tool(exit: 3, "import", "--create", file.name).stderr
        let lines = said.split(separator: "\n").filter { $0.contains(file.name) && !$0.hasPrefix(" ") }
        #expect(lines.count == 1 && lines[0].contains(file.problem) && said.contains(file.remedy), "\(said)")
    }

    @Test func aSchemaMayBeginWithTheMarkOfUTF8() throws {
        let bench = try Workbench()
        let entities = #"{"A": {"attributes": {"b": {"type": "string"}}}}"#
        let schema = #"{"format": "backup-tool-schema", "formatVersion": 1, "version": 100, "entities": \#(entities)}"#
        try bench.write("plain.json", schema)
        try bench.write("marked.json", "\u{FEFF}\(schema)")
        let plain = try bench.tool("schema", "check", "plain.json")
        let marked = try bench.tool("schema", "check", "marked.json")
        #expect(marked.status == plain.status)
        #expect(marked.stderr.replacing("marked", with: "plain") == plain.stderr)
    }
}
