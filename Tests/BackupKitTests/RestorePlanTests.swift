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
            for key in ["a", "b"] where random.chance(2) {
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
                return try test.store.digest()
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
                    #expect(try test.store.digest() == wanted, "seed \(seed)")
                }
                if result.batch != nil {
                    _ = try test.store.undoLast()
                    let after = try (test.store.digest(), visibleFiles(of: test.store))
                    #expect(
                        after == before,
                        "seed \(seed): undo of \(options.mode) \(options.policy) \(edits) \(before.1.keys.sorted()) \(after.1.keys.sorted()) \(plan.findings.map(\.subject))"
                    )
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
