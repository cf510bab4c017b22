import TestSupport
import Testing

@testable import BackupKit

@Suite struct NotesFileTests {
    private func read(_ text: String) throws -> (notes: [Record], problems: [String]) {
        var problems: [String] = []
        let notes = try Array(text.utf8).withUnsafeBytes { bytes in
            try NotesFile.read(bytes, time: time(0)) { problems.append($0.message) }.map(\.note)
        }
        return (notes, problems)
    }

    @Test func aNoteThatIsNone_costsOnlyItself() throws {
        let odd = [
            #"{"citeKey":"k","note":"a","note":"b"}"#, #"{"citeKey":"k"}"#, #"{"note":"a"}"#, "[]", "7", "\"x\"",
            #"{"citeKey":7,"note":"a"}"#, #"{"citeKey":"k","note":null}"#,
        ]
        for text in odd {
            let found = try read("[{\"citeKey\":\"a\",\"note\":\"1\"},\(text),{\"citeKey\":\"b\",\"note\":\"2\"}]")
            #expect(found.notes.count == 2, "\(text)")
            #expect(found.problems.count == 1 && found.problems[0].hasPrefix("note 2 "), "\(text): \(found.problems)")
        }
    }

    /// Half a surrogate pair is no text, but it stood there.
    @Test func aNoteStaysAsItWasWritten() throws {
        let text = #""a \ud800 b \u00e9 \/""#
        let note = try #require(try read("[{\"citeKey\":\"a\",\"note\":\(text), \"more\": {\"x\" : 1}}]").notes.first)
        #expect(note.fields == #"{"citeKey":"a","note":"# + text + #","more":{"x":1}}"#)
        #expect(try NotesFile.text(of: note).contains(text))
    }
}
