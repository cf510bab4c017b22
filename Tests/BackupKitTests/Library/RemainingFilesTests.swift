import TestSupport
import Testing

@testable import BackupKit

/// A publication that `--mode replace` leaves finds the bytes that it linked before, and one that comes finds the backup's.
@Suite struct RemainingFilesTests {
    private static let paths = ["Attachments/p.pdf", "Attachments/P.pdf", "Attachments/q.pdf"]

    /// The bytes that each living publication links, by its local id.
    private func linked(_ store: Store) throws -> [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        for record in try store.all() where !record.isDeleted && record.type == RecordType.publication {
            var bytes: Set<String> = []
            for path in try Store.links(of: record) where try store.asset(path) != nil {
                bytes.insert(String(decoding: try readFile("\(store.assetFolder)/\(path)"), as: UTF8.self))
            }
            found[record.localID] = bytes
        }
        return found
    }

    private func publications(_ store: Store) throws -> [String: Record] {
        let live = try store.all().filter { !$0.isDeleted && $0.type == RecordType.publication }
        return Dictionary(live.map { ($0.localID, $0) }, uniquingKeysWith: { $1 })
    }

    /// What an import of an entry with its file does; each has a cite key of the others.
    private func add(_ work: String, _ path: String, to store: Store) throws {
        guard try store.livePublication(work) == nil else { return }
        let now = store.clock.now()
        _ = try store.batch(kind: "import", source: "test") { () -> (Void, summary: String) in
            let bytes = "PDF of \(work)"
            var asset = Asset(path: path, size: Int64(bytes.utf8.count), digest: .of(bytes))
            if try store.asset(path) == nil {
                var names = try store.namesApart().names
                asset = asset.renamed(try store.nameApart(asset, from: &names) ?? path)
            }
            let outcome = try place(asset.path, bytes, in: store)
            let link =
                switch outcome {
                case .conflict(let other), .known(let other): other
                case .added, .unchanged: asset.path
                }
            let others = try publications(store).keys.sorted()
            _ = try store.ingest(
                Record(
                    id: RecordID(zone: RecordType.libraryZone, name: work), type: RecordType.publication,
                    localID: work, fields: "{\"citeKey\":\"k\",\"linkedFiles\":[\"\(link)\"],\"title\":\"\(work)\"}",
                    createdAt: now, modifiedAt: now))
            for other in others {
                try store.noteConflict(kind: "publication", subject: "k", existing: other, incoming: work)
            }
            return ((), summary: "")
        }
    }

    private func step(_ store: Store, _ random: inout SeededGenerator) throws -> String {
        let work = ["a", "b", "c", "d"][random.below(4)]
        switch random.below(8) {
        case 0..<3:
            let path = Self.paths[random.below(Self.paths.count)]
            try add(work, path, to: store)
            return "add \(work) with \(path)"
        case 3..<6:
            let shared = try publications(store).filter { !$0.value.isLocalOnly }
            let conflict = try store.conflicts().first { conflict in
                [conflict.existing, conflict.incoming].allSatisfy { shared[$0] != nil }
            }
            guard let conflict else { return "" }
            _ = try ConflictResolver.resolve([conflict.id], with: .merge, in: store)
            return "merge \(conflict.existing) and \(conflict.incoming)"
        case 6 where try store.livePublication(work) != nil:
            _ = try store.delete([work])
            return "delete \(work)"
        case 7 where try store.livePublication(work) != nil:
            _ = try random.chance(2) ? store.setLocal([work]) : store.enableCloud([work])
            return "keep \(work) here, or give it back"
        default: return ""
        }
    }

    @Test(arguments: testSeeds(isTorture ? 250 : 10))
    func whatAReplaceLeaves_findsItsFiles(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withTemporaryFolder { room in
            try withStore { test in
                let store = test.store
                var backups: [(path: String, records: [String: Record], files: [String: Set<String>])] = []
                var log: [String] = []
                for _ in 0..<16 {
                    test.clock.advance(seconds: Int64(1 + random.below(5)))
                    log.append(try step(store, &random))
                    if random.chance(4) {
                        let path = "\(room)/\(backups.count)"
                        var options = ExportOptions(form: .layout(.directory))
                        options.clock = test.clock.clock
                        _ = try Exporter.export(store, to: path, options)
                        backups.append((path, try publications(store), try linked(store)))
                        log.append("backup \(backups.count - 1)")
                    }
                    guard random.chance(5), let backup = backups.randomElement(using: &random) else { continue }
                    log.append("replace by \(backup.path)")
                    let told = Comment(rawValue: log.joined(separator: "; "))
                    let before = try linked(store)
                    var options = RestoreOptions()
                    options.mode = .replace
                    options.policy = random.chance(4) ? .resurrect : .honor
                    options.dryRun = true
                    let plan = try Restorer.restore(backup.path, into: store, options)
                    options.dryRun = false
                    let done = try Restorer.restore(backup.path, into: store, options)
                    #expect(plan.findings == done.findings && plan.attachmentsRemoved == done.attachmentsRemoved, told)
                    let after = try linked(store)
                    for (id, record) in try publications(store) {
                        let version = backup.records[id]
                        let isLeft = version.map { record.isLocalOnly || record.hasTakenIn(unknownTo: $0) } ?? true
                        let wanted = (isLeft ? before[id] : backup.files[id]) ?? []
                        #expect(wanted.isSubset(of: after[id] ?? []), "\(id) of \(told): \(wanted) in \(after)")
                    }
                    let again = try Restorer.restore(backup.path, into: store, options)
                    #expect(again.writes == 0, "\(told): \(again.plan)")
                }
            }
        }
    }
}
