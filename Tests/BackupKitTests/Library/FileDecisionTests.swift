import TestSupport
import Testing

@testable import BackupKit

/// Devices that have two versions of one file, and people who decide which of them stay.
final class Archive {
    static let first = "Attachments/x.pdf"

    let office: Office
    private(set) var second = ""
    /// The decision that was made last, of those that were made.
    private(set) var last: ConflictChoice?

    /// Work `a` links the first version and `b` the second one, `both` links both; an event shows the second one.
    init(_ folder: String, skews: [Int64]) throws {
        office = try Office(folder, skews: skews)
        for (number, (work, text)) in [("a", "one"), ("b", "two")].enumerated() {
            let store = office.stores[number]
            _ = try store.batch(kind: "import", source: "test") {
                try TestSupport.place(Self.first, text, in: store)
                return ((), summary: "")
            }
            try link(work, [Self.first], on: number)
            let photo = "{\"photo\":\"x.pdf\",\"type\":\"walk\"}"
            if number == 1 { try store.take(record("e", photo, at: 1, type: RecordType.event, zone: "Events")) }
        }
        try office.settle()
        second = try #require(try office.stores[0].conflicts().first).incoming
        try link("both", [Self.first, second], on: 0)
        try office.settle()
    }

    func link(_ work: String, _ paths: [String], on number: Int) throws {
        let links = paths.map { "\"\($0)\"" }.joined(separator: ",")
        let fields = "{\"citeKey\":\"\(work)\",\"linkedFiles\":[\(links)],\"title\":\"\(work)\"}"
        try office.stores[number].take(
            record(work, fields, at: 1, type: RecordType.publication, zone: RecordType.libraryZone))
    }

    /// An edit that has nothing to do with files.
    func note(_ work: String, on number: Int) throws {
        let stored = try #require(try office.stores[number].livePublication(work))
        var record = stored.record
        record.modifiedAt = office.clock.now
        for field in try Fields.parse(record.fields) { record.fieldTimes[field.name] = stored.record.modifiedAt }
        record.fields = Fields.text(try Fields.parse(record.fields) + [Field("note", "\"n\"")])
        try office.stores[number].take(record)
    }

    /// False where nothing waits on that device any more.
    @discardableResult func decide(_ choice: ConflictChoice, on number: Int) throws -> Bool {
        guard let conflict = try office.stores[number].conflicts().first else { return false }
        _ = try ConflictResolver.resolve([conflict.id], with: choice, in: office.stores[number])
        last = choice
        return true
    }

    func files(of store: Store) throws -> [String: String] {
        var found: [String: String] = [:]
        try store.forEachAsset { asset in
            found[asset.path] = String(decoding: try readFile("\(store.assetFolder)/\(asset.path)"), as: UTF8.self)
        }
        return found
    }

    func links(of store: Store) throws -> [String: [String]] {
        var found: [String: [String]] = [:]
        try store.forEachLinking { stored in
            found[stored.record.localID] = try Store.links(of: stored.record).sorted()
        }
        return found
    }

    /// All devices show what the last decision says.
    func check(_ comment: String) throws {
        for store in office.stores { try checkSound(store.path) }
        let digests = try office.stores.map { try $0.sharedDigest() }
        #expect(Set(digests).count == 1, "\(comment): the devices differ")
        guard let last else { return }
        let store = office.stores[0]
        let isBoth = last == .keepBoth
        let expected = [Self.first: last == .keepIncoming ? "two" : "one"]
        #expect(
            try files(of: store) == expected.merging(isBoth ? [second: "two"] : [:]) { $1 }, "\(comment): last \(last)")
        let other = [isBoth ? second : Self.first]
        #expect(
            try links(of: store) == [
                "a": [Self.first], "b": other, "e": other, "both": isBoth ? [Self.first, second] : [Self.first],
            ], "\(comment): last \(last)")
        for store in office.stores {
            #expect(
                try store.conflicts().isEmpty && store.conflictsOfFiles().allSatisfy { !$0.isContested },
                "\(comment): it waits")
            #expect(try StoreCheck.run(store).findings.isEmpty, "\(comment)")
        }
    }
}

