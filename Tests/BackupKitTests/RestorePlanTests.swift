import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// A dry run says what happens, for every mode and carrier; after `--mode replace` the store is what the backup says.
@Suite struct RestorePlanTests {
    /// Two of these never lie in one store, but may meet in a restore.
    private static let names = [
        ["x.pdf"], ["y.pdf", "Y.pdf"], ["sub/z.pdf", "sub"], ["caf\u{e9}.pdf", "cafe\u{301}.pdf"], ["w.pdf"],
    ]

    private func fill(_ store: Store, _ random: inout SeededGenerator) throws {
        _ = try store.batch(kind: "import", source: "test") {
            for names in Self.names where !random.chance(4) {
                try place(
                    "Attachments/\(names[random.below(names.count)])", "bytes \(random.below(3))", in: store)
            }
            for number in 0..<6 where !random.chance(3) {
                let at = Int64(random.below(50))
                _ = try store.ingest(record("r\(number)", "{\"n\":\(random.below(3))}", at: at))
            }
            for keys in [["a"], ["b"], ["caf\u{e9}", "cafe\u{301}"]] where random.chance(2) {
                let key = keys[random.below(keys.count)]
                _ = try store.putSetting(key, "\(random.below(3))", at: time(Int64(random.below(50))))
            }
            return ((), summary: "")
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

    /// All that the store holds, but no times.
    private func untimed(_ store: Store) throws -> SHA256Digest {
        var digest = ContentDigest()
        for var record in try store.all() {
            (record.createdAt, record.modifiedAt, record.fieldTimes) = (.distantPast, .distantPast, [:])
            try digest.add(record)
        }
        try store.forEachAsset { digest.add($0) }
        for setting in try store.settings() { try digest.addSetting(setting.name, setting.value) }
        return digest.finish()
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

    @Test(arguments: [CarrierFormat.directory, .tarZstandard, .zip], 0..<20)
    func aDryRunSaysWhatHappens_andReplaceGivesTheBackupsContent(_ format: CarrierFormat, round: Int) throws {
        let seed = testSeed() &+ UInt64(round)
        var random = SeededGenerator(seed: seed)
        try withTemporaryFolder { room in
            let backup = "\(room)/backup"
            let wanted = try withStore { test in
                try fill(test.store, &random)
                var options = ExportOptions(form: .layout(format))
                options.clock = test.clock.clock
                _ = try Exporter.export(test.store, to: backup, options)
                return (all: try test.store.digest(), untimed: try untimed(test.store))
            }
            try withStore { test in
                try fill(test.store, &random)
                let edits = random.chance(2) ? try disturb(test.store, &random) : []
                var options = RestoreOptions()
                options.kinds = Set(Kind.allCases)
                options.mode = random.chance(3) ? .merge : .replace
                let policies = options.mode == .replace ? [SyncPolicy.honor, .resurrect] : SyncPolicy.allCases
                options.policy = policies[random.below(policies.count)]
                let before = (try test.store.digest(), try visibleFiles(of: test.store))
                options.dryRun = true
                let plan = try Restorer.restore(backup, into: test.store, options)
                #expect(try (test.store.digest(), visibleFiles(of: test.store)) == before, "seed \(seed)")
                options.dryRun = false
                let result = try Restorer.restore(backup, into: test.store, options)
                #expect(facts(plan) == facts(result), "seed \(seed)")
                let files = Set(try visibleFiles(of: test.store).values.map { String(decoding: $0, as: UTF8.self) })
                #expect(edits.isSubset(of: files), "seed \(seed): \(edits.subtracting(files))")
                if options.mode == .replace, edits.isEmpty {
                    #expect(try untimed(test.store) == wanted.untimed, "seed \(seed)")
                    // What is brought back with `resurrect` is newer than every delete, and what says the same stays as
                    // it is: the times are not the backup's.
                    if options.policy == .honor { #expect(try test.store.digest() == wanted.all, "seed \(seed)") }
                }
                if result.batch != nil {
                    _ = try test.store.undoLast()
                    let after = (try test.store.digest(), try visibleFiles(of: test.store))
                    #expect(after.0 == before.0, "seed \(seed): undo of \(options.mode) \(options.policy)")
                    #expect(after.1.filter { before.1[$0.key] != nil } == before.1, "seed \(seed)")
                    // A file that had been lost may be back, where the store has met its bytes since.
                    for (path, bytes) in after.1 where before.1[path] == nil {
                        let text = String(decoding: bytes, as: UTF8.self)
                        #expect(try test.store.asset(path)?.digest == .of(text), "seed \(seed): \(path)")
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
