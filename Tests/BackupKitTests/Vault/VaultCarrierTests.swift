import Synchronization
import TestSupport
import Testing

@testable import BackupKit

/// A snapshot keeps the contract of `Carrier.swift` like any other carrier.
@Suite struct VaultCarrierTests {
    /// A new vault with one snapshot of these pieces.
    private func vault(_ folder: String, _ pieces: [Piece], extra: [TreeNode] = []) throws -> Vault {
        let vault = try newVault(at: "\(folder)/v")
        try add(pieces, to: vault, extra: extra)
        return vault
    }

    private func add(_ pieces: [Piece], to vault: Vault, extra: [TreeNode] = []) throws {
        try vault.locked { vault in
            let writer = try PackWriter(vault, known: vault.loadIndex().blobs)
            let lane = try FileLane(writer, Chunker(vault.polynomial))
            var trees = TreeBuilder(below: "library")
            for piece in pieces {
                let content = try lane.store { sink in try sink { $0 += piece.bytes } }
                #expect(content.digest == piece.bytes.withUnsafeBytes { SHA256Digest.of($0) })
                #expect(content.size == Int64(piece.bytes.count))
                var node = TreeNode(name: [], kind: .file)
                node.modified = GoTime(seconds: piece.modified)
                node.size = UInt64(content.size)
                node.content = content.blobs
                trees.add("library/\(piece.path)", .init(node, path: piece.path))
            }
            if pieces.isEmpty { trees.addFolder("library") }
            for node in extra {
                let name = String(decoding: node.name, as: UTF8.self)
                trees.add("library/\(name)", .init(node, path: name))
            }
            let id = try trees.store(writer)
            _ = try writer.finish()
            let file = SnapshotFile(time: GoTime(Clock.system.now()), tree: id, paths: ["/library"])
            try vault.storeUnpacked(.snapshot, file.encoded())
        }
    }

    private func reader(_ vault: Vault, _ limits: ReadLimits = ReadLimits()) throws -> VaultReader {
        try VaultReader(vault, "latest", limits: limits)
    }

    @Test func whatIsWrittenIsReadBack() throws {
        try withScratch { folder in
            let pieces = CarrierConformanceTests.awkwardPieces(large: true)
            let reader = try reader(vault(folder, pieces))
            #expect(Set(try reader.list().map { Array($0.path.utf8) }) == Set(pieces.map { Array($0.path.utf8) }))
            #expect(Set(try reader.list()) == Set(pieces.map(\.info)))
            let visited = try visitAll(reader)
            #expect(visited.isClean, "\(visited.findings)")
            for piece in pieces {
                #expect(visited.pieces[piece.path] == piece.bytes, "\(piece.path)")
                var bytes: [UInt8] = []
                try reader.read(piece.path) { bytes += $0 }
                #expect(bytes == piece.bytes)
            }
            #expect(code { try reader.read("no such") { _ in } } == .notFound)
            #expect(code { try reader.read("nfc-e\u{301}") { _ in } } == .notFound)
        }
    }

    @Test func anEmptySnapshotIsOneWithoutEntries() throws {
        try withScratch { folder in
            let visited = try visitAll(reader(vault(folder, [])))
            #expect(visited.pieces.isEmpty && visited.isClean)
        }
    }

    @Test func limitsAreKept() throws {
        try withScratch { folder in
            let vault = try vault(
                folder, (0..<20).map { Piece(path: "\($0)", bytes: .init(repeating: 7, count: 1000)) })
            for (entries, size, total) in [
                (19, Int64(1 << 20), Int64(1 << 20)), (99, 999, 1 << 20), (99, 1000, 19_999),
            ] {
                var limits = ReadLimits()
                (limits.entries, limits.entryBytes, limits.totalBytes) = (entries, size, total)
                #expect(code { _ = try reader(vault, limits).list() } == .refused)
                #expect(code { _ = try visitAll(reader(vault, limits)) } == .refused)
            }
        }
    }

    @Test func namesThatLeadElsewhereAndSpecialFilesAreRefused() throws {
        for (name, kind) in [
            ("..", TreeNode.Kind.file), (".", .folder), ("\u{1}", .file), ("x", .symlink), ("x", .fifo),
        ] {
            try withScratch { folder in
                var node = TreeNode(name: Array(name.utf8), kind: kind)
                node.content = kind == .file ? [] : nil
                let vault = try vault(folder, [Piece(path: "a", bytes: [1])], extra: [node])
                #expect(code { _ = try reader(vault).list() } == .refused, "\(name)")
                #expect(code { _ = try visitAll(reader(vault)) } == .refused, "\(name)")
            }
        }
    }