@Suite struct FileDecisionTests {
    private static let choices: [ConflictChoice] = [.keepExisting, .keepIncoming, .keepBoth]

    @Test(arguments: choices, choices)
    func ofTwoDecisionsAboutAFileTheLaterOneCounts(_ earlier: ConflictChoice, _ later: ConflictChoice) throws {
        for isLaterFirst in [false, true] {
            for count in [2, 3] {
                for from in 0..<count {
                    countRounds()
                    try withQuickFolder { folder in
                        let archive = try Archive(folder, skews: [0, 0, 0].prefix(count).map { $0 })
                        try archive.decide(earlier, on: isLaterFirst ? 1 : 0)
                        archive.office.clock.advance()
                        try archive.decide(later, on: isLaterFirst ? 0 : 1)
                        try archive.office.settle(from: from)
                        try archive.check("\(earlier), \(later), \(count) devices, \(isLaterFirst), from \(from)")
                    }
                }
            }
        }
    }

    /// Three devices decide and sync in an order that a seed decides; in every second world many a sync stops half-way.
    @Test func whateverDevicesDecideAboutAFile_theLastDecisionCounts() throws {
        for seed in testSeeds(isTorture ? 250 : 40) {
            countRounds()
            try withQuickFolder { folder in
                var random = SeededGenerator(seed: seed)
                let archive = try Archive(folder, skews: [0, 0, 0])
                var story: [String] = []
                // A store that a hub does not know any more, and one that hears of files alone and is told that this is
                // all, keep both files, and the conflict waits again.
                var manners = HubSimulator.Manners.all
                (manners.expires, manners.holdsBack) = (0, 0)
                let hub: any Hub =
                    seed % 2 == 0 ? archive.office.hub : HubSimulator(archive.office.hub, manners, seed: seed)
                for _ in 0..<10 {
                    archive.office.clock.advance()
                    let number = random.below(3)
                    if random.chance(2) {
                        let choice = Self.choices[random.below(3)]
                        if try archive.decide(choice, on: number) { story.append("\(number) \(choice)") }
                    } else {
                        var options = SyncOptions()
                        (options.patience, options.sleep) = (0, { _ in })
                        do {
                            _ = try Synchronizer.sync(archive.office.stores[number], with: hub, options)
                            story.append("\(number) syncs")
                        } catch let error as BackupError where error.code == .temporary {
                            story.append("\(number) begins to sync")
                        }
                    }
                }
                try archive.office.settle(from: random.below(3))
                try archive.check("seed \(seed): \(story)")
            }
        }
    }

    /// A paper that came while the incoming file was in the place of the other one means the incoming file.
    @Test func aLinkToWhatAnOverruledDecisionLeft_followsItsFile() throws {
        for isSent in [false, true] {
            try withQuickFolder { folder in
                let archive = try Archive(folder, skews: [0, 0])
                try archive.decide(.keepIncoming, on: 0)
                try archive.link("new", [Archive.first], on: 0)
                if isSent { try archive.office.sync(0) }
                archive.office.clock.advance()
                try archive.decide(.keepBoth, on: 1)
                try archive.office.settle(from: 1)
                for store in archive.office.stores {
                    #expect(try archive.links(of: store)["new"] == [archive.second], "\(isSent)")
                    #expect(try archive.files(of: store)[archive.second] == "two")
                }
            }
        }
    }

    /// A file that somebody has changed since a decision stays as it is, whichever decision counts.
    @Test(arguments: choices, choices)
    func aFileThatWasChangedSinceStays(_ earlier: ConflictChoice, _ later: ConflictChoice) throws {
        try withQuickFolder { folder in
            let archive = try Archive(folder, skews: [0, 0])
            try archive.decide(earlier, on: 0)
            let store = archive.office.stores[0]
            try writeFile("\(store.assetFolder)/\(Archive.first)", "changed", modified: 1_900_000_000)
            _ = try store.adopt()
            try archive.office.sync(0)
            archive.office.clock.advance()
            try archive.decide(later, on: 1)
            try archive.office.settle()
            for store in archive.office.stores {
                #expect(try archive.files(of: store).values.contains("changed"))
                #expect(try store.conflictsOfFiles().allSatisfy { !$0.isContested })
            }
        }
    }

