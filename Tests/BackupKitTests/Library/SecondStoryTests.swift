import TestSupport
import Testing

@testable import BackupKit

/// A backup says the same thing in several places. Whoever changes one of them, checksums included, is found out.
@Suite struct SecondStoryTests {
    /// An export of two publications, a tombstone, a setting and a file.
    private func withExport(_ body: (String) throws -> Void) throws {
        try withStore { test in
            let store = test.store
            try store.take(
                record("p", "{\"citeKey\":\"a\",\"title\":\"A\"}", type: RecordType.publication),
                record("n", "{\"citeKey\":\"a\",\"note\":\"N\"}", type: RecordType.note),
                record("e", "{\"time\":\"2026-01-01T00:00Z\",\"type\":\"x\"}", type: RecordType.event), record("i"),
                record("gone", deleted: true))
            _ = try store.batch(kind: "import", source: "test") {
                try place("Attachments/a.pdf", "text", in: store)
                try place("Attachments/b.pdf", "more", in: store)
                return (try store.putSetting("k", "1", at: time(0)), summary: "")
            }
            let path = "\(test.folder)/export"
            _ = try Exporter.export(store, to: path, ExportOptions(form: .layout(.directory)))
            let whole = try Verifier.verify(path, level: .deep)
            #expect(whole.isOK && !whole.needsAttention, "\(whole.findings)")
            try body(path)
        }
    }

    /// Puts another manifest in place, and checksums that fit it.
    private func rewrite(_ path: String, _ change: (inout Manifest) -> Void) throws {
        var manifest = try readFile("\(path)/manifest.json").withUnsafeBytes { try Manifest(parsing: $0) }
        change(&manifest)
        let text = manifest.text()
        try writeFile("\(path)/manifest.json", String(decoding: text, as: UTF8.self))
        var digests = manifest.files.mapValues(\.digest)
        digests["manifest.json"] = text.withUnsafeBytes { SHA256Digest.of($0) }
        let sums = ChecksumFile.text(digests.sorted { precedesBytewise($0.key, $1.key) })
        try writeFile("\(path)/SHA256SUMS", String(decoding: sums, as: UTF8.self))
    }

    private func damage(_ path: String, _ level: VerifyResult.Level = .full) throws -> [String] {
        try Verifier.verify(path, level: level).findings.filter { $0.severity == .damage }.map(\.message)
    }

    @Test func aContentDigestThatIsAnotherIsFound() throws {
        try withExport { path in
            try rewrite(path) { $0.contentDigest = .of("another") }
            let found = try damage(path)
            #expect(found.count == 1 && found[0].contains("the content digest is"), "\(found)")
        }
    }

    /// Fewer than counted and more than counted are both wrong.
    @Test(arguments: ["publications", "notes", "events", "records", "tombstones", "attachments"], [-1, 1])
    func aCountThatIsAnotherIsFound(_ what: String, _ more: Int) throws {
        try withExport { path in
            try rewrite(path) { $0.counts[what, default: 0] += more }
            let found = try damage(path)
            #expect(found.count == 1 && found[0].contains(" \(what) instead of "), "\(found)")
        }
    }

    /// The manifest and `SHA256SUMS` are compared to the byte.
    @Test func linesOfTheChecksumsThatAreTwiceOrOutOfOrderOrNoneAreDamage() throws {
        try withExport { path in
            let whole = String(decoding: try readFile("\(path)/SHA256SUMS"), as: UTF8.self)
            let lines = whole.split(separator: "\n").map(String.init)
            let other = SHA256Digest.of("another").hex + lines[0].dropFirst(64)
            let stories: [(String, [String])] = [
                ("twice", lines + [lines[0]]), ("twice, the first one wrong", [other] + lines),
                ("twice, the last one wrong", lines + [other]), ("out of order", lines.reversed()),
                ("no checksum", lines + ["a line of text"]), ("too short", lines + [String(lines[0].dropFirst())]),
                ("missing", Array(lines.dropFirst())),
            ]
            for (name, changed) in stories {
                try writeFile("\(path)/SHA256SUMS", changed.joined(separator: "\n") + "\n")
                #expect(try damage(path) != [], "\(name)")
            }
            try writeFile("\(path)/SHA256SUMS", whole)
            #expect(try damage(path) == [])
        }
    }

    @Test func aManifestThatListsAPathTwiceIsNone() throws {
        try withExport { path in
            let text = String(decoding: try readFile("\(path)/manifest.json"), as: UTF8.self)
            let line = try #require(text.split(separator: "\n").first { $0.contains("Attachments/a.pdf") })
            let twice = text.replacing(line, with: "\(line)\n\(line)")
            #expect(twice != text)
            let error = #expect(throws: BackupError.self) {
                try Array(twice.utf8).withUnsafeBytes { _ = try Manifest(parsing: $0) }
            }
            #expect(error?.code == .damaged && error?.message.contains("twice") == true)
        }
    }

    @Test func aManifestOfANewerFormatIsRefused_andSaysWhichItIs() throws {
        try withExport { path in
            let text = String(decoding: try readFile("\(path)/manifest.json"), as: UTF8.self)
            let newer = text.replacing("\"formatVersion\": 1,", with: "\"formatVersion\": 2,")
            #expect(newer != text)
            let error = #expect(throws: BackupError.self) {
                try Array(newer.utf8).withUnsafeBytes { _ = try Manifest(parsing: $0) }
            }
            #expect(error?.code == .refused && error?.message.contains("format version 2") == true)
        }
    }

    /// sha256sum doubles the backslashes of such a name, and begins its line with one.
    @Test func namesWithABackslashAreWrittenAsSha256sumReadsThem() throws {
        let names = ["back\\slash", "\\", "not\\new", "plain"]
        try withTemporaryFolder { folder in
            for name in names { try writeFile("\(folder)/\(name)", name) }
            let text = ChecksumFile.text(names.map { (key: $0, value: SHA256Digest.of($0)) })
            try writeFile("\(folder)/\(ChecksumFile.fileName)", String(decoding: text, as: UTF8.self))
            let judge = try runProcess(["sha256sum", "--strict", "-c", ChecksumFile.fileName], in: folder)
            #expect(judge.status == 0, "\(judge.stderr)")
            let theirs = try runProcess(["sha256sum"] + names, in: folder)
            #expect(theirs.stdout == String(decoding: text, as: UTF8.self))
            #expect(ChecksumFile.parse(text).map { Set($0.keys) } == Set(names))
        }
    }

    /// A list of checksums that is not sorted answers all the same, and one with a line that is none answers nothing.
    @Test func aListOfChecksumsIsSoughtInWhateverItsOrder() {
        let names = ["b", "a", "d/é", "c", "back\\slash", "d"]
        let lines = names.map { name in
            String(decoding: ChecksumFile.text([(key: name, value: SHA256Digest.of(name))]), as: UTF8.self)
        }
        let list = ChecksumList(Array(lines.joined().utf8))
        for name in names { #expect(list[name] == .of(name), "\(name)") }
        #expect(list["e"] == nil && !list.isEmpty)
        let broken = ChecksumList(Array((lines.joined() + "no line\n").utf8))
        #expect(broken.isEmpty && broken["a"] == nil)
        #expect(ChecksumFile.parse(Array((lines.joined() + "no line\n").utf8)) == nil)
    }
}
