import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// Where a backup of these tests lies.
enum BackupPlace: String, CaseIterable, Sendable {
    case folder, archive, zip, vault

    /// Makes a backup in `room` and returns its address.
    func backUp(_ store: Store, in room: String, _ clock: Clock) throws -> String {
        let path = "\(room)/backup"
        if self == .vault {
            let vault = try newVault(at: path)
            var options = VaultBackupOptions()
            options.clock = clock
            _ = try VaultBackup.run(store, into: vault, options)
            // Restores open it under its address, and know its password.
            VaultAddress.opened.withLock { $0[path] = vault }
            return VaultAddress.scheme + path
        }
        let format = [BackupPlace.folder: CarrierFormat.directory, .archive: .tarZstandard, .zip: .zip][self]
        var options = ExportOptions(form: .layout(format ?? .tar))
        options.clock = clock
        _ = try Exporter.export(store, to: path, options)
        return path
    }

    static func forget(_ room: String) { VaultAddress.opened.withLock { $0["\(room)/backup"] = nil } }
}

/// A dry run says what happens, for every mode and carrier; after `--mode replace` the store is what the backup says.
@Suite struct RestorePlanTests {
    /// Two of these never lie in one store, but may meet in a restore.
    private static let names = [
        ["x.pdf"], ["y.pdf", "Y.pdf"], ["sub/z.pdf", "sub"], ["caf\u{e9}.pdf", "cafe\u{301}.pdf"], ["w.pdf"],
    ]

    /// Files, settings, records that are alive, deleted or kept on this device, publications that share cite keys, and what
    /// people have decided.
    private func fill(_ test: TestStore, _ random: inout SeededGenerator) throws {
        let store = test.store
        _ = try store.batch(kind: "import", source: "test") {
            for names in Self.names where !random.chance(4) {
                try place(
                    "Attachments/\(names[random.below(names.count)])", "bytes \(random.below(3))", in: store)
            }
            for number in 0..<8 where !random.chance(3) {
                let (at, fate) = (Int64(random.below(50)), random.below(6))
                let fields = fate == 0 ? "{}" : "{\"n\":\(random.below(3))}"
                _ = try store.ingest(record("r\(number)", fields, at: at, local: fate == 1, deleted: fate == 0))
            }
            for number in 0..<4 where !random.chance(3) { try publish(number, in: store, &random) }
            for keys in [["a"], ["b"], ["caf\u{e9}", "cafe\u{301}"]] where random.chance(2) {
                let key = keys[random.below(keys.count)]
                _ = try store.putSetting(key, "\(random.below(3))", at: time(Int64(random.below(50))))
            }
            if let one = try store.asset("Attachments/x.pdf"), let other = try store.asset("Attachments/w.pdf"),
                one.digest != other.digest
            {
                try store.noteConflict(
                    kind: "attachment", subject: one.path, existing: one.path, incoming: other.path)
            }
            return ((), summary: "")
        }
        for _ in 0..<random.below(4) {
            test.clock.advance(seconds: Int64(1 + random.below(5)))
            let live = try store.all().filter { !$0.isDeleted && !$0.isLocalOnly && $0.id.zone == "Z" }
            if let conflict = try store.conflicts().first, random.chance(3) {
                _ = try ConflictResolver.resolve([conflict.id], with: .keepBoth, in: store)
            } else if !live.isEmpty {
                let name = live[random.below(live.count)].id.description
                _ = try random.chance(2) ? store.setLocal([name]) : store.delete([name])
            }
        }
    }

    /// A publication under one of two keys; two of one key are a conflict.
    private func publish(_ number: Int, in store: Store, _ random: inout SeededGenerator) throws {
        let key = "k\(random.below(2))"
        let fields =
            "{\"citeKey\":\"\(key)\",\"entryType\":\"misc\",\"title\":\"Work \(number)\","
            + "\"author\":\"Author\(number), A.\",\"year\":\"2020\",\"note\":\"\(random.below(2))\"}"
        let new = record(
            "p\(number)", fields, at: Int64(random.below(50)), type: RecordType.publication,
            zone: RecordType.libraryZone)
        _ = try store.ingest(new)
        try store.forEachLive(type: RecordType.publication) { stored in
            guard stored.record.id != new.id, CiteKeys.key(of: stored.record) == key else { return }
            try store.noteConflict(
                kind: "publication", subject: key, existing: stored.record.localID, incoming: new.localID)
        }
    }

    /// Apps write into the files of the folder, or put others in their place; some are removed.
    private func disturb(_ store: Store, _ random: inout SeededGenerator) throws -> Set<String> {
        var edits: Set<String> = []
        try store.forEachAsset { asset in
            let path = "\(store.assetFolder)/\(asset.path)"
            switch random.below(9) {
            case 0:
                let text = "bytes, annotated \(random.below(9))"
                try writeFile(path, text)
                edits.insert(text)
            case 1: unlink(path)
            default: break
            }
        }
        return edits
    }