    @Test(arguments: [0, 2] as [UInt64]) func aFileOfAnotherSizeThanItsFolderSaysIsDamaged(size: UInt64) throws {
        try withScratch { folder in
            var node = TreeNode(name: utf8("b"), kind: .file)
            (node.content, node.size) = ([[UInt8]([1]).withUnsafeBytes { SHA256Digest.of($0) }], size)
            let vault = try vault(folder, [Piece(path: "a", bytes: [1])], extra: [node])
            #expect(code { try reader(vault).read("b") { _ in } } == .damaged)
            #expect(try !visitAll(reader(vault)).isClean)
        }
    }

    private struct Stop: Error {}

    @Test func whatTheVisitorThrowsEndsTheVisit() throws {
        try withScratch { folder in
            let reader = try reader(vault(folder, (0..<50).map { Piece(path: "\($0)", bytes: [1, 2, 3]) }))
            #expect(throws: Stop.self) { _ = try reader.visit { info, _ in if info.path == "20" { throw Stop() } } }
            #expect(throws: Stop.self) {
                _ = try reader.visit { _, bytes in try bytes.forEachChunk { _ in throw Stop() } }
            }
            #expect(throws: Stop.self) { try reader.read("7") { _ in throw Stop() } }
        }
    }

    /// Every pack is damaged in turn: what is hit is named, all else is read, and nothing false comes out.
    @Test func damageIsNamedAndTheRestIsRead() throws {
        try withScratch { folder in
            var random = SeededGenerator(seed: testSeed())
            let pieces = (0..<30).map { Piece(path: "d\($0 % 3)/\($0)", bytes: random.bytes(2000)) }
            let vault = try vault(folder, pieces)
            for item in try vault.backend.list(.data).items {
                let path = "\(folder)/v/\(VaultFile(.data, item.id).path)"
                let whole = try readFile(path)
                for _ in 0..<6 {
                    var bytes = whole
                    bytes[random.below(bytes.count)] ^= UInt8(1 + random.below(255))
                    if random.chance(3) { bytes.removeLast(1 + random.below(bytes.count)) }
                    try BackupKitTests.writeFile(path, bytes)
                    let visited = try? visitAll(reader(vault))
                    for (name, content) in visited?.pieces ?? [:] {
                        #expect(pieces.contains { $0.path == name && $0.bytes == content })
                    }
                    if let visited, visited.pieces.count < pieces.count { #expect(!visited.isClean) }
                }
                try BackupKitTests.writeFile(path, whole)
            }
            #expect(try visitAll(reader(vault)).pieces.count == pieces.count)
        }
    }

    @Test(arguments: [
        ("vault:/a", "/a", "latest"), ("vault:a@1f", "a", "1f"), ("vault:/x@y/v", "/x@y/v", "latest"),
        ("vault:/x@y/v@2026-11-01", "/x@y/v", "2026-11-01"), ("vault:v@", "v", ""),
    ])
    func addressesAreRead(text: String, path: String, snapshot: String) throws {
        let address = try #require(VaultAddress(text))
        #expect(address.path == path && address.snapshot == snapshot)
    }

    @Test(arguments: ["vault", "/vault:x", "library.zip"])
    func otherPathsAreNone(text: String) { #expect(VaultAddress(text) == nil) }
}

@Suite struct PackWriterTests {
    private func scratchVault(_ folder: String) throws -> Vault {
        try newVault(at: "\(folder)/v")
    }

    @Test func manyThreadsStoreEachBlobOnce() throws {
        try withScratch { folder in
            let vault = try scratchVault(folder)
            let blobs = (0..<400).map { [UInt8]("blob \($0 % 100)".utf8) }
            let writer = try PackWriter(vault, known: BlobIndex())
            try Parallel.forEach(blobs.count, workers: 4, state: { try PackWriter.Lane(writer) }) { lane, number in
                try blobs[number].withUnsafeBytes { _ = try lane.store($0, as: number % 2 == 0 ? .data : .tree) }
            }
            let totals = try writer.finish()
            #expect(totals.dataBlobs == 50 && totals.treeBlobs == 50)
            let index = try vault.loadIndex()
            #expect(index.findings.isEmpty && index.blobs.count == 100)
            // Left over at the end, the two packs of a kind become one; trees and data are never mixed.
            #expect(index.blobs.packs.count == 2)
            let reader = try BlobReader(vault)
            for (number, blob) in blobs.enumerated() {
                let id = blob.withUnsafeBytes { SHA256Digest.of($0) }
                let handle = BlobHandle(number % 2 == 0 ? .data : .tree, id)
                #expect(try reader.read(handle, in: index.blobs) { Array($0) } == blob)
            }
        }
    }

    @Test func largeBlobsAndManySmallOnesFillSoundPacks() throws {
        try withScratch { folder in
            let vault = try scratchVault(folder)
            var random = SeededGenerator(seed: testSeed())
            let sizes = [0, 1, 8 << 20, 5 << 20, 7 << 20, 20 << 20] + (0..<50).map { _ in random.below(200_000) }
            let writer = try PackWriter(vault, known: BlobIndex())
            let lane = try PackWriter.Lane(writer)
            for size in sizes { try random.bytes(size).withUnsafeBytes { _ = try lane.store($0, as: .data) } }
            _ = try writer.finish()
            let index = try vault.loadIndex().blobs
            for item in try vault.backend.list(.data).items {
                let pack = try #require(index.packNumber(item.id))
                #expect(index.packs[pack].size == UInt64(item.size))
            }
            let reader = try BlobReader(vault)
            for number in 0..<index.count {
                _ = try reader.read(BlobHandle(.data, index[number].id), in: index) { $0.count }
            }
        }
    }

    @Test func packsThatNoIndexNamesAreFoundAgain() throws {
        try withScratch { folder in
            let vault = try scratchVault(folder)
            for text in ["one", "two"] {
                let writer = try PackWriter(vault, known: BlobIndex())
                let lane = try PackWriter.Lane(writer)
                try Array(text.utf8).withUnsafeBytes { _ = try lane.store($0, as: .data) }
                _ = try writer.finish()
            }
            try vault.backend.remove(vault.backend.list(.index).items.map { VaultFile(.index, $0.id) })
            // A pack that is none is left alone, and so is one whose header is whole and whose content is not.
            try BackupKitTests.writeFile("\(folder)/v/data/00/" + String(repeating: "0", count: 64), [1, 2, 3])
            let one = try #require(vault.backend.list(.data).items.last)
            var flipped = try vault.backend.readAll(VaultFile(.data, one.id), limit: 1 << 20)
            flipped[20] ^= 1
            let place = VaultFile(.data, .of("flipped")).path
            try BackupKitTests.writeFile("\(folder)/v/\(place)", flipped)
            #expect(
                try vault.header(of: VaultFile(.data, .of("flipped")), size: one.size, VaultCipher(vault.key)) != nil)
            var index = BlobIndex()
            let found = try vault.reconcile(&index).unindexed
            #expect(found.count == 2 && index.packs.count == 2)
            let writer = try PackWriter(vault, known: index)
            for pack in found { writer.adopt(pack) }
            let lane = try PackWriter.Lane(writer)
            #expect(try Array("one".utf8).withUnsafeBytes { try lane.store($0, as: .data).isNew } == false)
            #expect(try writer.finish().dataBlobs == 0)
            #expect(try vault.loadIndex().blobs.count == 2)
        }
    }

    @Test func blobsGoAtRandomIntoTwoPacks() throws {
        // With one pack at a time a blob's place would tell its neighbours; here the order in a pack has gaps.
        try withScratch { folder in
            let vault = try scratchVault(folder)
            var random = SeededGenerator(seed: 1)
            let writer = try PackWriter(vault, known: BlobIndex())
            let lane = try PackWriter.Lane(writer)
            var order: [SHA256Digest: Int] = [:]
            for number in 0..<60 {
                let id = try random.bytes(1 << 20).withUnsafeBytes { try lane.store($0, as: .data).id }
                order[id] = number
            }
            _ = try writer.finish()
            let index = try vault.loadIndex().blobs
            let neighbours = index.packs.filter { pack in
                let numbers = pack.blobs.compactMap { order[index[$0].id] }
                return numbers == Array((numbers.first ?? 0)..<(numbers.first ?? 0) + numbers.count)
            }
            #expect(index.packs.count >= 4 && neighbours.count < index.packs.count)
        }
    }
}
