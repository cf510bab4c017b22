import TestSupport
import Testing

@testable import BackupKit

private let twins = """
    @article{k,
      title = {Old}, % as its author wrote it
      year = 2001,
      doi = {10.1/old}
    }
    @book{k, title = "New", publisher = {P}, file = {:new.pdf:PDF}}
    @misc{child, crossref = {k}, title = {Child}}

    """

/// Of these nothing but the whole text tells which work they are.
private let bareTwins = """
    @misc{k, title = {One}, note = {x}}
    @misc{k, title = {Two}, howpublished = {y}}

    """

extension TestStore {
    /// Imports `text` as `refs.bib`, last changed so many seconds after the epoch of the tests.
    @discardableResult
    fileprivate func bring(_ text: String, at seconds: Int64 = 0) throws -> IntakeResult {
        let path = "\(folder)/refs.bib"
        try writeFile(path, text, modified: time(seconds).milliseconds / 1000)
        return try Importer.run([path], into: store, ImportOptions())
    }

    fileprivate func publication(_ localID: String) throws -> [Field]? {
        try store.livePublication(localID).map { try Fields.parse($0.record.fields) }
    }

    /// Two versions of one file, as a sync leaves them.
    fileprivate func queueAssets() throws {
        _ = try store.batch(kind: "import", source: "test") {
            try place("Attachments/x.pdf", "one", in: store)
            try place("Attachments/x_conflict_2026-03-01.pdf", "two", in: store)
            _ = try store.ingest(
                record(
                    "p", "{\"citeKey\":\"p\",\"linkedFiles\":[\"Attachments/x_conflict_2026-03-01.pdf\"]}",
                    type: RecordType.publication, zone: RecordType.libraryZone))
            return ((), summary: "")
        }
        _ = try store.write {
            try store.noteConflict(
                kind: "asset", subject: "Attachments/x.pdf", existing: "Attachments/x.pdf",
                incoming: "Attachments/x_conflict_2026-03-01.pdf")
        }
    }

    fileprivate func resolve(_ choice: ConflictChoice, key: String? = nil, dryRun: Bool = false) throws -> ResolveResult
    {
        let first = try #require(try store.conflicts().first)
        return try ConflictResolver.resolve([first.id], with: choice, newKey: key, in: store, dryRun: dryRun)
    }

    fileprivate func file(_ path: String) -> String? {
        (try? readFile("\(store.assetFolder)/\(path)")).map { String(decoding: $0, as: UTF8.self) }
    }
}

@Suite struct ConflictTests {
    @Test(arguments: 0..<3)
    func ofThreeWorksWithOneKeyTwoStillClashWhenOneIsDeleted(_ place: Int) throws {
        try withStore { test in
            try test.bring("@misc{k, title={One}}\n@misc{k, title={Two}}\n@misc{k, title={Three}}\n")
            #expect(try test.store.conflicts().count == 3)
            let works = try test.store.all().filter { $0.type == RecordType.publication }
            try #require(works.count == 3)
            _ = try test.store.delete([works[place].id.description])
            #expect(try test.store.conflicts().count == 1)
        }
    }

    @Test(arguments: ConflictChoice.allCases)
    func aDecisionIsTakenBackExactlyAndWaitsAgain(_ choice: ConflictChoice) throws {
        try withStore { test in
            try test.bring(twins)
            let before = try (test.store.digest(), test.store.conflicts())
            #expect(before.1.count == 1)
            let plan = try test.resolve(choice, dryRun: true)
            #expect(try test.store.digest() == before.0 && test.store.conflicts() == before.1)
            let result = try test.resolve(choice)
            #expect(result.plan == plan.plan && result.settled == 1 && result.batch != nil)
            #expect(try test.store.conflicts().isEmpty)
            #expect(try test.store.digest() != before.0)
            let undone = try test.store.undoLast()
            #expect(undone.conflicts == 1 && undone.keptNewer.isEmpty)
            #expect(try test.store.digest() == before.0 && test.store.conflicts() == before.1)
        }
    }

