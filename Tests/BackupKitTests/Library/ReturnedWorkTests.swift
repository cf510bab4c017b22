import TestSupport
import Testing

@testable import BackupKit

/// Works that decisions put into each other, that edits of a file bring back, and that are decided on anew.
private final class Library {
    let devices: Devices
    let works: [String]
    /// By device: what each entry of its file says besides.
    private var extras: [String: [String: [String]]] = [:]
    /// Which work an edit was of.
    private(set) var edits: [String: String] = [:]
    /// Works that somebody has deleted, or for which another one was kept.
    var dropped: Set<String> = []
    private(set) var said: [String] = []

    init(_ folder: String, works: [String], devices count: Int, imports: Int = 1) throws {
        devices = try Devices(Array(["A", "B", "C"].prefix(count)), in: folder)
        self.works = works
        for store in devices.stores { try store.database.execute("PRAGMA synchronous = OFF") }
        for work in works { try writeFile("\(folder)/\(work).pdf", work) }
        for name in devices.names.prefix(imports) { try importFile(name) }
        for _ in 0..<2 { for name in devices.names { try devices.syncLibrary(name) } }
    }

    private func importFile(_ name: String) throws {
        let entries = works.map { work in
            let extra = (extras[name]?[work] ?? []).map { ", \($0)={v}" }.joined()
            return "@misc{k, author={P\(work)}, title={Title \(String(repeating: work, count: 7)) of}, "
                + "year={199\(work.utf8.first.map { $0 % 10 } ?? 0)}, mark\(work)={x}, keywords={of \(work), all}, "
                + "file={\(work).pdf}\(extra)}\n"
        }
        let path = "\(devices.folder)/\(name).bib"
        try writeFile(path, entries.joined(), modified: devices.clock.now.milliseconds / 1000)
        _ = try Importer.run([path], into: devices[name], ImportOptions())
    }

    func edit(_ work: String, on name: String) throws {
        devices.clock.advance()
        let field = "edit\(edits.count)"
        edits[field] = work
        extras[name, default: [:]][work, default: []].append(field)
        try importFile(name)
        said.append("\(name) edits \(work) (\(field))")
    }

    func decide(_ choice: ConflictChoice, _ conflict: Conflict, on name: String) throws {
        let before = try marks(name)
        _ = try ConflictResolver.resolve([conflict.id], with: choice, in: devices[name])
        let (first, second) = (before[conflict.existing] ?? [], before[conflict.incoming] ?? [])
        if choice == .keepExisting { dropped.formUnion(second) }
        if choice == .keepIncoming { dropped.formUnion(first) }
        said.append("\(name): \(choice.rawValue) \(first.sorted()) \(second.sorted())")
    }

    func decide(_ choice: ConflictChoice, on name: String) throws {
        devices.clock.advance()
        try decide(choice, #require(try conflicts(name).first), on: name)
    }

    func delete(_ localID: String, on name: String) throws {
        let gone = try marks(name)[localID] ?? []
        dropped.formUnion(gone)
        _ = try devices[name].delete(["Library/\(localID)"])
        said.append("\(name) deletes \(gone.sorted())")
    }

    func sync(_ name: String) throws {
        try devices.syncLibrary(name)
        said.append("\(name) syncs")
    }

    func settle(_ order: [String]) throws {
        for _ in 0..<5 { for name in order { try devices.syncLibrary(name) } }
        said.append("all sync: \(order)")
    }

    func conflicts(_ name: String) throws -> [Conflict] {
        try devices[name].conflicts().filter { !$0.isAboutAssets }
    }

    /// The works that each living publication holds.
    func marks(_ name: String) throws -> [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        try devices[name].forEachLive(type: RecordType.publication) { stored in
            let marks = try Fields.parse(stored.record.fields).map(\.name).filter { $0.hasPrefix("mark") }
            found[stored.record.localID] = Set(marks.map { String($0.dropFirst(4)) })
        }
        return found
    }

    func id(of work: String, on name: String) throws -> String? {
        try marks(name).first { $0.value.contains(work) }?.key
    }

    /// All devices show the same, and of each work that nobody dropped everything is alive, or in quarantine.
    func check(_ comment: String = "") throws {
        let story = Comment(rawValue: "\(comment) \(said.joined(separator: "; "))")
        #expect(Set(try devices.stores.map { try $0.sharedDigest() }).count == 1, story)
        let queues = try devices.stores.map { try Set($0.conflicts().map { Set([$0.existing, $0.incoming]) }) }
        #expect(Set(queues).count == 1, story)
        var (fields, aside, files): (Set<String>, Set<String>, Set<String>) = ([], [], [])
        for name in devices.names {
            for record in try devices[name].all() where !record.isDeleted {
                if let content = try Quarantine.content(of: record) {
                    aside.formUnion(try Fields.parse(content.fields).map(\.name))
                }
                guard name == "A", record.type == RecordType.publication else { continue }
                fields.formUnion(try Fields.parse(record.fields).map(\.name))
                files.formUnion(try Store.links(of: record))
            }
        }
        for work in works where !dropped.contains(work) {
            #expect(fields.contains("mark\(work)"), "\(work) is gone: \(story)")
            #expect(files.contains("Attachments/\(work).pdf"), "the file of \(work) is gone: \(story)")
            for (edit, edited) in edits where edited == work {
                #expect(fields.union(aside).contains(edit), "\(edit) is gone: \(story)")
            }
        }
    }
}

@Suite struct ReturnedWorkTests {
    /// Two works that B has made one, and the mark of the one that is gone by that.
    private func merged(in folder: String) throws -> (library: Library, gone: String) {
        let library = try Library(folder, works: ["x", "y"], devices: 2)
        let first = try #require(try library.id(of: "x", on: "B"))
        try library.decide(.merge, on: "B")
        return (library, try library.marks("B")[first] == nil ? "x" : "y")
    }

