import Glibc
import Synchronization
import TestSupport
import Testing

@testable import BackupKit

private func withVault(_ body: (String, Vault) throws -> Void) throws {
    try withTemporaryFolder { folder in
        let path = try ResticVault.copy(to: folder)
        try body(path, try ResticVault.open(path))
    }
}

/// Dies at the n-th change, as a process does that is killed, or the disk is full from then on.
private final class FailingBackend: VaultBackend {
    private let inner: any VaultBackend
    private let left: Mutex<Int>
    private let failure: ErrorCode

    init(_ inner: any VaultBackend, after changes: Int, _ failure: ErrorCode = .failed) {
        self.inner = inner
        self.failure = failure
        left = Mutex(changes)
    }

    var location: String { inner.location }
    var settling: Double { inner.settling }
    func list(_ kind: VaultFile.Kind) throws -> VaultListing { try inner.list(kind) }
    func size(_ file: VaultFile) throws -> Int64? { try inner.size(file) }
    func read(_ file: VaultFile, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try inner.read(file, at: offset, into: buffer)
    }

    private func spend() throws {
        let isOver = left.withLock { left in
            left -= 1
            return left < 0
        }
        if isOver { throw BackupError(failure, "no further", at: location) }
    }

    func write(_ file: VaultFile, _ bytes: UnsafeRawBufferPointer) throws {
        try spend()
        try inner.write(file, bytes)
    }

    func remove(_ files: [VaultFile]) throws {
        // A batch may stop anywhere within.
        for file in files {
            if failure != .destinationFull { try spend() }
            try inner.remove([file])
        }
    }

    func sweep() throws -> Int { try inner.sweep() }
}

@Suite struct VaultPruneTests {
    @Test func nothingIsRemovedThatASnapshotNeeds() throws {
        try withVault { path, vault in
            let before = try vault.prune()
            #expect(before.wasNothing && before.bytesFreed == 0)
            let oldest = try vault.snapshots().snapshots[0]
            try vault.locked(exclusively: true) { held in
                try held.forget([oldest.id])
                var options = PruneOptions()
                options.dryRun = true
                options.maxUnused = 0
                let rehearsal = try held.prune(options)
                #expect(rehearsal.bytesFreed > 900_000 && rehearsal.packsRepacked > 0)
                #expect(try vault.check().isSound)
                options.dryRun = false
                let result = try held.prune(options)
                #expect(result == rehearsal)
                #expect(result.bytesUnusedLeft == 0)
            }
            try ResticVault.expectSound(path)
            let again = try vault.prune()
            #expect(again.wasNothing && again.bytesUnused == 0)
            try ResticVault.restic(path, "restore", "latest", "--target", "\(path)-out")
            try ResticVault.restic(path, "prune", "--max-unused", "0")
            try ResticVault.expectSound(path)
        }
    }

    @Test func aVaultWithoutSnapshotsBecomesEmpty() throws {
        try withVault { path, vault in
            try vault.locked(exclusively: true) { held in
                try held.forget(held.snapshots().snapshots.map(\.id))
                _ = try held.prune()
            }
            #expect(try vault.backend.list(.data).items.count == 0)
            try ResticVault.expectSound(path)
        }
    }

    @Test func littleThatIsUnusedStaysUnlessAskedFor() throws {
        try withVault { path, vault in
            let oldest = try vault.snapshots().snapshots[0]
            try vault.locked(exclusively: true) { held in
                try held.forget([oldest.id])
                var options = PruneOptions()
                options.onlyAbove = 0.9
                #expect(try held.prune(options).wasNothing)
                options = PruneOptions()
                options.maxUnused = 10
                #expect(try held.prune(options).packsRepacked == 0)
            }
            try ResticVault.expectSound(path)
        }
    }