    @Test func anUndoGivesBackAConflictThatVersion010HasSettled() throws {
        try withStore { test in
            try test.bring(twins)
            let before = try test.store.conflicts()
            let conflict = try #require(before.first)
            // That version took the row away and wrote the conflict into the summary of its batch.
            _ = try test.store.batch(kind: "resolve", source: "test") {
                try test.store.remove(conflict.recordID)
                let members = ["kind": conflict.kind, "subject": conflict.subject]
                    .merging(["existing": conflict.existing, "incoming": conflict.incoming]) { $1 }
                let settled = JSON.object(members.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) })
                return ((), summary: JSON.object([.init("settled", .array([settled]))]).compact)
            }
            #expect(try test.store.conflicts().isEmpty)
            let last = "(SELECT max(id) FROM batch)"
            try test.store.database.execute(
                "DELETE FROM batch_record WHERE batch = \(last); UPDATE batch SET versions = NULL WHERE id = \(last)")
            _ = try test.store.undoLast()
            #expect(try test.store.conflicts().map(\.subject) == before.map(\.subject))
        }
    }

    @Test(arguments: ConflictChoice.allCases, [twins, bareTwins])
    func importingTheSameFileAgainBeginsNothingAnew(_ choice: ConflictChoice, file: String) throws {
        try withStore { test in
            try test.bring(file)
            _ = try test.resolve(choice)
            let decided = try test.store.digest()
            let again = try test.bring(file)
            #expect(again.writes == 0 && again.conflicts == 0)
            #expect(try test.store.digest() == decided)
        }
    }

    @Test(arguments: ConflictChoice.allCases)
    func anotherDeviceHearsOfTheDecision(_ choice: ConflictChoice) throws {
        try withStore { test in
            try test.bring(twins)
            try withStore { other in
                for record in try test.store.all() { try other.store.take(record) }
                test.clock.advance()
                other.clock.advance(seconds: 10)
                _ = try test.resolve(choice)
                for record in try test.store.all() { try other.store.take(record) }
                #expect(try other.store.digest() == test.store.digest())
            }
        }
    }

    @Test(arguments: [ConflictChoice.renameIncoming, .renameExisting])
    func aFileThatWasSavedSinceDoesNotTakeTheNewKeyBack(_ choice: ConflictChoice) throws {
        try withStore { test in
            try test.bring(twins)
            _ = try test.resolve(choice)
            let decided = try test.store.digest()
            test.clock.advance(seconds: 10_000_000)
            let again = try test.bring(twins + "@misc{more, title={M}}\n", at: 9_000_000)
            #expect(again.added == 1 && again.conflicts == 0)
            _ = try test.store.undoLast()
            #expect(try test.store.digest() == decided)
        }
    }

    @Test func aRenamedPublicationIsNotMergedWithAnotherWorkThatTakesItsOldKey() throws {
        try withStore { test in
            try test.bring(twins)
            let first = try #require(try test.store.conflicts().first)
            _ = try test.resolve(.renameExisting)
            _ = try test.store.delete([first.incoming])
            let renamed = try test.publication(first.existing)
            try test.bring("@misc{k, title = {A stranger}}\n", at: 100)
            #expect(try test.publication(first.existing) == renamed)
        }
    }

    @Test func aRenameChangesTheKeyAndNotAnotherByte() throws {
        try withStore { test in
            try test.bring(twins)
            let conflict = try #require(try test.store.conflicts().first)
            let before = try #require(try test.publication(conflict.existing))
            let view = try ConflictDesk.view(conflict.id, in: test.store)
            #expect(view.newKey == "ka")
            let result = try test.resolve(.renameExisting)
            let after = try #require(try test.publication(conflict.existing))
            #expect(Fields.string("citeKey", in: after) == "ka")
            let old = try #require(Fields.string("rawBibTeX", in: before))
            #expect(Fields.string("rawBibTeX", in: after) == "@article{ka" + old.dropFirst("@article{k".count))
            // The child's crossref may mean either.
            #expect(result.findings.map(\.subject) == ["k"])
            #expect(throws: BackupError.self) { try test.bringBack(conflict, key: "CHILD") }
            #expect(throws: BackupError.self) { try test.bringBack(conflict, key: "a,b") }
        }
    }

    @Test func aMergeTakesTheNewerFieldsAndAllFiles() throws {
        try withStore { test in
            try test.store.write {
                for (name, fields, at) in [
                    ("a", "{\"citeKey\":\"k\",\"entryType\":\"misc\",\"title\":\"Old\",\"year\":\"1\"", Int64(1)),
                    ("b", "{\"citeKey\":\"k\",\"entryType\":\"misc\",\"title\":\"New\",\"doi\":\"d\"", Int64(2)),
                ] {
                    _ = try test.store.ingest(
                        record(
                            name, fields + ",\"linkedFiles\":[\"Attachments/\(name).pdf\"]}", at: at,
                            type: RecordType.publication, zone: RecordType.libraryZone))
                }
                try test.store.noteConflict(kind: "publication", subject: "k", existing: "a", incoming: "b")
            }
            _ = try test.resolve(.merge)
            let merged = try #require(try test.publication("b"))
            #expect(Fields.string("title", in: merged) == "New" && Fields.string("year", in: merged) == nil)
            #expect(Fields.strings("linkedFiles", in: merged).sorted() == ["Attachments/a.pdf", "Attachments/b.pdf"])
            let text = String(decoding: try Publication.bytes(of: merged), as: UTF8.self)
            #expect(text.contains("New") && text.contains("doi"))
            let gone = try #require(try test.store.record(RecordID(zone: RecordType.libraryZone, name: "a")))
            #expect(gone.record.isDeleted && gone.record.fields == "{}")
            // Wherever the older versions come from, what was decided stays.
            test.clock.advance()
            let decided = try test.store.digest()
            try test.store.take(
                record("b", "{\"citeKey\":\"k\",\"title\":\"Older\"}", at: 1, type: "Publication", zone: "Library"),
                record("a", "{\"citeKey\":\"k\",\"title\":\"Older\"}", at: 3, type: "Publication", zone: "Library"))
            #expect(try test.store.digest() == decided)
        }
    }

    @Test func theFilesOfADroppedPublicationGoToTheOneThatStays() throws {
        try withStore { test in
            try test.bring(twins)
            let conflict = try #require(try test.store.conflicts().first)
            _ = try test.store.batch(kind: "import", source: "test") {
                try place("Attachments/new.pdf", "N", in: test.store)
                let file = AttachmentFolder.Taken(relative: "new.pdf", place: "Attachments/new.pdf")
                try AttachmentLinks(test.store, imported: [:]).link([file], by: Intake(test.store))
                return ((), summary: "")
            }
            _ = try test.resolve(.keepExisting)
            let kept = try #require(try test.publication(conflict.existing))
            #expect(Fields.strings("linkedFiles", in: kept) == ["Attachments/new.pdf"])
            #expect(try test.publication(conflict.incoming) == nil)
        }
    }

    @Test func otherConflictsOfTheKeyGoOnWithTheOneThatBearsIt() throws {
        try withStore { test in
            try test.bring(twins + "@misc{k, title = {Third}}\n")
            let before = try test.store.conflicts()
            #expect(before.count == 3)
            _ = try test.resolve(.keepIncoming)
            let left = try test.store.conflicts()
            #expect(left.map(\.existing) == [before[0].incoming] && left.map(\.incoming) == [before[1].incoming])
            _ = try test.resolve(.renameIncoming)
            #expect(try test.store.conflicts().isEmpty)
            _ = try test.store.undoLast()
            #expect(try test.store.conflicts() == left)
            _ = try test.store.undoLast()
            #expect(try test.store.conflicts() == before)
            // Both at once: the second is decided by what the first has left.
            let all = try ConflictResolver.resolve(before.map(\.id), with: .keepExisting, in: test.store)
            #expect(all.settled == 3)
            #expect(try test.publication(before[0].existing) != nil && test.publication(before[1].incoming) == nil)
        }
    }

    @Test func whatOnlyThisDeviceKeepsIsNotMergedIntoWhatEverybodySees() throws {
        try withStore { test in
            try test.bring(twins)
            let conflict = try #require(try test.store.conflicts().first)
            _ = try test.store.setLocal([conflict.incoming])
            let before = try test.store.digest()
            let error = #expect(throws: BackupError.self) { try test.resolve(.merge) }
            #expect(error?.code == .refused)
            #expect(try test.store.digest() == before)
        }
    }

    @Test func aConflictWhoseSideIsGoneGoesOffTheList_andComesBackWithIt() throws {
        try withStore { test in
            try test.bring(twins)
            let conflict = try #require(try test.store.conflicts().first)
            let backup = try test.store.all()
            _ = try test.store.delete([conflict.existing])
            #expect(try test.store.conflicts().isEmpty && test.store.info().conflicts == 0)
            #expect(try ConflictDesk.view(conflict.id, in: test.store).isMoot == "the existing one is gone")
            #expect(throws: BackupError.self) {
                try ConflictResolver.resolve([conflict.id], with: .keepIncoming, in: test.store)
            }
            for record in backup { try test.store.take(record, resurrect: true) }
            #expect(try test.store.conflicts() == [conflict])
        }
    }

    /// Two entries of one key and one DOI, one of which another file has changed since.
    @Test(arguments: [false, true], [0, 1])
    func entriesOfOneWork_areMatchedWithTheVersionThatSaysMostOfThem(reversed: Bool, edited: Int) throws {
        try withStore { test in
            let entries = [
                "@book{k1, doi={10.1000/abc}, title={Introduction}, author={Smith, Ann}, year={2021}, x1={1}}\n",
                "@article{k1, doi={10.1000/abc}, title={Editorial}, author={Jones, Bob and Smith, Ann}, year={2020}, x2={1}}\n",
            ]
            let file = (reversed ? entries.reversed() : entries).joined()
            try test.bring(file)
            let other = "\(test.folder)/other.bib"
            let text = entries[edited].replacing("={1}", with: "={1}, x3={1}")
            try writeFile(other, text, modified: 1_600_000_000)
            _ = try Importer.run([other], into: test.store, ImportOptions())
            try test.bring(file)
            let works = try test.store.all().filter { $0.type == RecordType.publication }.map(\.fields)
            #expect(works.count == 2)
            for work in works {
                #expect(work.contains("Introduction") == work.contains("\"x1\""), "\(work)")
                #expect(work.contains("Editorial") == work.contains("\"x2\""), "\(work)")
            }
        }
    }

    @Test(arguments: [ConflictChoice.keepExisting, .keepIncoming, .merge, .renameIncoming, .keepBoth])
    func aConflictThatIsDecided_isNotDecidedAgain(_ choice: ConflictChoice) throws {
        try withStore { test in
            try test.bring(twins)
            let conflict = try #require(try test.store.conflicts().first)
            #expect(try test.resolve(.keepBoth).settled == 1)
            let before = try test.store.digest()
            let error = #expect(throws: BackupError.self) {
                try ConflictResolver.resolve([conflict.id], with: choice, in: test.store)
            }
            #expect(error?.message.contains("it was decided to keep both as they are") == true)
            #expect(try test.store.digest() == before)
            _ = try test.store.undoLast()
            #expect(try test.resolve(choice).settled == 1)
        }
    }

    @Test func aConflictComesWithItsWorks_whenTheyAreChosen() throws {
        try withStore { test in
            try test.bring(twins)
            try test.queueAssets()
            let conflicts = try test.store.conflicts()
            let path = "\(test.folder)/out"
            _ = try Exporter.export(test.store, to: path, ExportOptions(form: .layout(.directory)))
            let works = conflicts.flatMap { [$0.existing, $0.incoming] }
            for chosen in [works, Array(works.prefix(1)), Array(works.prefix(2)), Array(works.suffix(2)), []] {
                try withStore { other in
                    for work in chosen {
                        var options = RestoreOptions()
                        options.match = RecordQuery([work.contains("/") ? work : "localid=\(work)"])
                        _ = try Restorer.restore(path, into: other.store, options)
                    }
                    let both = conflicts.filter { chosen.contains($0.existing) && chosen.contains($0.incoming) }
                    #expect(try other.store.conflicts().map(\.existing) == both.map(\.existing))
                    #expect(try other.store.all().count { $0.type == RecordType.conflict } == both.count)
                }
            }
        }
    }

    @Test func aConflictIsNotCountedAsData_andComesBackWithARestore() throws {
        try withStore { test in
            let imported = try test.bring(twins)
            #expect(imported.conflicts == 1)
            let before = try (test.store.info(), test.store.conflicts(), test.store.digest())
            #expect(before.0.records == [.publications: 3] && before.0.types.allSatisfy { $0.type != "Conflict" })
            _ = try Exporter.export(
                test.store, to: "\(test.folder)/out", ExportOptions(form: .layout(.directory)))
            try withStore { other in
                let restored = try Restorer.restore("\(test.folder)/out", into: other.store, RestoreOptions())
                // Three publications, what stands between them, and their order.
                #expect(restored.added == imported.added && restored.conflicts == 1)
                #expect(try other.store.conflicts().map(\.existing) == before.1.map(\.existing))
                #expect(try other.store.digest() == before.2 && other.store.info().records == before.0.records)
                let again = try Restorer.restore("\(test.folder)/out", into: other.store, RestoreOptions())
                #expect(again.writes == 0 && again.conflicts == 0)
                let conflict = try #require(try other.store.conflicts().first)
                _ = try ConflictResolver.resolve([conflict.id], with: .keepIncoming, in: other.store)
                var replace = RestoreOptions()
                replace.mode = .replace
                replace.policy = .resurrect
                #expect(try Restorer.restore("\(test.folder)/out", into: other.store, replace).conflicts == 1)
                #expect(try other.store.conflicts().count == 1)
            }
        }
    }

    /// A device of 0.1.0 took the conflicts of newer devices for records of a type that it did not know.
    @Test func conflictsOfVersion01ThatNewerDevicesFoundToo_areNotThereTwice() throws {
        try withStore { test in
            let works = ["a", "b"].map {
                record($0, "{\"citeKey\":\"k\"}", type: RecordType.publication, zone: "Library")
            }
            let theirs = ["c", "d"].map {
                record($0, "{\"citeKey\":\"l\"}", type: RecordType.publication, zone: "Library")
            }
            for record in works + theirs { try test.store.take(record) }
            _ = try test.store.write {
                try test.store.noteConflict(kind: "publication", subject: "k", existing: "b", incoming: "a")
                try test.store.noteConflict(kind: "publication", subject: "l", existing: "c", incoming: "d")
            }
            let before = try test.store.digest()
            try makeTableOfVersion01(in: test.store.database, "(7, 'publication', 'k', 'a', 'b', 5, NULL)")
            #expect(try test.store.digest() == before)
            #expect(try test.store.conflicts().map(\.subject).sorted() == ["k", "l"])
            #expect(try test.store.conflict(7)?.subject == "k")
            #expect(try StoreCheck.run(test.store).findings.isEmpty)
        }
    }

    private func makeTableOfVersion01(in database: SQLite, _ rows: String) throws {
        try database.execute(
            """
            DROP TABLE conflict_number;
            CREATE TABLE conflict (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL,
                existing TEXT NOT NULL, incoming TEXT NOT NULL, detected_at INTEGER NOT NULL, batch INTEGER)
                STRICT;
            INSERT INTO conflict VALUES \(rows)
            """)
        try database.write {
            try Conflict.makeRecords(in: database)
            let numbers = Witness.ofMemory.filter { $0.table == "conflict_number" }
            for witness in numbers { try database.execute(witness.triggers) }
            try Witness.refresh(numbers, database)
        }
    }

    @Test func conflictsOfVersion01BecomeRecords_underTheirNumbers() throws {
        try withStore { test in
            try test.store.take(
                record("a", "{\"citeKey\":\"k\"}", type: RecordType.publication, zone: "Library"),
                record("b", "{\"citeKey\":\"k\"}", type: RecordType.publication, zone: "Library"))
            try makeTableOfVersion01(
                in: test.store.database,
                "(7, 'publication', 'k', 'b', 'a', 5, NULL), (9, 'asset', 'x.pdf', 'x.pdf', 'y.pdf', 5, NULL)")
            let found = try test.store.conflicts()
            #expect(found.map(\.id) == [7] && found.map(\.subject) == ["k"] && found.map(\.existing) == ["b"])
            #expect(try test.store.conflict(9)?.isAboutAssets == true)
            _ = try test.store.write {
                try test.store.noteConflict(kind: "publication", subject: "k", existing: "a", incoming: "b")
            }
            #expect(try test.store.conflicts() == found)
        }
    }

    @Test func ofTwoFilesOneOrBothAreKeptAndAnUndoBringsBothBack() throws {
        try withStore { test in
            try test.queueAssets()
            let before = (try test.store.digest(), try visibleFiles(of: test.store))
            func links() throws -> [String] {
                Fields.strings("linkedFiles", in: try #require(try test.publication("p")))
            }
            let second = "Attachments/x_conflict_2026-03-01.pdf"
            for (choice, first, other, linked) in [
                (ConflictChoice.keepExisting, "one", nil, ["Attachments/x.pdf"]),
                (.keepIncoming, "two", nil, ["Attachments/x.pdf"]), (.keepBoth, "one", "two" as String?, [second]),
            ] {
                let plan = try test.resolve(choice, dryRun: true)
                #expect(try test.store.digest() == before.0 && visibleFiles(of: test.store) == before.1)
                #expect(try test.resolve(choice).plan == plan.plan)
                #expect(test.file("Attachments/x.pdf") == first && test.file(second) == other)
                #expect(try links() == linked)
                #expect(try test.store.conflicts().isEmpty)
                try checkSound(test.store.path)
                _ = try test.store.undoLast()
                #expect(try test.store.digest() == before.0 && visibleFiles(of: test.store) == before.1)
                #expect(try test.store.conflicts().count == 1)
            }
            for choice in [ConflictChoice.merge, .renameIncoming, .renameExisting] {
                let error = #expect(throws: BackupError.self) { try test.resolve(choice) }
                #expect(error?.code == .usage)
            }
        }
    }
}

extension TestStore {
    /// Undoes what was decided and decides for this key.
    fileprivate func bringBack(_ conflict: Conflict, key: String) throws {
        if try store.conflicts().isEmpty { _ = try store.undoLast() }
        _ = try ConflictResolver.resolve([conflict.id], with: .renameExisting, newKey: key, in: store)
    }
}