    /// What a store has to hold after `--mode replace`: the backup, with what is kept on this device only and what was
    /// deleted later.
    private func wanted(_ store: [Record], _ backup: [Record], resurrect: Bool) -> [Record] {
        func isConflict(_ record: Record) -> Bool { record.type == RecordType.conflict }
        let mine = Dictionary(grouping: store.filter { !isConflict($0) }, by: \.localID)
        let theirs = Dictionary(grouping: backup.filter { !isConflict($0) }, by: \.localID)
        var wanted: [Record] = []
        for id in Set(mine.keys).union(theirs.keys) {
            let (here, there) = (mine[id] ?? [], theirs[id] ?? [])
            let copy = here.first { $0.isLocalOnly && !$0.isDeleted }
            let tombstones = (here + there).filter { $0.isDeleted && $0.id != copy?.id }
            let dead = tombstones.max { $0.modifiedAt < $1.modifiedAt }.map { latest in
                tombstones.filter { $0.id == latest.id }.reduce(latest) { $0.joined(withTombstone: $1) }
            }
            if let copy {
                wanted += [copy] + (dead.map { [$0] } ?? [])
                continue
            }
            let buried = here.first(where: \.isDeleted)
            let alive = there.first { !$0.isDeleted }.flatMap { record -> Record? in
                guard let buried, !resurrect else { return record }
                // A copy that is kept on a device is as old as the tombstone beside it.
                let isCopy = record.isLocalOnly && record.id != buried.id
                return record.latestTime > buried.modifiedAt || isCopy && record.latestTime == buried.modifiedAt
                    ? record : nil
            }
            if let alive { wanted.append(alive) }
            if let dead, dead.id != alive?.id { wanted.append(dead) }
        }
        return wanted
    }

    /// What has to be alive after a merge: all that one side has alive and the other did not delete later.
    private func outliving(_ store: [Record], _ backup: [Record], resurrect: Bool) -> Set<String> {
        func deleted(_ id: String, in records: [Record]) -> Timestamp {
            records.filter { $0.localID == id && $0.isDeleted }.map(\.modifiedAt).max() ?? .distantPast
        }
        let mine = store.filter { record in
            record.isLocalOnly || deleted(record.localID, in: backup) < record.latestTime
        }
        let theirs = backup.filter { resurrect || deleted($0.localID, in: store) < $0.latestTime }
        return Set((mine + theirs).filter { !$0.isDeleted && $0.type != RecordType.conflict }.map(\.localID))
    }

    /// Records as texts that can be compared; without times where a restore gives new ones.
    private func texts(_ records: [Record], timed: Bool) -> Set<String> {
        Set(
            records.filter { $0.type != RecordType.conflict }.map { record in
                var record = record
                if !timed { (record.createdAt, record.modifiedAt, record.fieldTimes) = (time(0), time(0), [:]) }
                if !timed, record.isDeleted { record.deletedAt = time(0) }
                var line = RecordLines()
                var pen = JSONPen()
                _ = line.append(record, &pen)
                return String(decoding: line.bytes, as: UTF8.self)
            })
    }

    /// Files, settings and the pairs of works that wait for somebody.
    private func others(_ store: Store) throws -> Set<String> {
        var found = Set(try store.settings().map { "setting \(Array($0.name.utf8)) \($0.value)" })
        try store.forEachAsset { found.insert("file \(Array($0.path.utf8)) \($0.digest)") }
        for conflict in try store.conflicts() {
            found.insert("conflict \([conflict.existing, conflict.incoming].sorted())")
        }
        return found
    }

    /// Conflicts between one of these files and another one that has the same bytes now: there is nothing to decide.
    private func conflictsOfEqualFiles(_ paths: Set<String>, in store: Store) throws -> Set<String> {
        var assets: [Asset] = []
        try store.forEachAsset { assets.append($0) }
        let pairs = assets.filter { paths.contains($0.path) }.flatMap { one in
            assets.filter { $0.digest == one.digest }.map { "conflict \([one.path, $0.path].sorted())" }
        }
        return Set(pairs)
    }

    private func everything(in store: Store) throws -> Set<String> {
        try others(store).union(store.all().map { String(decoding: $0.jsonText, as: UTF8.self) })
    }

    private func facts(_ result: IntakeResult) -> [String] {
        [
            "added \(result.added)", "updated \(result.updated)", "unchanged \(result.unchanged)",
            "protected \(result.protected)", "conflicts \(result.conflicts)", "removed \(result.removed)",
            "kept \(result.kept)", "quarantined \(result.quarantined)", "files added \(result.attachmentsAdded)",
            "files unchanged \(result.attachmentsUnchanged)", "files mended \(result.attachmentsMended)",
            "settings \(result.settingsChanged)",
        ] + result.findings.map { "\($0.code) \($0.severity) \($0.subject) \($0.message)" }
    }