    @Test func anUndoneDecisionAboutAFileWaitsAgainEverywhere() throws {
        for choice in Self.choices {
            try withQuickFolder { folder in
                let archive = try Archive(folder, skews: [0, 0])
                try archive.decide(choice, on: 0)
                try archive.office.settle()
                #expect(try archive.office.stores.allSatisfy { try $0.conflicts().isEmpty })
                _ = try archive.office.stores[0].undoLast()
                try archive.office.settle()
                for store in archive.office.stores {
                    #expect(try archive.files(of: store) == [Archive.first: "one", archive.second: "two"], "\(choice)")
                    #expect(try store.conflicts().count == 1, "\(choice)")
                }
                try archive.decide(.keepIncoming, on: 1)
                try archive.office.settle()
                try archive.check("\(choice), undone, then decided")
            }
        }
    }

    @Test func aFileThatComesBackAfterADecision_isAskedForAgain() throws {
        for isKnown in [false, true] {
            try withQuickFolder { folder in
                let archive = try Archive(folder, skews: [0, 0])
                try archive.decide(.keepExisting, on: 0)
                if isKnown { try archive.office.settle() }
                let store = archive.office.stores[0]
                _ = try store.batch(kind: "import", source: "test") {
                    try TestSupport.place(Archive.first, "two", in: store)
                    return ((), summary: "")
                }
                #expect(try store.conflicts().count == 1)
                try archive.office.settle()
                for store in archive.office.stores {
                    #expect(try archive.files(of: store).values.sorted() == ["one", "two"])
                    #expect(try store.conflicts().count == 1)
                }
            }
        }
    }

    /// The hub goes away after every request in turn, and another device syncs then.
    @Test func aSyncThatStopsBeforeARemoval_leavesTheFileWhereItIsLinked() throws {
        for (choice, requests) in Self.choices.flatMap({ choice in (0..<12).map { (choice, $0) } }) {
            try withQuickFolder { folder in
                let archive = try Archive(folder, skews: [0, 0])
                try archive.decide(choice, on: 0)
                var manners = HubSimulator.Manners()
                manners.endsAfter = requests
                var options = SyncOptions()
                (options.patience, options.sleep) = (0, { _ in })
                let hub = HubSimulator(archive.office.hub, manners, seed: 1)
                do { _ = try Synchronizer.sync(archive.office.stores[0], with: hub, options) } catch is BackupError {}
                try archive.office.sync(1)
                let told = try archive.office.stores[1].conflictsOfFiles().contains { $0.fileDecision != nil }
                #expect(try archive.office.stores[1].conflicts().isEmpty || !told, "\(choice), \(requests)")
                try archive.office.settle()
                try archive.check("\(choice), after \(requests) requests")
            }
        }
    }

