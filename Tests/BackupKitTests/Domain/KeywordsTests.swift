import TestSupport
import Testing

@testable import BackupKit

@Suite struct KeywordsTests {
    @Test(arguments: [
        ("aa, bb", "cc, dd", "aa, bb, cc, dd"), ("aa,bb", "bb,  cc", "aa,bb,cc"),
        ("aa; bb", "cc, dd", "aa; bb; cc; dd"),
        ("aa", "bb;cc", "aa;bb;cc"), ("aa", "bb", "aa, bb"), ("", "aa, bb", "aa, bb"), ("aa, bb", "", "aa, bb"),
        ("{a, b}, c", "c, {a, b}, d", "{a, b}, c, d"), ("aa, bb", "x; {y, z}; u, v", "aa, bb, x, {y, z}, {u, v}"),
        ("\\{a, b\\}, c", "d", "\\{a, b\\}, c, d"), ("a,\n  b", "B, a", "a, b, B"), ("Aa, aa", "AA", "Aa, aa, AA"),
        ("a, b", "b, a", "a, b"), ("a }, b", "c", "a }, b, c"),
    ]) func theUnionKeepsOrderSeparatorAndBraces(_ first: String, _ second: String, _ expected: String) {
        #expect(Keywords.union(first, second) == expected)
    }

    @Test func whatOneSideTookOut_isOut() {
        #expect(Keywords.union("a, b, new", "b, c", base: "a, b, c") == "b, new")
        #expect(Keywords.union("a, b", "a, b, c", base: "a, b") == "a, b, c")
    }

    @Test func aMergeThatAPersonDecides_unitesKeywords_inTheTextToo() throws {
        try withStore { test in
            for (name, words) in [("one", "aa, bb"), ("two", "cc, {d, d}")] {
                let raw = "@article{k, title = {The title \(name)}, keywords = {\(words)}}"
                let fields = Fields.text([
                    Field("citeKey", .string("k")), Field("entryType", .string("article")),
                    Field("title", .string("The title \(name)")), Field("keywords", .string(words)),
                    Field("rawBibTeX", .string(raw)),
                ])
                try test.store.take(record(name, fields, type: RecordType.publication, zone: "Library"))
            }
            _ = try test.store.batch(kind: "import", source: "test") {
                _ = try test.store.noteConflict(kind: "publication", subject: "k", existing: "one", incoming: "two")
                return ((), summary: "")
            }
            let conflict = try #require(try test.store.conflicts().first)
            _ = try ConflictResolver.resolve([conflict.id], with: .merge, in: test.store)
            let kept = try #require(try test.store.all().first { $0.type == RecordType.publication && !$0.isDeleted })
            let fields = try Fields.parse(kept.fields)
            #expect(Fields.string("keywords", in: fields) == "aa, bb, cc, {d, d}")
            #expect(Fields.string("rawBibTeX", in: fields)?.contains("keywords = {aa, bb, cc, {d, d}}") == true)
        }
    }

    @Test func twoDevicesThatEachAddAKeyword_haveBoth() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", "{\"keywords\":\"a, b\"}")
            try devices.syncAll()
            try devices.edit("A", "r", "{\"keywords\":\"a, b, of A\"}")
            try devices.edit("B", "r", "{\"keywords\":\"b, of B\"}")
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == "{\"keywords\":\"b, of B, of A\"}") }
        }
    }

    @Test func anImportSaysWhichKeywordsThereAre() throws {
        let decision = try MergePolicy(now: time(9)).decide(
            existing: record("a", "{\"keywords\":\"a, b\"}", at: 1),
            incoming: record("a", "{\"keywords\":\"a\"}", at: 2))
        guard case .update(let merged, _) = decision else {
            Issue.record("\(decision)")
            return
        }
        #expect(merged.fields == "{\"keywords\":\"a\"}")
    }
}