    @Test(arguments: BackupPlace.allCases, 0..<(isTorture ? 100 : 8))
    func aDryRunSaysWhatHappens_andReplaceGivesTheBackupsContent(_ place: BackupPlace, round: Int) throws {
        countRounds()
        let seed = testSeed() &+ UInt64(round)
        var random = SeededGenerator(seed: seed)
        try withTemporaryFolder { room in
            defer { BackupPlace.forget(room) }
            var backup = ""
            let (theirs, otherThings) = try withStore { test in
                try fill(test, &random)
                backup = try place.backUp(test.store, in: room, test.clock.clock)
                return (try test.store.all(), try others(test.store))
            }
            try withStore { test in
                try fill(test, &random)
                // Later than all that was done before the backup: a restore sets back times of the future.
                test.clock.advance(seconds: 30)
                let edits = random.chance(2) ? try disturb(test.store, &random) : []
                var options = RestoreOptions()
                options.kinds = Set(Kind.allCases)
                options.mode = random.chance(3) ? .merge : .replace
                let policies = options.mode == .replace ? [SyncPolicy.honor, .resurrect] : SyncPolicy.allCases
                options.policy = policies[random.below(policies.count)]
                let what = Comment(rawValue: "seed \(seed): \(options.mode), \(options.policy), \(place)")
                let before = (try test.store.digest(), try visibleFiles(of: test.store))
                let (mine, all) = (try test.store.all(), try everything(in: test.store))
                options.dryRun = true
                let plan = try Restorer.restore(backup, into: test.store, options)
                #expect(try (test.store.digest(), visibleFiles(of: test.store)) == before, what)
                options.dryRun = false
                let result = try Restorer.restore(backup, into: test.store, options)
                #expect(facts(plan) == facts(result), what)
                let files = Set(try visibleFiles(of: test.store).values.map { String(decoding: $0, as: UTF8.self) })
                #expect(edits.isSubset(of: files), "\(what): \(edits.subtracting(files))")
                let now = try test.store.all()
                // By a merge, one copy that is kept on a device has a say in another one.
                for copy in mine where copy.isLocalOnly && !copy.isDeleted && copy.type != RecordType.conflict {
                    let after = now.first { $0.id == copy.id }
                    let isKept = options.mode == .merge ? after?.isLocalOnly == true : after == copy
                    #expect(isKept && after?.isDeleted == false, "\(what): \(copy)")
                }
                if options.policy != .quarantine, options.mode == .merge {
                    let lost = outliving(mine, theirs, resurrect: options.policy == .resurrect)
                        .subtracting(now.filter { !$0.isDeleted }.map(\.localID))
                    #expect(lost.isEmpty, "\(what)")
                }
                if options.mode == .replace {
                    // What is brought back with `resurrect` is newer than every delete, and what says the same stays as
                    // it is: the times are not the backup's.
                    let isTimed = options.policy == .honor
                    let wanted = texts(wanted(mine, theirs, resurrect: !isTimed), timed: isTimed)
                    let found = texts(now, timed: isTimed)
                    #expect(found.subtracting(wanted) == wanted.subtracting(found), what)
                    if edits.isEmpty { #expect(try others(test.store) == otherThings, what) }
                }
                // What the plan calls unchanged is unchanged.
                if edits.isEmpty {
                    let again = try Restorer.restore(backup, into: test.store, options)
                    #expect(again.writes == 0, "\(what): the second restore wrote: \(facts(again))")
                }
                if let batch = result.batch {
                    let undone = try test.store.undoLast(batch)
                    // A file that was missing or damaged before stays as the backup has it, and is named.
                    let staying = Set(undone.fileFindings.filter { $0.code == .protected }.map(\.subject))
                    let after = (try test.store.digest(), try visibleFiles(of: test.store))
                    let changed = try everything(in: test.store).symmetricDifference(all).sorted()
                    let settled = try conflictsOfEqualFiles(staying, in: test.store)
                    let isNamed = changed.allSatisfy { text in
                        settled.contains(text) || staying.contains { text.hasPrefix("file \(Array($0.utf8))") }
                    }
                    #expect(after.0 == before.0 || isNamed && !staying.isEmpty, "\(what): undo: \(changed)")
                    #expect(after.1.filter { before.1[$0.key] != nil } == before.1, what)
                    // A file that had been lost may be back, where the store has met its bytes since.
                    for (path, bytes) in after.1 where before.1[path] == nil {
                        let text = String(decoding: bytes, as: UTF8.self)
                        #expect(try test.store.asset(path)?.digest == .of(text), "\(what): \(path)")
                    }
                }
                // What was disturbed is no defect of the store.
                for asset in try test.store.assets() { try Directory.removeTree("\(test.store.assetFolder)/\(asset)") }
                _ = try test.store.batch(kind: "clear", source: "") {
                    for path in try test.store.assets() {
                        if let asset = try test.store.asset(path) { try test.store.removeAsset(asset) }
                    }
                    return ((), summary: "")
                }
            }
        }
    }
}

extension Store {
    fileprivate func assets() throws -> [String] {
        var paths: [String] = []
        try forEachAsset { paths.append($0.path) }
        return paths
    }
}