    /// The second merge says all that the first one said, whatever another device has decided between them.
    @Test(
        arguments: [ConflictChoice.keepBoth, .renameIncoming, .renameExisting], [["A", "B"], ["B", "A"]])
    func twoMergesOfOnePair_withADecisionForBothBetweenThem_loseNothing(
        _ between: ConflictChoice, _ order: [String]
    ) throws {
        try withQuickFolder { folder in
            let (library, gone) = try merged(in: folder)
            try library.edit(gone, on: "B")
            try library.decide(between, on: "A")
            try library.decide(.merge, on: "B")
            try library.settle(order)
            try library.check()
        }
    }

    /// What A gives back to `gone`, which B has put into the other one once more since, is not removed from that.
    @Test(arguments: [["A", "B"], ["B", "A"]])
    func whatIsGivenBack_isNotRemovedFromTheWorkThatGotIt(order: [String]) throws {
        try withQuickFolder { folder in
            let (library, gone) = try merged(in: folder)
            try library.edit(gone, on: "B")
            try library.sync("B")
            try library.edit(gone, on: "A")
            try library.decide(.renameIncoming, on: "A")
            try library.decide(.merge, on: "B")
            try library.sync("A")
            try library.settle(order)
            try library.check()
        }
    }

    /// B's file lists a work under the key that it had before. Another device puts the work into another one.
    @Test(arguments: [["A", "B"], ["B", "A"]])
    func anEditOfAListing_thatGoesWithItsWork_isNotLost(order: [String]) throws {
        for work in ["x", "y"] {
            try withQuickFolder { folder in
                let library = try Library(folder, works: ["x", "y"], devices: 2)
                try library.decide(.renameIncoming, on: "B")
                try library.edit(work, on: "B")
                try library.decide(.merge, on: "A")
                try library.settle(order)
                try library.check()
            }
        }
    }

    /// B puts a work into another one, and C's file has edited it before, under the key that C has taken from it.
    @Test(arguments: [["A", "B", "C"], ["B", "A", "C"], ["C", "B", "A"]], 1...3)
    func anOlderEditOfAListing_thatGoesWithItsWork_isNotLost(order: [String], imports: Int) throws {
        try withQuickFolder { folder in
            let library = try Library(folder, works: ["x", "y", "z"], devices: 3, imports: imports)
            func decide(_ choice: ConflictChoice, _ first: String, _ second: String, on name: String) throws {
                let pair = try Set([first, second].map { try #require(try library.id(of: $0, on: name)) })
                let conflict = try library.conflicts(name).first { Set([$0.existing, $0.incoming]) == pair }
                library.devices.clock.advance()
                try library.decide(choice, #require(conflict), on: name)
            }
            try decide(.renameExisting, "y", "x", on: "C")
            try library.edit("y", on: "C")
            try library.edit("y", on: "B")
            try decide(.keepBoth, "y", "x", on: "B")
            try decide(.merge, "z", "y", on: "B")
            try library.settle(order)
            try library.check()
        }
    }

    /// Whatever devices decide that have not heard of each other, and whatever their files bring back.
    @Test(arguments: testSeeds(isTorture ? 600 : 8), [false, true])
    func decisionsAndEdits_loseNoWork(seed: UInt64, drops: Bool) throws {
        var random = SeededGenerator(seed: seed)
        let works = Array(["x", "y", "z"].prefix(2 + random.below(2)))
        try withQuickFolder { folder in
            let count = 2 + random.below(2)
            let library = try Library(folder, works: works, devices: count, imports: 1 + random.below(count))
            let names = library.devices.names
            for _ in 0..<(3 + random.below(7)) {
                let name = names[random.below(count)]
                if random.below(5) > 0 { library.devices.clock.advance() }
                switch random.below(8) {
                case 0..<5:
                    let waiting = try library.conflicts(name)
                    guard !waiting.isEmpty else { continue }
                    let both: [ConflictChoice] = [
                        .merge, .merge, .merge, .keepBoth, .renameIncoming, .renameExisting,
                    ]
                    let choices = both + (drops ? [.keepExisting, .keepIncoming] : [])
                    try library.decide(
                        choices[random.below(choices.count)], waiting[random.below(waiting.count)], on: name)
                case 5..<7: try library.edit(works[random.below(works.count)], on: name)
                default: try library.sync(name)
                }
            }
            try library.settle(names.shuffled(using: &random))
            try library.check("\(seed)")
        }
    }
}