    /// An undo puts files and links back, also where a sync, an edit, or the same decision of another device came since.
    @Test(arguments: choices, [0, 1, 2])
    func anUndoneDecision_givesTheLinksBack(_ choice: ConflictChoice, since: Int) throws {
        try withQuickFolder { folder in
            let archive = try Archive(folder, skews: [0, 0])
            try archive.decide(choice, on: 1)
            archive.office.clock.advance()
            if since == 2 { try archive.decide(choice, on: 0) }
            try archive.office.settle()
            if since == 1 {
                for work in ["a", "b"] { try archive.note(work, on: 0) }
                try archive.office.settle()
            }
            _ = try archive.office.stores[1].undoLast()
            try archive.office.settle()
            for store in archive.office.stores {
                #expect(try archive.files(of: store) == [Archive.first: "one", archive.second: "two"])
                #expect(
                    try archive.links(of: store) == [
                        "a": [Archive.first], "b": [archive.second], "e": [archive.second],
                        "both": [Archive.first, archive.second],
                    ])
                #expect(try store.conflicts().count == 1)
            }
            _ = try archive.office.stores[1].redoLast()
            try archive.office.settle()
            try archive.check("\(choice), undone and redone, \(since)")
        }
    }

    /// What another device has decided later stays, whoever undoes the decision that does not count.
    @Test(arguments: choices, choices)
    func anUndoOfAnOverruledDecision_leavesWhatCounts(_ earlier: ConflictChoice, _ later: ConflictChoice) throws {
        guard earlier != later else { return }
        try withQuickFolder { folder in
            let archive = try Archive(folder, skews: [0, 0])
            try archive.decide(earlier, on: 0)
            archive.office.clock.advance()
            try archive.decide(later, on: 1)
            try archive.office.settle()
            _ = try archive.office.stores[0].undoLast()
            try archive.office.settle()
            try archive.check("\(earlier), \(later), the earlier undone")
        }
    }

    @Test(arguments: choices)
    func aDecisionAboutAFile_isNoEditOfWhatLinksIt(_ choice: ConflictChoice) throws {
        for isDelete in [true, false] {
            for from in 0..<2 {
                try withQuickFolder { folder in
                    let archive = try Archive(folder, skews: [0, 0, 0])
                    let store = archive.office.stores[0]
                    _ = try isDelete ? store.delete(["b"]) : store.setLocal(["b"])
                    archive.office.clock.advance()
                    try archive.decide(choice, on: 1)
                    try archive.office.settle(from: from)
                    for (number, store) in archive.office.stores.enumerated() {
                        let live = try store.livePublication("b")
                        #expect((live != nil) == (!isDelete && number == 0), "\(choice), \(isDelete), \(number)")
                        #expect(try store.all().allSatisfy { $0.id.zone != Quarantine.zone })
                    }
                }
            }
        }
    }

    /// What two works linked belongs to the one that has taken in the other.
    @Test(arguments: choices, choices)
    func aMergedWorkKeepsTheFilesOfBoth(_ earlier: ConflictChoice, _ later: ConflictChoice) throws {
        for from in 0..<2 {
            try withQuickFolder { folder in
                let archive = try Archive(folder, skews: [0, 0])
                let store = archive.office.stores[0]
                let fields = "{\"citeKey\":\"a\",\"linkedFiles\":[\"\(archive.second)\"],\"title\":\"b\"}"
                archive.office.clock.advance()
                try store.take(record("b", fields, at: 2, type: RecordType.publication, zone: RecordType.libraryZone))
                _ = try store.write {
                    try store.noteConflict(kind: Conflict.publication, subject: "a", existing: "a", incoming: "b")
                }
                try archive.office.settle()
                let clash = try #require(try store.conflicts().first { !$0.isAboutAssets })
                _ = try ConflictResolver.resolve([clash.id], with: .merge, in: store)
                let file = try #require(try store.conflicts().first)
                _ = try ConflictResolver.resolve([file.id], with: earlier, in: store)
                archive.office.clock.advance()
                let other = archive.office.stores[1]
                let known = try #require(try other.conflicts().first { $0.isAboutAssets })
                _ = try ConflictResolver.resolve([known.id], with: later, in: other)
                try archive.office.settle(from: from)
                for store in archive.office.stores {
                    let works = try archive.links(of: store).filter { ["a", "b"].contains($0.key) }
                    let expected = later == .keepBoth ? [Archive.first, archive.second] : [Archive.first]
                    #expect(Array(works.values) == [expected], "\(earlier), \(later), from \(from)")
                }
            }
        }
    }

    /// One device removes a file, and another one puts another in its place; a third one has only the old one.
    @Test func aVersionOfADeletedFile_takesItsPlaceEverywhere() throws {
        try withQuickFolder { folder in
            let archive = try Archive(folder, skews: [0, 0, 0])
            _ = try archive.office.stores[0].batch(kind: "import", source: "test") {
                let asset = try #require(try archive.office.stores[0].asset(Archive.first))
                try archive.office.stores[0].removeAsset(asset)
                return ((), summary: "")
            }
            _ = try archive.office.stores[0].delete(["a", "both"])
            try archive.office.sync(0)
            try archive.decide(.keepIncoming, on: 1)
            try archive.office.sync(1)
            try archive.office.sync(2)
            try archive.office.settle()
            for store in archive.office.stores {
                #expect(try archive.files(of: store) == [Archive.first: "two"])
                #expect(try archive.links(of: store) == ["b": [Archive.first], "e": [Archive.first]])
            }
        }
    }
}
