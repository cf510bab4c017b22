import TestSupport
import Testing

@testable import BackupKit

/// Records that are kept on this device only outlive everything that replaces the others.
@Suite struct KeptOnThisDeviceTests {
    /// A store with records that the backup has and others that it lacks, some of them kept on this device only.
    private func disturb(_ store: Store, _ random: inout SeededGenerator) throws {
        for number in 0..<14 {
            let name = "r\(number)"
            let isKnown = number < 10
            switch random.below(6) {
            case 0 where isKnown: _ = try store.setLocal([name])
            case 1 where isKnown:
                _ = try store.setLocal([name])
                try store.take(record(name, "{\"n\":\(number),\"mine\":true}", at: 5000 + Int64(number), local: true))
            case 2: try store.take(record("only here \(number)", "{\"n\":1}", at: Int64(number), local: true))
            case 3: try store.take(record(name, "{\"n\":\"newer\"}", at: 6000))
            case 4 where isKnown: _ = try store.delete([name])
            default: break
            }
        }
    }

    @Test(arguments: testSeeds(isTorture ? 200 : 30))
    func aReplacingRestoreNeitherRemovesNorChangesNorSharesThem(seed: UInt64) throws {
        countRounds()
        try withStore { test in
            var random = SeededGenerator(seed: seed)
            let store = test.store
            for number in 0..<10 { try store.take(record("r\(number)", "{\"n\":\(number)}", at: Int64(number))) }
            let backup = "\(test.folder)/backup"
            _ = try Exporter.export(store, to: backup, ExportOptions(form: .layout(.directory)))
            test.clock.advance()
            try disturb(store, &random)
            let kept = try store.all().filter { $0.isLocalOnly && !$0.isDeleted }
            var options = RestoreOptions()
            options.mode = .replace
            options.policy = random.chance(2) ? .honor : .resurrect
            _ = try Restorer.restore(backup, into: store, options)
            let after = try store.all().filter { $0.isLocalOnly && !$0.isDeleted }
            #expect(after == kept, "seed \(seed)")
        }
    }

    /// Equal fields are no reason to share it, and neither is an edit that wins over everything else.
    @Test func neitherOverwritingNorEditingMakesACloudRecordOfThem() throws {
        try withStore { test in
            let store = test.store
            for (name, fields) in [("same", "{\"x\":1}"), ("other", "{\"x\":2}")] {
                try store.take(record(name, "{\"x\":1}", at: 1, local: true))
                for resurrect in [false, true] {
                    let incoming = record(name, fields, at: 1)
                    try store.write { _ = try store.overwrite(with: incoming, resurrect: resurrect) }
                    try store.write { _ = try store.edit(with: incoming) { _, merged, _, _ in merged } }
                }
            }
            let all = try store.all()
            #expect(all.map(\.isLocalOnly) == [true, true] && all.allSatisfy { $0.fields == "{\"x\":1}" })
        }
    }

    /// `store set-local` leaves a tombstone under the old name; the copy goes on to stand for the record.
    @Test func aCopyThatWasMadeLocalStaysWhenABackupWithTheRecordReplacesTheStore() throws {
        try withStore { test in
            let store = test.store
            try store.take(record("r", "{\"x\":1}", at: 1))
            let backup = "\(test.folder)/backup"
            _ = try Exporter.export(store, to: backup, ExportOptions(form: .layout(.directory)))
            test.clock.advance()
            _ = try store.setLocal(["r"])
            let before = try store.all()
            var options = RestoreOptions()
            options.mode = .replace
            _ = try Restorer.restore(backup, into: store, options)
            #expect(try store.all() == before)
        }
    }
}
