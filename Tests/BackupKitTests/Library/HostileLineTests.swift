import TestSupport
import Testing

@testable import BackupKit

/// Lines of an event log that are odd in what makes them one record, and in what a record can hold.
@Suite struct HostileLineTests {
    private func line(id: String?, _ rest: String) -> String {
        let id = id.map { "\"id\":\"\($0)\"," } ?? ""
        return "{\(id)\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\",\(rest)}\n"
    }

    private func take(_ lines: [String], into test: TestStore) throws -> IntakeResult {
        try writeFile("\(test.folder)/log.jsonl", lines.joined())
        return try Importer.run(["\(test.folder)/log.jsonl"], into: test.store, ImportOptions())
    }

    /// What is in the store is in an export, passes the deep check, and comes back.
    private func checkBackup(of test: TestStore) throws {
        let path = "\(test.folder)/export"
        let result = try Exporter.export(test.store, to: path, ExportOptions(form: .layout(.directory)))
        #expect(result.warnings.isEmpty, "\(result.warnings)")
        #expect(try Verifier.verify(path, level: .deep).findings.isEmpty)
        let other = try Store.create("\(test.folder)/other.db", clock: test.clock.clock)
        _ = try Restorer.restore(path, into: other, RestoreOptions())
        #expect(try other.contentDigest() == test.store.contentDigest())
        try checkSound(other.path)
    }

    @Test(arguments: [1, 98, 99, 100, 127, 128, 200, 1000, 1100], [true, false])
    func aLineThatIsNestedTooDeep_isRejectedByItself(_ depth: Int, hasID: Bool) throws {
        try withStore { test in
            let nested = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            let result = try take(
                [line(id: hasID ? "a" : nil, "\"x\":\(nested)"), line(id: "b", "\"x\":1")], into: test)
            let isTaken = depth < JSONScanner.maximumDepthOfRecord
            #expect(result.added == (isTaken ? 2 : 1) && result.rejected == (isTaken ? 0 : 1), "\(result)")
            try checkBackup(of: test)
        }
    }

    @Test func idsInTwoFormsOfUnicode_areTwoEvents_inEveryBackup() throws {
        try withStore { test in
            let result = try take(
                ["caf\u{E9}", "cafe\u{301}"].map { line(id: $0, "\"x\":1") }, into: test)
            #expect(result.added == 2)
            try checkBackup(of: test)
        }
    }

    @Test(arguments: ["id", "localId"])
    func anIDThatIsNoText_isRejected(_ key: String) throws {
        try withStore { test in
            let rest = "\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\"}\n"
            let result = try take(
                ["\\ud800", "\\udc00", "a\\ud801b", "\\ud83d\\ude00", "\u{FFFD}"].map {
                    "{\"\(key)\":\"\($0)\",\(rest)"
                },
                into: test)
            #expect(result.added == 2 && result.rejected == 3, "\(result)")
            try checkBackup(of: test)
        }
    }

    /// A combining mark makes one character of a slash, for Swift; for Linux it is a slash.
    @Test(arguments: [
        "../\u{301}x.jpg", "/\u{301}etc/x.jpg", "a/..\u{2F}\u{20D7}x.jpg", "..\\\u{301}x.jpg", "C:/\u{301}x.jpg",
    ])
    func aPathThatLeadsOutsideBeforeACombiningMark_isRejected(_ path: String) throws {
        try withStore { test in
            let result = try take([line(id: "a", "\"photo\":\"\(path.replacing("\\", with: "\\\\"))\"")], into: test)
            #expect(result.added == 0 && result.rejected == 1, "\(result)")
        }
    }

    @Test func aFileWhoseNameBeginsWithACombiningMark_comesBack() throws {
        try withStore { test in
            let name = "in/\u{301}x.jpg"
            try Directory.create("\(test.folder)/in")
            try writeFile("\(test.folder)/\(name)", "its photo")
            #expect(try take([line(id: "a", "\"photo\":\"\(name)\"")], into: test).added == 1)
            #expect(try test.store.asset("Attachments/\(name)") != nil)
            try checkBackup(of: test)
            #expect(
                FilePath.names(name).count == 2 && parent(of: name) == "in" && lastComponent(of: name) == "\u{301}x.jpg"
            )
        }
    }
}
