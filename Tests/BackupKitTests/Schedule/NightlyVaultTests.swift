import TestSupport
import Testing

@testable import BackupKit

/// A store, a vault whose key costs nothing, and a clock: nights pass in milliseconds.
final class RealHouse {
    let folder: String
    let clock = TestClock()
    let store: Store
    let vault: Vault
    var session: NightlySession
    var settings = NightlyRun.Settings()
    var storePath: String { "\(folder)/store.db" }
    var vaultPath: String { "\(folder)/vault" }
    private var options = StoreVault.Options()

    /// `reach` says how the vault is reached.
    init(_ folder: String, _ reach: (any VaultBackend) -> any VaultBackend = { $0 }) throws {
        self.folder = folder
        store = try Store.create("\(folder)/store.db", clock: clock.clock)
        vault = try Vault.create(
            reach(FolderBackend.create("\(folder)/vault")), password: utf8("secret"), polynomial: testPolynomial,
            cost: testCost)
        session = NightlySession(profile: nil, stateFolder: "\(folder)/state") { $0 == nil ? 0 : 1 }
        session.clock = clock.clock
        options.clock = clock.clock
        (options.host, options.tags) = ("house", ["library"])
        let vault = vault
        VaultAddress.opened.withLock { $0["\(folder)/vault"] = vault }
    }

    var nightly: StoreVault { nightly(of: storePath) }

    func nightly(of store: String) -> StoreVault {
        StoreVault(store: store, vaultPath: vaultPath, vault: vault, options)
    }

    @discardableResult func night() throws -> NightlyRun.Report {
        clock.advance(seconds: 86_400)
        return try session.run(settings) { nightly }.report
    }

    /// Each with so many new notes before it.
    func goodNights(_ nights: Int, writing count: Int, _ where: SourceLocation = #_sourceLocation) throws {
        for number in 0..<nights {
            try write(count, from: number * count)
            let report = try night()
            #expect(report.worst == nil, "night \(number): \(report.log)", sourceLocation: `where`)
        }
    }

