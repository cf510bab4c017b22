import TestSupport
import Testing

@testable import BackupKit

/// What a store remembers beside records is in no backup, so it has to be told when a disk has changed it.
@Suite struct OddMemoryTests {
    private static let columns =
        Witness.ofMemory.flatMap { witness in (witness.place + witness.rest).map { "\(witness.table).\($0)" } }
        + ["name", "brought", "since"].map { "imported_file.\($0)" }

    private func remembering(in folder: String) throws -> Store {
        let store = try Store.create("\(folder)/store.db")
        try writeFile("\(folder)/a.bib", "@book{a, title={A}, author={B. C.}, year={1994}}\n")
        _ = try Importer.run(["\(folder)/a.bib"], into: store, ImportOptions())
        try store.write {
            try store.noteListing("L-1", of: RecordID(zone: "Z", name: "a"))
            try store.noteOutlived(record("b").tombstone(at: time(5)))
            try store.markPurged(citeKeys: ["k"])
            try store.noteFileElsewhere(Asset(path: "a.pdf", size: 5, digest: SHA256Digest.of("A")))
            // Each gets its number.
            for name in ["c", "d"] { try store.put(record(name, type: RecordType.conflict), replacing: nil) }
        }
        return store
    }

    private func rows(_ table: String, _ store: Store) throws -> [String] {
        let query = try store.database.prepare("SELECT * FROM \(table)")
        var rows: [String] = []
        while try query.step() { rows.append((0..<5).map { "\(query.bytes(Int32($0)).map(\.self))" }.joined()) }
        return rows.sorted()
    }

    /// Changes a value as a disk does: no trigger sees it.
    private func change(_ column: String, of table: String, _ store: Store) throws {
        let query = try store.database.prepare(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = '\(table)'")
        var triggers: [(name: String, sql: String)] = []
        while try query.step() { triggers.append((query.text(0), query.text(1))) }
        for trigger in triggers { try store.database.execute("DROP TRIGGER \(trigger.name)") }
        let isNumber = ["id", "deleted_at", "size"].contains(column)
        let value =
            isNumber ? "\(column) + 40" : table == "imported_file" && column != "name" ? "x'00'" : "'x' || \(column)"
        try store.database.execute("UPDATE \(table) SET \(column) = \(value)")
        for trigger in triggers { try store.database.execute(trigger.sql) }
    }

    @Test(arguments: columns)
    func whatAStoreRemembers_isNamedWhereItIsDamaged_andPutBack(place: String) throws {
        let (table, column) = try #require(place.split(separator: ".", maxSplits: 1).map(String.init).pair)
        try withTemporaryFolder { folder in
            let store = try remembering(in: folder)
            #expect(try StoreCheck.run(store).isSound)
            let before = try rows(table, store)
            try change(column, of: table, store)
            let found = try StoreCheck.run(store).findings
            #expect(found.contains { $0.subject.hasPrefix(table) && $0.remedy == StoreRemedy.repair }, "\(found)")
            _ = try store.write { try StoreRepair.run(on: store, from: nil, accepts: false) }
            #expect(try StoreCheck.run(store).isSound)
            if table != "imported_file" { #expect(try Set(before).isSubset(of: rows(table, store))) }
        }
    }

    /// The note is what is damaged, and the row says so.
    @Test func aDamagedNote_takesNoSoundRowWithIt() throws {
        try withTemporaryFolder { folder in
            let store = try remembering(in: folder)
            let before = try rows("purge_trace", store)
            try store.database.execute(
                "UPDATE witness SET row = substr(row, 1, 2) || '5E' WHERE place = 'purge_trace'")
            #expect(try !StoreCheck.run(store).isSound)
            _ = try store.write { try StoreRepair.run(on: store, from: nil, accepts: false) }
            #expect(try StoreCheck.run(store).isSound && rows("purge_trace", store) == before)
        }
    }

    @Test func anImportedFileWithoutAPath_isForgotten() throws {
        try withTemporaryFolder { folder in
            let store = try remembering(in: folder)
            try store.database.execute("UPDATE imported_file SET path = CAST(x'2FE161' AS TEXT)")
            #expect(try !StoreCheck.run(store).isSound)
            _ = try store.write { try StoreRepair.run(on: store, from: nil, accepts: false) }
            #expect(try StoreCheck.run(store).isSound && rows("imported_file", store).isEmpty)
        }
    }

    @Test func aDamagedMemoryOfAFile_isNamedByEveryImport() throws {
        try withTemporaryFolder { folder in
            let store = try remembering(in: folder)
            let file = "\(folder)/a.bib"
            #expect(try Importer.run([file], into: store, ImportOptions()).findings.isEmpty)
            try change("brought", of: "imported_file", store)
            try writeFile(file, "@book{b, title={B}, author={B. C.}, year={1994}}\n")
            var mirror = ImportOptions()
            mirror.mirror = true
            for options in [mirror, ImportOptions()] {
                let result = try Importer.run([file], into: store, options)
                #expect(result.needsAttention && result.findings.contains { $0.subject.hasSuffix("a.bib") })
            }
        }
    }
}

extension [String] {
    fileprivate var pair: (String, String)? { count == 2 ? (self[0], self[1]) : nil }
}