    @Test(arguments: [ErrorCode.failed, .destinationFull])
    func wherePruningStopsTheVaultIsSoundAndTheNextFinishes(_ failure: ErrorCode) throws {
        try withVault { original, vault in
            let oldest = try vault.snapshots().snapshots[0]
            try vault.forget([oldest.id])
            // An interrupted backup has left a pack, and a restic that was killed half of one.
            let stray = utf8("a pack that no index names, but for its content")
            _ = try stray.withUnsafeBytes { try vault.backend.store(.data, $0) }
            var options = PruneOptions()
            options.maxUnused = 0
            var changes = 0
            while true {
                var isDone = false
                try withTemporaryFolder { folder in
                    let path = "\(folder)/v"
                    _ = try runProcess(["cp", "-a", original, path])
                    let sound = try ResticVault.open(path)
                    let failing = sound.with(FailingBackend(sound.backend, after: changes, failure))
                    do {
                        isDone = try failing.prune(options).findings.isEmpty
                    } catch let error as BackupError { #expect(error.code == failure) }
                    // restic's word for it is asked for less often: it takes half a second.
                    let between = try sound.check(.all)
                    #expect(between.isSound, "after \(changes) changes: \(between.findings)")
                    if changes % 4 == 1 { try ResticVault.restic(path, "check", "--read-data") }
                    let rest = try sound.prune(options)
                    #expect(rest.bytesUnusedLeft == 0)
                    let after = try sound.check(.all)
                    #expect(after.findings == [], "after \(changes) changes")
                    #expect(try sound.prune(options).wasNothing)
                    #expect(try sound.snapshots().snapshots.count == 1)
                }
                changes += 1
                if isDone { break }
                #expect(changes < 60)
                if changes >= 60 { break }
            }
            #expect(changes > 2)
        }
    }

    @Test func nothingIsPrunedWhileSomethingCannotBeRead() throws {
        try withVault { path, vault in
            let garbage = utf8("garbage")
            for kind in [VaultFile.Kind.snapshot, .index] {
                let id = try garbage.withUnsafeBytes { try vault.backend.store(kind, $0) }
                #expect(errorCode { _ = try vault.prune() } == .damaged)
                try vault.backend.remove([VaultFile(kind, id)])
            }
            for pack in try vault.loadIndex().blobs.packs.map(\.id) {
                let moved = try readFile("\(path)/\(VaultFile(.data, pack).path)")
                try vault.backend.remove([VaultFile(.data, pack)])
                let left = try VaultFile.Kind.allCases.map { try vault.backend.list($0).sizes }
                #expect(errorCode { _ = try vault.prune() } == .damaged)
                #expect(try VaultFile.Kind.allCases.map { try vault.backend.list($0).sizes } == left)
                try moved.withUnsafeBytes { try vault.backend.write(VaultFile(.data, pack), $0) }
            }
            try ResticVault.expectSound(path)
        }
    }

    /// What a folder needs below it is not known then, so all of it would pass for unneeded.
    @Test func nothingIsPrunedWhileATreeIsDamaged() throws {
        try withVault { path, vault in
            let index = try vault.loadIndex().blobs
            let snapshots = try vault.snapshots().snapshots
            #expect(snapshots.count == 2)
            for tree in snapshots.compactMap(\.file.tree) {
                let number = try #require(index.find(BlobHandle(.tree, tree)))
                let pack = VaultFile(.data, index.packs[index.pack(of: number)].id)
                let sound = try readFile("\(path)/\(pack.path)")
                var damaged = sound
                damaged[Int(index[number].offset) + 20] ^= 1
                func replace(_ bytes: [UInt8]) throws {
                    try vault.backend.remove([pack])
                    try bytes.withUnsafeBytes { try vault.backend.write(pack, $0) }
                }
                try replace(damaged)
                let left = try VaultFile.Kind.allCases.map { try vault.backend.list($0).sizes }
                #expect(errorCode { _ = try vault.prune() } == .damaged)
                #expect(try VaultFile.Kind.allCases.map { try vault.backend.list($0).sizes } == left)
                try replace(sound)
            }
            try ResticVault.expectSound(path)
        }
    }

    /// What only it needs seems to be needed by nothing.
    @Test(arguments: [
        "keys/ID", "locks/ID", "index/ID", "data/AA/ID", "snapshots/old/ID", "data/ID", "snapshots/ID.bak",
    ])
    func nothingIsPrunedWhileASnapshotLiesInTheWrongPlace(_ place: String) throws {
        try withVault { path, vault in
            for snapshot in try vault.snapshots().snapshots {
                let target = place.replacing("ID", with: snapshot.id.hex).replacing(
                    "AA", with: snapshot.id.hex.prefix(2))
                let (from, to) = ("\(path)/snapshots/\(snapshot.id.hex)", "\(path)/\(target)")
                try Directory.createAll(parent(of: to))
                #expect(rename(from, to) == 0)
                let moved = try contents(of: path)
                var options = PruneOptions()
                options.maxUnused = 0
                #expect([.damaged, .incomplete].contains(errorCode { _ = try vault.prune(options) }))
                #expect(try contents(of: path) == moved)
                #expect(rename(to, from) == 0)
            }
            try ResticVault.expectSound(path)
        }
    }

    @Test func aTagIsANewSnapshotThatRemembersTheFirst() throws {
        try withVault { path, vault in
            let first = try vault.snapshots().snapshots[1]
            try vault.locked(exclusively: true) { held in
                let second = try held.retag(first, ["suspect"])
                let third = try held.retag(second, ["suspect", "x"])
                #expect(third.file.original == first.id && third.file.tree == first.file.tree)
            }
            let list = try ResticVault.restic(path, "snapshots", "--json", "--tag", "suspect,x").stdout
            #expect(try JSON(parsing: list).array?.count == 1)
            #expect(try vault.snapshots().snapshots.count == 2)
            try ResticVault.expectSound(path)
        }
    }

    @Test func aPruneThatRemovesNothing_setsRoomAsideAgain() throws {
        try withVault { path, vault in
            _ = try vault.prune()
            let reserve = "\(path)/reserve"
            #expect(try FileStatus.ofName(reserve) != nil && vault.backend.giveRoomUp())
            let again = try vault.prune()
            #expect(try again.wasNothing && FileStatus.ofName(reserve) != nil)
        }
    }

    @Test func snapshotsAreCopiedOnceWithAllTheyNeed() throws {
        try withVault { path, vault in
            let target = "\(path)-2"
            let other = try newVault(at: target, password: "secret")
            let all = try vault.snapshots().snapshots
            let first = try other.locked { try $0.copy([all[1]], from: vault) }
            #expect(first.copied.count == 1 && first.blobs > 20)
            let second = try other.locked { try $0.copy(all, from: vault) }
            #expect(second.copied.count == 1 && second.skipped == 1 && second.blobs < first.blobs + 30)
            #expect(try other.locked { try $0.copy(all, from: vault) }.skipped == 2)
            try ResticVault.expectSound(target)
            let ours = try other.snapshots().snapshots
            #expect(ours.map(\.file.tree) == all.map(\.file.tree))
            #expect(try other.statistics(of: ours).restoreBytes == vault.statistics(of: all).restoreBytes)
        }
    }

    @Test func statisticsAgreeWithRestic() throws {
        try withVault { path, vault in
            let all = try vault.snapshots().snapshots
            let ours = try vault.statistics(of: all)
            let restore = try JSON(parsing: ResticVault.restic(path, "stats", "--json").stdout)
            #expect(Int64(ours.restoreFiles + ours.restoreFolders) == restore["total_file_count"]?.integer)
            #expect(Int64(ours.restoreBytes) == restore["total_size"]?.integer)
            let raw = try JSON(parsing: ResticVault.restic(path, "stats", "--mode", "raw-data", "--json").stdout)
            #expect(Int64(ours.storedBytes) == raw["total_size"]?.integer)
            #expect(Int64(ours.blobs) == raw["total_blob_count"]?.integer)
        }
    }
}