    func write(_ count: Int, from first: Int = 0) throws {
        try store.write {
            for number in first..<first + count {
                _ = try store.ingest(record("n\(number)", #"{"text":"note \#(number)"}"#, type: RecordType.note))
            }
        }
    }

    func restic(_ words: String...) throws -> ProcessResult {
        try runProcess(
            ["restic", "-r", vaultPath, "--no-cache"] + words,
            environment: testEnvironment(["RESTIC_PASSWORD": "secret"]))
    }
}

func withRealHouse(
    _ reach: (any VaultBackend) -> any VaultBackend = { $0 }, _ body: (RealHouse) throws -> Void
) throws {
    try withTemporaryFolder { folder in
        let house = try RealHouse(folder, reach)
        try body(house)
        // What every test ends with: both programs find the vault sound.
        #expect(try house.vault.check(.all).findings.filter { $0.severity == .damage } == [])
        let judged = try house.restic("check", "--read-data")
        #expect(judged.status == 0, "\(judged.stderr)")
        try checkSound(house.storePath)
    }
}

@Suite(.serialized) struct NightlyVaultTests {
    @Test func nightsAtARealVault_keepWhatThePolicySays_asResticSeesIt() throws {
        try withRealHouse { house in
            try house.settings.policy.set("daily", "4")
            try house.settings.policy.set("weekly", "2")
            house.settings.checkParts = 3
            try house.goodNights(24, writing: 5)
            let state = try house.session.state()
            #expect(state.good?.census[.notes] == 120 && state.lastDrill?.isOK == true)
            let seen = try JSON(parsing: house.restic("snapshots", "--json").stdout).array ?? []
            let ours = try house.nightly.snapshots()
            #expect(Set(seen.compactMap { $0["id"]?.string }) == Set(ours.map(\.id)))
            #expect(4...8 ~= ours.count && state.snapshots == ours.count)
            // What restic would remove by the same rules, we have removed, but for what a drill has proved.
            let dry = try house.restic("forget", "--dry-run", "--json", "--keep-daily", "4", "--keep-weekly", "2")
            let removed = try JSON(parsing: dry.stdout).array?.flatMap { $0["remove"]?.array ?? [] } ?? []
            #expect(removed.count <= 2, "\(removed)")
            #expect(try house.session.drillLog.history().entries.count == 7)
        }
    }

    @Test func aLossIsTaggedInTheVault_andEveryGoodSnapshotStaysUntilItIsAcknowledged() throws {
        try withRealHouse { house in
            try house.settings.policy.set("last", "2")
            try house.write(100)
            for _ in 0..<3 { try house.night() }
            let good = try house.nightly.snapshots().map(\.id)
            _ = try house.store.delete((0..<60).map { "n\($0)" })
            let report = try house.night()
            #expect(report.worst == .incomplete && report.findings.map(\.subject).contains("notes"))
            for _ in 0..<3 { #expect(try house.night().worst == .incomplete) }
            let now = try house.nightly.snapshots()
            #expect(Set(good).isSubset(of: now.map(\.id)) && now.count == good.count + 4)
            let suspects = now.filter { $0.tags.contains(SnapshotTag.suspect) }.map(\.id)
            #expect(suspects.count == 4)
            var state = try house.session.state()
            let latest = try #require(state.suspect)
            state.acknowledge(latest, holding: try house.nightly.census(of: latest), suspects: suspects)
            try state.write(house.session.statePath)
            #expect(try house.night().worst == nil)
            #expect(try house.nightly.snapshots().count < now.count)
        }
    }

    @Test func aDamagedUndoHistory_isNamedByTheNight_andItsSnapshotIsAGoodOne() throws {
        try withRealHouse { house in
            try house.write(10)
            try house.night()
            _ = try house.store.batch(kind: "import", source: "") {
                var note = try #require(try house.store.all().first)
                (note.fields, note.modifiedAt) = ("{\"text\":\"new\"}", house.clock.now)
                return (try house.store.ingest(note), summary: "")
            }
            #expect(try house.night().worst == nil)
            try house.store.database.execute("UPDATE batch_record SET seal = seal + 1")
            let report = try house.night()
            #expect(report.worst == .incomplete && !report.isPartial, "\(report.log)")
            #expect(report.findings.map(\.subject) == ["batch 1"], "\(report.log)")
            #expect(report.findings.first?.remedy?.contains("store check") == true)
            #expect(try house.nightly.snapshots().allSatisfy { !$0.isPartial && !$0.isSuspect })
            var repair = StoreMending.Options()
            repair.accept = true
            _ = try StoreMending.run(house.store, repair)
            #expect(try house.night().worst == nil)
        }
    }

    @Test func aStoreThatIsGoneIsAnError_andMakesNothing() throws {
        try withRealHouse { house in
            try house.settings.policy.set("last", "1")
            try house.write(10)
            try house.night()
            let before = try house.nightly.snapshots()
            try AtomicFile.publish(house.storePath, as: house.storePath + ".away", replace: false)
            #expect(try house.night().worst == .notFound)
            #expect(try house.nightly.snapshots() == before)
            #expect(try FileStatus.ofName(house.storePath) == nil)
            try AtomicFile.publish(house.storePath + ".away", as: house.storePath, replace: false)
        }
    }

    @Test func whatOthersKeepInTheSameVaultIsNotTouched() throws {
        try withRealHouse { house in
            try house.settings.policy.set("last", "1")
            try house.write(10)
            var other = VaultBackupOptions()
            other.host = "house"
            _ = try VaultBackup.run(house.store, into: house.vault, other)
            (other.host, other.tags) = ("elsewhere", ["library"])
            _ = try VaultBackup.run(house.store, into: house.vault, other)
            for _ in 0..<3 { try house.night() }
            #expect(try house.vault.snapshots().snapshots.count == 4)
        }
    }

    /// Two accounts of one machine, say, whose runs have the same words.
    @Test func whatAnotherStoreKeepsUnderTheSameWordsIsNotTouched() throws {
        try withRealHouse { house in
            try house.settings.policy.set("last", "1")
            try house.write(10)
            let other = try Store.create("\(house.folder)/other.db", clock: house.clock.clock)
            try other.write { _ = try other.ingest(record("o", #"{"text":"other"}"#, type: RecordType.note)) }
            let theirs = house.nightly(of: "\(house.folder)/other.db")
            let taken = try theirs.takeSnapshot().id
            for _ in 0..<3 { try house.night() }
            #expect(try theirs.snapshots().map(\.id) == [taken])
            #expect(try house.nightly.snapshots().contains { $0.id == taken } == false)
            // Without its store nobody can tell, and whoever asks sees all of them.
            #expect(try house.nightly(of: "\(house.folder)/none.db").snapshots().count > 1)
        }
    }

    @Test func whoeverReadsTheVaultWaitsForItsLock_asLongAsHeWasTold() throws {
        try withRealHouse { house in
            try house.write(3)
            try house.night()
            let id = try #require(try house.nightly.snapshots().first?.id)
            try house.vault.locked(exclusively: true) { _ in
                let error = #expect(throws: BackupError.self) { try house.nightly.drill(id) }
                #expect(error?.code == .locked)
                let direct = Drill.Target(path: "vault:\(house.vaultPath)@\(id)", snapshot: id)
                // A vault that is busy says nothing about the backup in it.
                #expect(throws: BackupError.self) { try Drill.run(direct, Drill.Options()) }
            }
            let entry = try house.nightly.drill(id)
            #expect(entry.isOK && entry.path == house.vaultPath)
        }
    }

    @Test func nothingIsRemovedInTheNightWhoseBackupMissesAPack() throws {
        try withRealHouse { house in
            try house.settings.policy.set("last", "1")
            for night in 0..<2 {
                try house.write(20, from: night * 20)
                try house.night()
            }
            let before = try house.nightly.snapshots().map(\.id)
            let pack = try #require(try house.vault.backend.list(.data).items.first)
            let victim = "\(house.vaultPath)/\(VaultFile(.data, pack.id).path)"
            try AtomicFile.publish(victim, as: "\(house.folder)/away", replace: false)
            try house.write(20, from: 40)
            let report = try house.night()
            #expect(report.worst == .damaged && report.forgotten.isEmpty, "\(report.log)")
            #expect(try Set(house.nightly.snapshots().map(\.id)).isSuperset(of: before))
            try AtomicFile.publish("\(house.folder)/away", as: victim, replace: false)
        }
    }

    @Test func damageIsFound_frozen_andHealedOnlyWhenItIsGone() throws {
        try withRealHouse { house in
            try house.settings.policy.set("last", "1")
            house.settings.checkParts = 1
            try house.write(50)
            try house.night()
            let packs = try house.vault.backend.list(.data).items.map { VaultFile(.data, $0.id).path }
            let pack = try #require(packs.first)
            let victim = "\(house.vaultPath)/\(pack)"
            let sound = try readFile(victim)
            var bytes = sound
            bytes[bytes.count / 2] ^= 1
            try bytes.withUnsafeBytes { raw in
                try AtomicFile.write(victim, replace: true) { try $0.write(raw) }
            }
            #expect(try house.night().worst == .damaged)
            #expect(try !house.session.state().damagedParts.isEmpty)
            #expect(try house.night().forgotten.isEmpty)
            try sound.withUnsafeBytes { raw in
                try AtomicFile.write(victim, replace: true) { try $0.write(raw) }
            }
            try house.night()
            #expect(try house.session.state().damagedParts.isEmpty)
        }
    }
}
