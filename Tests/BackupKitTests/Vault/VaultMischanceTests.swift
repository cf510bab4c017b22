import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// What people, disks and clocks do to a vault that nobody meant to harm.
@Suite struct VaultMischanceTests {
    private func withVault(_ body: (String, Vault) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let path = try ResticVault.copy(to: folder)
            try body(path, try ResticVault.open(path))
        }
    }

    private func fileCount(_ vault: Vault, _ kind: VaultFile.Kind) throws -> Int {
        try vault.backend.list(kind).items.count
    }

    // MARK: Keys

    @Test func ofTwoWhoRemoveEachOthersKeyOneIsRefused() throws {
        try withTemporaryFolder { folder in
            let first = try newVault(at: "\(folder)/v")
            let other = try KeyRing(backend: first.backend).add(first.key, password: utf8("y"), cost: testCost)
            let second = try Vault.open(first.backend, password: utf8("y"))
            #expect(try first.removeKey(other.hex) == other)
            #expect(errorCode { _ = try second.removeKey(first.keyID.hex) } == .refused)
            #expect(try first.listKeys().entries.map(\.id) == [first.keyID])
        }
    }

    @Test func aKeyThatNobodyWouldTryIsNotAdded() throws {
        try withNewVault { _, vault, _ in
            let ring = KeyRing(backend: vault.backend)
            for number in 2..<KeyRing.mostTried {
                _ = try ring.add(vault.key, password: utf8("\(number)"), cost: testCost)
            }
            _ = try vault.addKey(password: utf8("last"))
            #expect(errorCode { _ = try vault.addKey(password: utf8("more")) } == .refused)
            // One more for a moment does no harm.
            _ = try vault.changePassword(utf8("new"))
            #expect(try fileCount(vault, .key) == KeyRing.mostTried)
            _ = try ring.add(vault.key, password: utf8("by restic"), cost: testCost)
            #expect(errorCode { _ = try vault.changePassword(utf8("newer")) } != nil)
        }
    }

    // MARK: Clocks

    @Test func aLockThatOnlyALyingClockCallsOldIsRespected() throws {
        try withTemporaryFolder { folder in
            let vault = try newVault(at: "\(folder)/v")
            let now = Clock.system.now().milliseconds
            let file = LockFile(
                time: GoTime(Timestamp(milliseconds: now - 7_200_000)), isExclusive: false, hostName: "far",
                userName: "ann",
                pid: 7)
            let sealed = try VaultCipher(vault.key).seal(Unpacked.encode(file.encoded))
            let id = try sealed.withUnsafeBytes { try vault.backend.store(.lock, $0) }
            #expect(errorCode { _ = try VaultLock.acquire(.exclusive, in: vault.locks) } == .locked)
            try VaultLock.acquire(.shared, in: vault.locks).release()
            #expect(try vault.backend.size(VaultFile(.lock, id)) != nil, "nobody has removed it")
            var times = [timespec(tv_sec: time_t(now / 1000 - 7200), tv_nsec: 0), timespec()]
            times[1] = times[0]
            #expect(utimensat(AT_FDCWD, "\(folder)/v/locks/\(id.hex)", times, 0) == 0)
            try VaultLock.acquire(.exclusive, in: vault.locks).release()
            #expect(try vault.backend.size(VaultFile(.lock, id)) == nil)
        }
    }

    // MARK: Snapshots that are out of sight

    @Test func aLinkThatLeadsNowhereIsNoForgottenSnapshot() throws {
        try withVault { path, vault in
            let id = try #require(try vault.snapshots().snapshots.first?.id)
            let name = "\(path)/snapshots/\(id.hex)"
            #expect(rename(name, "\(path)/../away") == 0 && symlink("../../gone", name) == 0)
            let packs = try fileCount(vault, .data)
            #expect(try vault.snapshots().findings.map(\.severity) == [.damage])
            #expect(try !vault.check().isSound)
            #expect(errorCode { _ = try vault.prune() } == .damaged)
            #expect(errorCode { try vault.mustBeReadableOrDamaged(id) } == .failed)
            #expect(try fileCount(vault, .data) == packs)
        }
    }

    @Test(arguments: [
        "snapshots/UPPER", "snapshots/ID.bak", "snapshots/old/ID", "ID", "data/ID", "data/xx/ID", "keys/ID", "locks/ID",
    ])
    func nothingIsPrunedThatASnapshotInTheWrongPlaceMayNeed(_ place: String) throws {
        try withVault { path, vault in
            let id = try #require(try vault.snapshots().snapshots.first?.id.hex)
            let there = place.split(separator: "/").map { part in
                switch part {
                case "UPPER": id.uppercased()
                case "xx": String(id.prefix(2))
                default: part.hasPrefix("ID") ? id + part.dropFirst(2) : String(part)
                }
            }
            let target = "\(path)/\(there.joined(separator: "/"))"
            try Directory.createAll(parent(of: target))
            #expect(rename("\(path)/snapshots/\(id)", target) == 0)
            let packs = try fileCount(vault, .data)
            var options = PruneOptions()
            options.maxUnused = 0
            #expect(throws: BackupError.self) { try vault.prune(options) }
            #expect(try fileCount(vault, .data) == packs)
            if place != "locks/ID" { #expect(try !vault.check().findings.isEmpty) }
            #expect(place != "locks/ID" || errorCode { _ = try vault.unlock(all: true) } == .refused)
            #expect(try FileStatus.ofName(target) != nil)
        }
    }

    @Test func copiesOfSnapshotsBesideThemAreInNobodysWay() throws {
        try withVault { path, vault in
            try Directory.createAll("\(path)/snapshots/old")
            for id in try vault.snapshots().snapshots.map(\.id.hex) {
                for place in ["\(id).sync-conflict-1", "old/\(id)"] {
                    _ = try runProcess(["cp", "\(path)/snapshots/\(id)", "\(path)/snapshots/\(place)"])
                }
            }
            #expect(try vault.check().findings.isEmpty)
            _ = try vault.prune()
        }
    }

    // MARK: Rot

    /// Flips a bit in a stored blob, the size of its pack staying as it is.
    private func rot(_ handle: BlobHandle, _ path: String, _ vault: Vault) throws {
        let index = try vault.loadIndex().blobs
        let number = try #require(index.find(handle))
        try rot("\(path)/\(VaultFile(.data, index.packs[index.pack(of: number)].id).path)", at: index[number].offset)
    }

    private func rot(_ file: String, at offset: UInt32) throws {
        var bytes = try readFile(file)
        bytes[Int(offset) + 20] ^= 1
        unlink(file)
        try writeFile(file, bytes)
    }

    @Test(arguments: ["root", "library", "Attachments", Manifest.fileName, ChecksumFile.fileName], [false, true])
    func aBackupReliesOnNothingThatItCouldNotRead(_ what: String, force: Bool) throws {
        try withTemporaryFolder { folder in
            let house = try RealHouse(folder)
            try house.write(5)
            _ = try house.store.batch(kind: "import", source: "test") {
                try place("Attachments/a.txt", "text", in: house.store)
                return ((), summary: "")
            }
            let first = try VaultBackup.run(house.store, into: house.vault)
            let root = first.tree
            let reader = try BlobReader(house.vault)
            let index = try house.vault.loadIndex().blobs
            let library = try #require(reader.nodes(of: root, in: index).first?.subtree)
            let files = try reader.nodes(of: library, in: index)
            let handle: BlobHandle =
                switch what {
                case "root": BlobHandle(.tree, root)
                case "library": BlobHandle(.tree, library)
                // The next backup makes the very same tree.
                case "Attachments": BlobHandle(.tree, try #require(files.first { $0.text == what }?.subtree))
                default: BlobHandle(.data, try #require(files.first { $0.text == what }?.content?.first))
                }
            try rot(handle, house.vaultPath, house.vault)
            var options = VaultBackupOptions()
            options.force = force
            let second = try VaultBackup.run(house.store, into: house.vault, options)
            #expect(!second.vaultDamage.isEmpty && second.snapshot != nil)
            // It has stored again what was lost.
            #expect(second.isComplete)
            #expect(try Verifier.verify("vault:\(house.vaultPath)", level: .deep).findings.isEmpty)
            #expect(try VaultBackup.run(house.store, into: house.vault, options).vaultDamage.isEmpty)
        }
    }

    // MARK: Copies

    @Test func whatACopyHasLostIsCopiedAgain() throws {
        try withVault { path, vault in
            let here = try newVault(at: "\(path)/../w")
            let all = try vault.snapshots().snapshots
            #expect(try here.copy(all, from: vault).copied.count == all.count)
            let packs = try here.backend.list(.data).items
            try here.backend.remove(packs.map { VaultFile(.data, $0.id) })
            let again = try here.copy(all, from: vault)
            #expect(again.skipped == all.count && again.copied.isEmpty && again.blobs > 0)
            #expect(again.findings.count == packs.count && again.findings.allSatisfy { $0.severity == .damage })
            #expect(try here.copy(all, from: vault).findings.allSatisfy { $0.severity == .note })
            #expect(try here.repair(saving: "\(path)/../saved").blobsLost == 0)
            #expect(try here.check(.all).isSound)
            #expect(try here.copy(all, from: vault).findings.isEmpty)
        }
    }

    @Test func whatACopyLetGoOfIsCopiedAgain_andItsUnnamedPacksAreUsed() throws {
        try withVault { path, vault in
            let target = "\(path)/../w"
            let here = try newVault(at: target)
            let all = try vault.snapshots().snapshots
            _ = try here.copy(all, from: vault)
            let file = try #require(try here.backend.list(.data).items.max { $0.size < $1.size })
            try rot("\(target)/\(VaultFile(.data, file.id).path)", at: 1000)
            #expect(try here.repair(saving: "\(path)/../saved").blobsLost > 0)
            let again = try here.copy(all, from: vault)
            #expect(again.blobs > 0 && again.findings.map(\.severity) == [.warning])
            #expect(try here.check(.all).isSound)
            for item in try here.backend.list(.index).items { try here.backend.remove([VaultFile(.index, item.id)]) }
            #expect(try here.copy(all, from: vault).blobs == 0)
            #expect(try here.check(.all).isSound)
            let snapshot = try #require(here.snapshots().snapshots.first?.id)
            try rot("\(target)/\(VaultFile(.snapshot, snapshot).path)", at: 10)
            #expect(try here.copy(all, from: vault).findings.contains { $0.severity == .damage })
        }
    }

    @Test func rotInWhatIsCopiedAlreadyKeepsNothingElseBack() throws {
        try withVault { path, vault in
            let here = try newVault(at: "\(path)/../w")
            let all = try vault.snapshots().snapshots
            _ = try here.copy([all[0]], from: vault)
            try rot(BlobHandle(.tree, try #require(all[0].file.tree)), path, vault)
            let result = try here.copy(all, from: vault)
            #expect(result.copied.count == 1 && result.findings.isEmpty)
            #expect(result.sourceFindings.map(\.severity) == [.warning])
            #expect(try here.check(.all).isSound)
        }
    }

    @Test func aPackMarkedForRemovalThatIsNeededIsNamed_andUnmarkedByPrune() throws {
        try withVault { path, vault in
            let loaded = try vault.loadIndex()
            var other = PackIndex()
            for pack in loaded.blobs.packs {
                other.packs.append(PackIndex.Pack(id: pack.id, blobs: pack.blobs.map { loaded.blobs[$0] }))
            }
            let marked = String(decoding: PackIndex(packs: [other.packs.removeFirst()]).encoded(), as: UTF8.self)
            let parts = marked.split(separator: "\"packs\":", maxSplits: 1)
            try #require(parts.count == 2)
            try vault.storeUnpacked(.index, utf8("\(parts[0])\"packs\":[],\"packs_to_delete\":\(parts[1])"))
            try vault.storeUnpacked(.index, other.encoded())
            try vault.backend.remove(loaded.files.map { VaultFile(.index, $0) })
            #expect(try vault.check().findings.map(\.code) == [.conflict])
            var options = PruneOptions()
            options.onlyAbove = 0.9
            _ = try vault.prune(options)
            #expect(try vault.check(.all).findings.isEmpty)
            try ResticVault.restic(path, "check", "--read-data")
        }
    }

    @Test func aPackThatTwoIndexesDescribeInPartsIsOne() throws {
        try withVault { path, vault in
            let loaded = try vault.loadIndex()
            var parts = [PackIndex(), PackIndex()]
            for pack in loaded.blobs.packs {
                let blobs = pack.blobs.map { loaded.blobs[$0] }
                parts[0].packs.append(PackIndex.Pack(id: pack.id, blobs: Array(blobs.prefix(blobs.count / 2))))
                parts[1].packs.append(PackIndex.Pack(id: pack.id, blobs: Array(blobs.dropFirst(blobs.count / 2))))
            }
            for part in parts { try vault.storeUnpacked(.index, part.encoded()) }
            try vault.backend.remove(loaded.files.map { VaultFile(.index, $0) })
            try ResticVault.restic(path, "check", "--read-data")
            #expect(try vault.check(.all).findings.isEmpty)
            _ = try vault.prune()
            #expect(try vault.check(.all).findings.isEmpty)
        }
    }

    /// Its header says what is in it, and the index is made anew.
    @Test func aPackThatTheIndexDescribesWronglyIsNoneToRepair() throws {
        try withVault { path, vault in
            let loaded = try vault.loadIndex()
            var other = PackIndex()
            for pack in loaded.blobs.packs {
                var offset: UInt32 = 0
                let blobs = pack.blobs.reversed().map { number in
                    var blob = loaded.blobs[number]
                    (blob.offset, offset) = (offset, offset + blob.length)
                    return blob
                }
                other.packs.append(PackIndex.Pack(id: pack.id, blobs: blobs))
            }
            try vault.storeUnpacked(.index, other.encoded())
            try vault.backend.remove(loaded.files.map { VaultFile(.index, $0) })
            #expect(try !vault.check(.all).isSound)
            let packs = try vault.backend.list(.data)
            let result = try vault.repair(saving: "\(path)/../saved")
            #expect(result.packs == 0 && result.blobsLost == 0 && result.packsIndexed > 0)
            #expect(try vault.backend.list(.data) == packs)
            #expect(try vault.check(.all).findings.isEmpty)
            try ResticVault.restic(path, "check", "--read-data")
        }
    }

    @Test func whereABlobIsThereTwiceTheSoundCopyStays() throws {
        for victim in 0...1 {
            try withVault { path, vault in
                let index = try vault.loadIndex().blobs
                let pack = try #require(index.packs.max { $0.blobs.count < $1.blobs.count })
                let writer = try PackWriter(vault, known: BlobIndex())
                let lane = try PackWriter.Lane(writer)
                let reader = try BlobReader(vault)
                for blob in pack.blobs {
                    try lane.copy(sealed: reader.verified(index[blob], in: pack.id), of: index[blob])
                }
                _ = try writer.finish()
                let blob = index[pack.blobs.lowerBound]
                var copies: [(pack: SHA256Digest, offset: UInt32)] = []
                let both = try vault.loadIndex().blobs
                both.forEachCopy(blob.handle) { copy in
                    copies.append((both.packs[both.pack(of: copy)].id, both[copy].offset))
                    return true
                }
                try #require(copies.count == 2)
                try rot("\(path)/\(VaultFile(.data, copies[victim].pack).path)", at: copies[victim].offset)
                var options = PruneOptions()
                options.maxUnused = 0
                _ = try vault.prune(options)
                #expect(try vault.check(.all).isSound, "copy \(victim)")
            }
        }
    }
}
