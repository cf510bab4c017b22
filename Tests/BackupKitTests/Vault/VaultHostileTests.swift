import TestSupport
import Testing

@testable import BackupKit

/// Vaults by somebody who has the password and means harm, or whose program went wrong: all of it is sealed properly.
@Suite struct VaultHostileTests {
    private func withVault(_ body: (String, Vault) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/v"
            let vault = try newVault(at: path, password: "secret")
            try body(path, vault)
        }
    }

    private func store(_ bytes: [UInt8], _ type: BlobType, in vault: Vault) throws -> SHA256Digest {
        let writer = try PackWriter(vault, known: vault.loadIndex().blobs)
        let id = try bytes.withUnsafeBytes { try PackWriter.Lane(writer).store($0, as: type).id }
        _ = try writer.finish()
        return id
    }

    private func snapshot(_ tree: SHA256Digest, in vault: Vault) throws {
        let file = SnapshotFile(time: GoTime(seconds: 0), tree: tree, paths: ["/library"])
        try vault.storeUnpacked(.snapshot, file.encoded())
    }

    /// A newer program's kind of node needs what it names, whatever it means by it.
    @Test func whatANodeOfAnUnknownKindNeedsIsNotPruned() throws {
        try withVault { path, vault in
            let id = try store([UInt8](repeating: 65, count: 50_000), .data, in: vault)
            var node = TreeNode(name: utf8("a"), kind: .other("reparse"))
            (node.content, node.size) = ([id], 50_000)
            try snapshot(store(try Tree(nodes: [node]).encoded(), .tree, in: vault), in: vault)
            var options = PruneOptions()
            options.maxUnused = 0
            _ = try vault.prune(options)
            #expect(try vault.loadIndex().blobs.holds(BlobHandle(.data, id)))
        }
    }

    /// What an index says of sizes and places is not believed with memory.
    @Test(arguments: ["plain", "length", "offset"])
    func indexesMayLie(_ lie: String) throws {
        try withVault { path, vault in
            let text = [UInt8](repeating: 65, count: 50_000)
            let id = try store(text, .data, in: vault)
            var node = TreeNode(name: utf8("a"), kind: .file)
            (node.content, node.size) = ([id], UInt64(text.count))
            try snapshot(store(try Tree(nodes: [node]).encoded(), .tree, in: vault), in: vault)
            let loaded = try vault.loadIndex()
            var lies: [PackIndex.Pack] = []
            for pack in loaded.blobs.packs {
                var blobs = pack.blobs.map { loaded.blobs[$0] }
                if blobs[0].type == .data {
                    switch lie {
                    case "plain": blobs[0].plainLength = .max - 1
                    case "length": blobs[0].length = .max
                    default: blobs[0].offset = .max - 1000
                    }
                }
                lies.append(.init(id: pack.id, blobs: blobs))
            }
            try vault.backend.remove(loaded.files.map { VaultFile(.index, $0) })
            try vault.storeUnpacked(.index, PackIndex(packs: lies).encoded())
            let result = try vault.check(.all)
            #expect(!result.isSound && result.affected.map(\.path) == ["/a"])
            // Before any memory was asked for.
            if lie == "plain" { #expect(result.findings.contains { $0.message.contains("cannot unpack to") }) }
            let index = try vault.loadIndex().blobs
            let reader = try BlobReader(vault)
            #expect(errorCode { try reader.read(BlobHandle(.data, id), in: index) { _ in } } == .damaged)
        }
    }

    /// Seals and packs are whole, but a blob is another one than its name says.
    @Test(arguments: [false, true])
    func aBlobUnderTheNameOfAnotherIsDamage(isPacked: Bool) throws {
        try withVault { path, vault in
            // Text is packed, noise is not.
            var random = SeededGenerator(seed: 1)
            let text = (0..<50_000).map { _ in isPacked ? 65 : UInt8.random(in: 0...255, using: &random) }
            let id = SHA256Digest.of("what was backed up")
            let writer = try PackWriter(vault, known: vault.loadIndex().blobs)
            let isNew = try text.withUnsafeBytes { try PackWriter.Lane(writer).store($0, as: .data, id: id) }
            _ = try writer.finish()
            var node = TreeNode(name: utf8("a"), kind: .file)
            (node.content, node.size) = ([id], UInt64(text.count))
            try snapshot(store(try Tree(nodes: [node]).encoded(), .tree, in: vault), in: vault)
            let result = try vault.check(.all)
            #expect(isNew && !result.isSound && result.affected.map(\.path) == ["/a"])
            let index = try vault.loadIndex().blobs
            let reader = try BlobReader(vault)
            #expect(errorCode { try reader.read(BlobHandle(.data, id), in: index) { _ in } } == .damaged)
        }
    }

    /// Every blob can be read; only the pack's own header tells another story than the index.
    @Test func aPackWhoseHeaderContradictsTheIndexIsDamage() throws {
        try withVault { path, vault in
            let id = try store([UInt8](repeating: 65, count: 50_000), .data, in: vault)
            var node = TreeNode(name: utf8("a"), kind: .file)
            (node.content, node.size) = ([id], 50_000)
            try snapshot(store(try Tree(nodes: [node]).encoded(), .tree, in: vault), in: vault)
            #expect(try vault.check(.all).isSound)
            let loaded = try vault.loadIndex()
            let packs = loaded.blobs.packs.map { pack in
                var blobs = pack.blobs.map { loaded.blobs[$0] }
                if blobs[0].type == .data {
                    blobs[0] = PackedBlob(
                        .tree, id, offset: blobs[0].offset, length: blobs[0].length, plainLength: blobs[0].plainLength)
                }
                return PackIndex.Pack(id: pack.id, blobs: blobs)
            }
            let honest = loaded.blobs.packs.map { pack in
                PackIndex.Pack(id: pack.id, blobs: pack.blobs.map { loaded.blobs[$0] })
            }
            try vault.storeUnpacked(.index, PackIndex(packs: packs).encoded())
            try vault.backend.remove(loaded.files.map { VaultFile(.index, $0) })
            let messages = try vault.check(.all).findings.map(\.message)
            #expect(messages.contains { $0.contains("it says something else than the index") }, "\(messages)")
            try vault.backend.remove(vault.loadIndex().files.map { VaultFile(.index, $0) })
            try vault.storeUnpacked(.index, PackIndex(packs: honest).encoded())
            #expect(try vault.check(.all).isSound)
        }
    }

    /// Seventy folders, each twice in the next: more paths than there are numbers.
    @Test func foldersThatFanOutEndNowhere() throws {
        try withVault { path, vault in
            var file = TreeNode(name: utf8("f"), kind: .file)
            (file.content, file.size) = ([], .max)
            var lost = TreeNode(name: utf8("lost"), kind: .file)
            lost.content = [.of("nowhere")]
            func tree(_ nodes: [TreeNode]) throws -> SHA256Digest {
                try store(try Tree(nodes: nodes).encoded(), .tree, in: vault)
            }
            func fan(_ leaf: [TreeNode]) throws -> SHA256Digest {
                var id = try tree(leaf)
                for _ in 0..<70 {
                    let nodes = ["a", "b"].map { name in
                        var node = TreeNode(name: utf8(name), kind: .folder)
                        node.subtree = id
                        return node
                    }
                    id = try tree(nodes)
                }
                return id
            }
            try snapshot(fan([file]), in: vault)
            #expect(try vault.statistics(of: vault.snapshots().snapshots).snapshots == 1)
            var limits = ReadLimits()
            limits.entries = 1000
            #expect(errorCode { _ = try VaultReader(vault, "latest", limits: limits).list() } == .refused)
            try snapshot(fan([file, lost]), in: vault)
            let result = try vault.check()
            #expect(result.affectedCount == .max && result.affected.count == 1000)
        }
    }

    /// One file that is no key must not keep `check` from telling about everything else.
    @Test func aFileAmongTheKeysThatIsTooLargeIsOneFindingOfMany() throws {
        try withVault { path, vault in
            let noise = [UInt8](repeating: 0, count: KeyFile.limit + 1)
            let key = try noise.withUnsafeBytes { try vault.backend.store(.key, $0) }
            let index = try utf8("no index").withUnsafeBytes { try vault.backend.store(.index, $0) }
            let subjects = try vault.check().findings.map(\.subject)
            #expect(subjects.contains(VaultFile(.key, key).path) && subjects.contains(VaultFile(.index, index).path))
        }
    }
}
