import TestSupport
import Testing

@testable import BackupKit

/// A vault that is far away: listings are late, and the line breaks. What is above the backend must be ready for that before
/// there is such a backend.
@Suite(.serialized) struct DistantVaultTests {
    @Test func nightsPassAsTheyDoInAFolderThoughListingsAreLate() throws {
        try withRealHouse({ DistantBackend($0, settling: 0.03) }) { house in
            try house.settings.policy.set("last", "2")
            house.settings.checkParts = 2
            try house.goodNights(6, writing: 40)
            // What was written a moment ago is known to whoever takes the lock next.
            let all = try house.nightly.snapshots().map(\.id)
            #expect(3...4 ~= all.count, "two, what was drilled, and what is new")
            try house.vault.locked(exclusively: true) { held in
                let snapshots = try held.snapshots().snapshots
                #expect(Set(snapshots.map(\.id.hex)) == Set(all))
                try held.forget(snapshots.dropLast().map(\.id))
            }
            var options = PruneOptions()
            options.maxUnused = 0
            try house.vault.locked(exclusively: true) { held in _ = try held.prune(options) }
            #expect(try house.vault.locked { try $0.check(.all) }.findings == [])
            #expect(try house.vault.locked { try $0.snapshots().snapshots.map(\.id.hex) } == [all.last])
        }
    }

    /// Whatever call fails, before its work or after: a night says that it may be tried again, nothing is called damaged,
    /// nothing that was kept is lost, and the first quiet night makes up for it.
    @Test func nightsOverALineThatBreaksEndWellOrSaySo() throws {
        var generator = SeededGenerator(seed: testSeed())
        for percent in [1, 2, 5, 20] {
            let seed = generator.next()
            var distant: DistantBackend?
            try withRealHouse({
                let made = DistantBackend($0, settling: 0.002, seed: seed)
                distant = made
                return made
            }) { house in
                let line = try #require(distant)
                try house.settings.policy.set("last", "2")
                house.settings.checkParts = 2
                try house.write(30)
                #expect(try house.night().worst == nil)
                var kept: [String] = []
                for night in 1...12 {
                    try house.write(30, from: night * 30)
                    line.fail(percent: percent)
                    let failures = line.failures
                    let report = try house.night()
                    workByHand(house)
                    line.fail(percent: 0)
                    let context: Comment = "seed \(seed), \(percent) %, night \(night): \(report.log)"
                    #expect([nil, .temporary].contains(report.worst) || line.failures > failures, context)
                    #expect(report.worst != .damaged && report.worst != .notFound, context)
                    // A lock that could not be removed is ours, and this process lives on.
                    pause(line.settling * 2)
                    _ = try house.vault.unlock(all: true)
                    pause(line.settling * 2)
                    let check = try house.vault.check(.all)
                    #expect(check.isSound, "\(context) \(check.findings)")
                    let now = try house.nightly.snapshots().map(\.id)
                    // By the policy the last one is never let go while only one is added.
                    #expect(kept.last.map(now.contains) ?? true, context)
                    kept = now
                }
                #expect(line.failures > 0)
                let last = try house.night()
                #expect(last.worst == nil, "seed \(seed): \(last.log)")
                #expect(try house.session.state().good?.census[.notes] == 390)
                #expect(try house.vault.check(.all).findings.filter { $0.severity != .note } == [])
            }
        }
    }

    /// None of this is kept from its end by anything but the line, and none of it takes the line for damage.
    private func workByHand(_ house: RealHouse) {
        func attempt(exclusively: Bool = false, _ work: (Vault) throws -> Void) {
            do {
                try house.vault.locked(exclusively: exclusively, work)
            } catch { #expect([.temporary, .locked].contains((error as? BackupError)?.code), "\(error)") }
        }
        attempt { try #expect($0.check(.all).isSound) }
        attempt(exclusively: true) { held in
            var options = PruneOptions()
            options.maxUnused = 0
            _ = try held.prune(options)
        }
        attempt(exclusively: true) { try #expect($0.repair(saving: "\(house.folder)/saved").packs == 0) }
        attempt { try #expect($0.listKeys().findings.isEmpty) }
    }
}
