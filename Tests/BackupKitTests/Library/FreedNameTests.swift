import TestSupport
import Testing

@testable import BackupKit

/// Whatever a store holds, its backup says, and a restore into an empty store gives.
private func checkBackup(of store: Store, _ comment: String) throws {
    try withQuickFolder { folder in
        let path = "\(folder)/backup"
        _ = try Exporter.export(store, to: path, ExportOptions(form: .layout(.directory)))
        let whole = try Verifier.verify(path, level: .deep)
        #expect(whole.findings.allSatisfy { $0.severity != .damage }, "\(comment): \(whole.findings)")
        try withStore { other in
            var options = RestoreOptions()
            options.kinds = Set(Kind.allCases)
            _ = try Restorer.restore(path, into: other.store, options)
            #expect(try other.store.digest() == store.digest(), "\(comment)")
            #expect(try waiting(other.store) == waiting(store), "\(comment)")
        }
    }
}

private func waiting(_ store: Store) throws -> Set<[String]> {
    try Set(store.conflicts().map { [$0.existing, $0.incoming] })
}

/// A decision about two files frees a name, and another file gets it on a device that has not heard of the decision.
@Suite struct FreedNameTests {
    private static let first = Archive.first

    /// Returns the name that the file has.
    @discardableResult private func bring(_ text: String, to store: Store) throws -> String {
        var path = Self.first
        _ = try store.batch(kind: "import", source: "test") {
            switch try TestSupport.place(Self.first, text, in: store) {
            case .conflict(let other), .known(let other): path = other
            case .added, .unchanged: break
            }
            return ((), summary: "")
        }
        let fields = "{\"citeKey\":\"\(text)\",\"linkedFiles\":[\"\(path)\"],\"title\":\"\(text)\"}"
        try store.take(record(text, fields, at: 1, type: RecordType.publication, zone: RecordType.libraryZone))
        return path
    }

    private func files(of store: Store) throws -> [String: String] {
        var found: [String: String] = [:]
        try store.forEachAsset { asset in
            found[asset.path] = String(decoding: try readFile("\(store.assetFolder)/\(asset.path)"), as: UTF8.self)
        }
        return found
    }

    private func links(_ work: String, in store: Store) throws -> [String] {
        try Store.links(of: #require(try store.livePublication(work)).record).sorted()
    }

    @Test(arguments: [ConflictChoice.keepExisting, .keepIncoming], [false, true])
    func anotherFileOfAFreedName_isAQuestionOfItsOwn(_ choice: ConflictChoice, isSent: Bool) throws {
        for from in 0..<2 {
            try withQuickFolder { folder in
                let comment = "\(choice), sent: \(isSent), from \(from)"
                let office = try Office(folder, skews: [0, 0])
                let (mine, theirs) = (office.stores[0], office.stores[1])
                try bring("one", to: mine)
                try office.settle()
                try bring("two", to: mine)
                if isSent { try office.sync(0) }
                let conflict = try #require(try mine.conflicts().first)
                _ = try ConflictResolver.resolve([conflict.id], with: choice, in: mine)
                try bring("three", to: theirs)
                try office.settle(from: from)
                #expect(try Set(office.stores.map { try $0.sharedDigest() }).count == 1, "\(comment)")
                let kept = choice == .keepExisting ? "one" : "two"
                for store in office.stores {
                    let path = try #require(try files(of: store).first { $0.value == "three" }).key
                    #expect(try Set(files(of: store).values) == [kept, "three"], "\(comment)")
                    #expect(try waiting(store) == [[Self.first, path]], "\(comment)")
                    #expect(
                        try links("three", in: store) == [path] && links("two", in: store) == [Self.first], "\(comment)"
                    )
                    try checkBackup(of: store, comment)
                }
                // The second question has an answer, which can be taken back, and the first answer stays.
                office.clock.advance()
                let next = try #require(try theirs.conflicts().first)
                _ = try ConflictResolver.resolve([next.id], with: .keepExisting, in: theirs)
                try office.settle()
                for store in office.stores {
                    #expect(try files(of: store) == [Self.first: kept] && waiting(store).isEmpty, "\(comment)")
                }
                _ = try theirs.undoLast()
                try office.settle()
                for store in office.stores {
                    #expect(try Set(files(of: store).values) == [kept, "three"], "\(comment)")
                    #expect(try waiting(store).count == 1, "\(comment)")
                    #expect(try links("three", in: store) != [Self.first], "\(comment)")
                    try checkBackup(of: store, comment)
                }
            }
        }
    }

    /// Three devices bring files of one name, decide and sync in an order that a seed decides.
    @Test func whoeverBringsAFileOfAName_everyFileWaitsUntilSomebodyDecides() throws {
        for seed in testSeeds(isTorture ? 150 : 25) {
            countRounds()
            try withQuickFolder { folder in
                var random = SeededGenerator(seed: seed)
                let office = try Office(folder, skews: [0, 0, 0])
                var story: [String] = []
                var keptBeside: Set<String> = []
                var brought: Set<String> = []
                var dropped: Set<String> = []
                for _ in 0..<10 {
                    office.clock.advance()
                    let number = random.below(3)
                    let store = office.stores[number]
                    switch random.below(4) {
                    case 0 where brought.count < 5:
                        let text = "t\(brought.count)"
                        brought.insert(text)
                        story.append("\(number) brings \(text) as \(try bring(text, to: store))")
                    case 1:
                        guard let conflict = try store.conflicts().first else { continue }
                        let choice = [ConflictChoice.keepExisting, .keepIncoming, .keepBoth][random.below(3)]
                        let files = try self.files(of: store)
                        let texts = [files[conflict.existing] ?? "", files[conflict.incoming] ?? ""]
                        _ = try ConflictResolver.resolve([conflict.id], with: choice, in: store)
                        story.append("\(number) \(choice) \(texts)")
                        switch choice {
                        case .keepExisting: dropped.insert(texts[1])
                        case .keepIncoming: dropped.insert(texts[0])
                        default: keptBeside.insert(texts[1])
                        }
                    default:
                        try office.sync(number)
                        story.append("\(number) syncs")
                    }
                    if random.chance(3) { try checkBackup(of: store, "seed \(seed): \(story)") }
                }
                try office.settle(from: random.below(3))
                let comment = "seed \(seed): \(story)"
                #expect(try Set(office.stores.map { try $0.sharedDigest() }).count == 1, "\(comment)")
                for store in office.stores {
                    let files = try self.files(of: store)
                    #expect(Set(files.values).isSuperset(of: brought.subtracting(dropped)), "\(comment): \(files)")
                    let open = try waiting(store)
                    for conflict in try store.conflictsOfFiles() {
                        let paths = [conflict.existing, conflict.incoming]
                        guard let one = files[paths[0]], let other = files[paths[1]], one != other else { continue }
                        #expect(open.contains(paths) || keptBeside.contains(other), "\(comment): \(paths) \(files)")
                    }
                    try checkBackup(of: store, comment)
                }
            }
        }
    }
}
