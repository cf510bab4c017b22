import BackupKit
import Testing

@Test func printable_escapesWhatATerminalWouldObey() {
    #expect(printable("a\u{1B}[31mb\nc\u{202E}") == "a\\u{1b}[31mb\\u{a}c\\u{202e}")
    #expect(printable("Ænima é") == "Ænima é")
}
