import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// Entries that have the key and the title of another work, in files that were imported before.
@Suite struct StrangerEntryTests {
    /// A store, and files that are imported into it as they are written.
    private struct Desk {
        let folder: String
        let store: Store

        @discardableResult
        func take(_ name: String, _ text: String, mirror: Bool = false) throws -> IntakeResult {
            usleep(20_000)
            try writeFile("\(folder)/\(name)", text)
            return try takeAgain(name, mirror: mirror)
        }

        func takeAgain(_ name: String, mirror: Bool) throws -> IntakeResult {
            var options = ImportOptions()
            options.mirror = mirror
            return try Importer.run(["\(folder)/\(name)"], into: store, options)
        }

        /// Of each living publication its key, volume and note.
        func works() throws -> Set<String> {
            Set(
                try store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }.map { record in
                    let fields = try Fields.parse(record.fields)
                    return ["citeKey", "volume", "note"].map { Fields.string($0, in: fields) ?? "-" }
                        .joined(separator: " ")
                })
        }
    }

    private func withDesk(_ body: (Desk) throws -> Void) throws {
        try withTemporaryFolder { folder in
            try body(Desk(folder: folder, store: try Store.create("\(folder)/s.db")))
        }
    }

    private func editorial(_ key: String, volume: Int, _ note: String, _ more: String = "") -> String {
        """
        @article{\(key), author={Zoe Smith}, title={Editorial}, year=2003, journal={Annals of \(volume)},
          volume=\(volume), note={\(note)}\(more)}

        """
    }

    @Test(arguments: ["delete", "rename-incoming", "keep-existing"])
    func anEditedEntry_isNotWrittenOverAStrangerWithItsKey(_ decision: String) throws {
        try withDesk { desk in
            try desk.take("l1.bib", editorial("k1", volume: 6, "six"))
            try desk.take("l2.bib", editorial("k1", volume: 7, "seven"))
            let conflict = try #require(try desk.store.conflicts().first)
            if decision == "delete" {
                let second = try desk.store.all().filter { $0.fields.contains("\"note\":\"seven\"") }
                _ = try desk.store.curate(.delete, [second[0].id.description])
            } else {
                let choice = try #require(ConflictChoice(rawValue: decision))
                _ = try ConflictResolver.resolve([conflict.id], with: choice, in: desk.store)
            }
            try desk.take("l2.bib", editorial("k1", volume: 7, "seven, read"))
            let works = try desk.works()
            let key = decision == "rename-incoming" ? "k1a" : "k1"
            #expect(works.contains("k1 6 six") && works.contains("\(key) 7 seven, read"), "\(works)")
        }
    }

    /// A file goes on to say what it says of the work that it brought, whatever key that has by now.
    @Test(arguments: [ConflictChoice.renameIncoming, .renameExisting], [false, true])
    func anEditOfAnEntryWhoseWorkWasRenamed_reachesThatWork(_ choice: ConflictChoice, mirror: Bool) throws {
        try withDesk { desk in
            func entry(_ number: Int, _ note: String) -> String {
                editorial("k1", volume: number, note, ", doi={10.1234/\(number)}")
            }
            try desk.take("l1.bib", entry(6, "six"))
            try desk.take("l2.bib", entry(7, "seven"))
            let conflict = try #require(try desk.store.conflicts().first)
            _ = try ConflictResolver.resolve([conflict.id], with: choice, in: desk.store)
            let isIncoming = choice == .renameIncoming
            for note in ["read", "read again"] {
                for (file, number) in [("l1.bib", 6), ("l2.bib", 7)] {
                    let result = try desk.take(file, entry(number, note), mirror: mirror)
                    #expect(!result.needsAttention, "\(result.findings)")
                }
                let works = try desk.works()
                #expect(works == ["\(isIncoming ? "k1" : "k1a") 6 \(note)", "\(isIncoming ? "k1a" : "k1") 7 \(note)"])
                #expect(try desk.store.conflicts().isEmpty)
            }
        }
    }

    /// A third file has the work under its old key, with another note. The renamed work gets the note, and the second file
    /// does not take it back.
    @Test func aFileWhoseWorkWasRenamed_writesNotOverTheOneThatHasTheOldKeyNow() throws {
        try withDesk { desk in
            let entry = { (note: String) in self.editorial("k1", volume: 7, note, ", doi={10.1234/7}") }
            try desk.take("l1.bib", editorial("k1", volume: 6, "six", ", doi={10.1234/6}"))
            try desk.take("l2.bib", entry("old"))
            let conflict = try #require(try desk.store.conflicts().first)
            _ = try ConflictResolver.resolve([conflict.id], with: .renameIncoming, in: desk.store)
            try desk.take("l3.bib", entry("new"))
            let works = try desk.works()
            #expect(works == ["k1 6 six", "k1a 7 new"])
            try desk.take("l2.bib", entry("old"))
            #expect(try desk.works() == works)
        }
    }

    /// The file brought the one of two that was merged into the other.
    @Test func aFileThatIsSavedAgain_takesNothingBackFromWhatWasMerged() throws {
        try withDesk { desk in
            func entry(_ number: Int, _ word: String) -> String {
                "@article{k, doi={10.1000/same.\(number)}, title={\(word)}, author={Lee, \(word)}, keywords={\(word)}}\n"
            }
            try desk.take("l1.bib", entry(1, "one"))
            try desk.take("l2.bib", entry(2, "two"))
            let conflict = try #require(try desk.store.conflicts().first)
            _ = try ConflictResolver.resolve([conflict.id], with: .merge, in: desk.store)
            func living() throws -> [String] {
                try desk.store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }.map(\.fields)
            }
            let merged = try living()
            #expect(merged.count == 1 && merged[0].contains("one") && merged[0].contains("two"), "\(merged)")
            for _ in 0..<2 {
                try desk.take("l2.bib", entry(2, "two"))
                #expect(try living() == merged)
            }
        }
    }

    @Test func anEntryThatTakesTheKeyOfAnother_isNotWrittenOverIt() throws {
        try withDesk { desk in
            let second = """
                @article{e2, editor={Zoe Smith}, title={Editorial}, year=2003, journal={Annals of 7}, volume=7, note={seven}}

                """
            func seven() throws -> [Record] { try desk.store.all().filter { $0.fields.contains("\"note\":\"seven\"") } }
            try desk.take("l.bib", editorial("e1", volume: 6, "six", ", doi={10.1234/six}") + second)
            let before = try seven().map(\.localID)
            try desk.take("l.bib", editorial("e2", volume: 6, "six", ", doi={10.1234/six}") + second)
            let works = try desk.works()
            #expect(works.contains("e2 6 six") && works.contains("e2 7 seven"), "\(works)")
            #expect(try before.count == 1 && seven().map(\.localID) == before)
        }
    }

    /// What the file brought itself is edited, also where the volume changes.
    @Test func anEntryWhoseVolumeIsCorrected_isUpdated() throws {
        try withDesk { desk in
            try desk.take("l.bib", editorial("k1", volume: 6, "six"))
            try desk.take("l.bib", editorial("k1", volume: 7, "six"))
            #expect(try desk.works() == ["k1 7 six"])
        }
    }

    @Test func volumesOfOneSetInFilesOfOneTime_areNoVersionsOfEachOther() throws {
        func volume(_ number: Int, _ note: String, edited: Int64) -> Record {
            Record(
                id: RecordID(zone: RecordType.libraryZone, name: "X"), type: RecordType.publication, localID: "X",
                fields: """
                    {"citeKey":"v1","entryType":"book","author":"Ann Smith","title":"Collected Works","year":"2001",\
                    "volume":"\(number)","note":"\(note)"}
                    """, createdAt: time(0), modifiedAt: time(edited))
        }
        #expect(try !WorkLineage.isOneRecord(volume(1, "one", edited: 0), volume(2, "two", edited: 9)))
        #expect(try WorkLineage.isOneRecord(volume(1, "one", edited: 0), volume(1, "one, read", edited: 9)))
    }

    /// Its new listing was deleted by an undo, and an undo is newer than the file.
    @Test func aMirror_leavesAWorkThatTheFileHoldsUnderAKeyThatIsNotTaken() throws {
        try withDevices("A") { devices in
            let desk = Desk(folder: devices.folder, store: devices["A"])
            func entry(_ key: String) -> String {
                "@article{\(key), author={Ann Smith}, title={A Treatise}, year=2003, doi={10.1234/ab.3}, note={mine}}\n"
            }
            let other = "@article{other, author={Bob Ray}, title={Other}, year=2004}\n"
            try desk.take("l.bib", entry("old") + other)
            try devices.sync("A")
            try desk.take("l.bib", entry("new") + other, mirror: true)
            try devices.sync("A")
            devices.clock.advance()
            _ = try desk.store.undoLast()
            let result = try desk.takeAgain("l.bib", mirror: true)
            #expect(result.removed == 0 && result.needsAttention)
            #expect(try desk.works() == ["old - mine", "other - -"])
        }
    }
}
