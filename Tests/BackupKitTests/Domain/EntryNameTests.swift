import BackupKit
import Testing

@Suite struct EntryNameTests {
    static let long = String(repeating: "x", count: 255)

    @Test(arguments: [
        "a", "a/b", ".hidden", " leading and trailing ", "trailing dot.", "-rf", "a\\b", "naïve/e\u{301}.pdf",
        "😀/👨‍👩‍👧.txt",
        "\u{202E}gpj.exe", "a:b", "C:notes.pdf", "...", "..x/x..", long, "CON", "a\"b'c$d`e",
        Array(repeating: "d", count: 64).joined(separator: "/"),
    ])
    func namesThatPeopleGiveToFilesAreAllowed(_ name: String) throws { try EntryName.check(name) }

    @Test(arguments: [
        "", "/abs", "//x", "a//b", "a/", ".", "./a", "a/./b", "..", "../x", "a/../b", "a/..", "\\abs",
        "\\\\host\\share",
        "..\\x", "a\\..\\b", "a/..\\b", "C:\\x", "c:/x", "Z:", "a\0b", "a\nb", "a\u{1B}[31m", "a\u{7F}", "a\u{85}b",
        long + "x",
        "a/" + long + "y/b", Array(repeating: "d", count: 65).joined(separator: "/"),
        Array(repeating: long, count: 17).joined(separator: "/"),
    ])
    func namesThatLeadElsewhereOrHideSomethingAreRefused(_ name: String) throws {
        let error = try #require(throws: BackupError.self) { try EntryName.check(name) }
        #expect(error.code == .refused)
        #expect(error.subject == name)
    }

    @Test(arguments: [
        ["a", "a"], ["File", "file"], ["é", "e\u{301}"], ["É/x", "e\u{301}/X"], ["x", "x/y"], ["x/y", "x"],
        ["x/y/z", "X"],
        ["straße", "STRASSE"], ["\u{212A}elvin", "kelvin"], ["ς", "σ"], ["a/b", "a/c", "A/B"],
    ])
    func namesThatFallTogetherOnSomeFileSystemAreRefused(_ names: [String]) throws {
        var set = EntryNameSet()
        for name in names.dropLast() { try set.insert(name) }
        let last = try #require(names.last)
        let error = try #require(throws: BackupError.self) { try set.insert(last) }
        #expect(error.code == .refused)
        #expect(error.subject == last)
    }

    @Test func namesThatDifferAreKeptApart() throws {
        var set = EntryNameSet()
        for name in ["a", "b/a", "b/b", "ab", "a b", "c/d/e", "c/d/f", "c/dd", "é", "e", "b/é", "x.txt", "x"] {
            try set.insert(name)
        }
        for number in 0..<5_000 { try set.insert("folder \(number % 7)/file \(number)") }
        try set.insert("b", isFolder: true)
        #expect(throws: BackupError.self) { try set.insert("x", isFolder: true) }
        #expect(throws: BackupError.self) { try set.insert("C") }
    }

    @Test func aNameThatIsRefusedIsNotTaken() throws {
        var set = EntryNameSet()
        for name in ["file", "folder/a"] { try set.insert(name) }
        for _ in 0..<2 {
            for name in ["file/a", "file/b", "folder", "FOLDER"] {
                #expect(throws: BackupError.self, "\(name)") { try set.insert(name) }
            }
            #expect(throws: BackupError.self) { try set.insert("file", isFolder: true) }
        }
        try set.insert("folder/b")
    }
}
