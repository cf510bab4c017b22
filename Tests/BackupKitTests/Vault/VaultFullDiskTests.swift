import Glibc
import Synchronization
import TestSupport
import Testing

@testable import BackupKit

/// A disk with so many free bytes: writing takes some, and removing gives some back.
private final class CrampedBackend: VaultBackend {
    private let inner: any VaultBackend
    private let free: Mutex<Int>
    private let reserve: Mutex<Int>

    init(_ inner: any VaultBackend, free bytes: Int, reserve: Int = 0) {
        self.inner = inner
        free = Mutex(bytes)
        self.reserve = Mutex(reserve)
    }

    var location: String { inner.location }
    var settling: Double { inner.settling }
    func list(_ kind: VaultFile.Kind) throws -> VaultListing { try inner.list(kind) }
    func size(_ file: VaultFile) throws -> Int64? { try inner.size(file) }
    func sweep() throws -> Int { try inner.sweep() }
    func read(_ file: VaultFile, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try inner.read(file, at: offset, into: buffer)
    }

    func write(_ file: VaultFile, _ bytes: UnsafeRawBufferPointer) throws {
        try free.withLock { free in
            guard free >= bytes.count else { throw BackupError(.destinationFull, "no room", at: location) }
            free -= bytes.count
        }
        try inner.write(file, bytes)
    }

    func remove(_ files: [VaultFile]) throws {
        for file in files {
            let size = try inner.size(file) ?? 0
            try inner.remove([file])
            free.withLock { $0 += Int(size) }
        }
    }

    func giveRoomUp() throws -> Bool {
        let bytes = reserve.withLock { reserve in
            defer { reserve = 0 }
            return reserve
        }
        free.withLock { $0 += bytes }
        return bytes > 0
    }
}

@Suite struct VaultFullDiskTests {
    /// However little fits, pruning ends well, and as often as it is called again it comes nearer to its aim.
    @Test func pruningWorksWithHoweverLittleRoom() throws {
        try withTemporaryFolder { folder in
            let original = try ResticVault.copy(to: folder)
            let whole = try ResticVault.open(original)
            try whole.forget([whole.snapshots().snapshots[0].id])
            let index = try whole.backend.list(.index).items.map(\.size).max() ?? 0
            for free in [0, 1000, 30_000, 400_000, 4_000_000] {
                let path = "\(folder)/free-\(free)"
                _ = try runProcess(["cp", "-a", original, path])
                let sound = try ResticVault.open(path)
                let cramped = CrampedBackend(sound.backend, free: free, reserve: Int(index) * 2 + 65536)
                var options = PruneOptions()
                options.maxUnused = 0
                var result = PruneResult()
                try sound.with(cramped).locked(exclusively: true) { result = try $0.prune(options) }
                #expect(try sound.check(.all).findings == [], "\(free) bytes free")
                // What was left undone is said.
                #expect(result.findings.isEmpty == (result.bytesUnusedLeft == 0))
                #expect(free < 4_000_000 || result.bytesUnusedLeft == 0)
            }
            try ResticVault.restic("\(folder)/free-0", "check", "--read-data")
        }
    }

    /// An index names packs that stay and packs that go: its successor comes before it goes, and packs go last.
    @Test func indexesAreReplacedOneByOne() throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/v"
            let made = try newVault(at: path, password: "secret")
            var generator = SeededGenerator(seed: 3)
            var packs: [PackIndex.Pack] = []
            for _ in 0..<12 {
                let writer = try PackWriter(made, known: BlobIndex())
                let bytes = (0..<2000).map { _ in generator.next() }
                _ = try bytes.withUnsafeBytes { try PackWriter.Lane(writer).store($0, as: .data) }
                _ = try writer.finish()
            }
            let loaded = try made.loadIndex()
            for pack in loaded.blobs.packs {
                packs.append(.init(id: pack.id, blobs: pack.blobs.map { loaded.blobs[$0] }))
            }
            // A snapshot needs every third; each new index has four, and one pack stands in two of them.
            let kept = stride(from: 0, to: 12, by: 3).map { packs[$0].blobs[0].id }
            var node = TreeNode(name: utf8("a"), kind: .file)
            node.content = kept
            node.size = UInt64(kept.count * 16000)
            let writer = try PackWriter(made, known: BlobIndex())
            let tree = try Tree(nodes: [node]).encoded().withUnsafeBytes {
                try PackWriter.Lane(writer).store($0, as: .tree).id
            }
            _ = try writer.finish()
            for start in [0, 4, 8] {
                try made.storeUnpacked(.index, PackIndex(packs: packs[start..<start + 4] + [packs[1]]).encoded())
            }
            try made.backend.remove(loaded.files.map { VaultFile(.index, $0) })
            let file = SnapshotFile(time: GoTime(Timestamp(milliseconds: 0)), tree: tree, paths: ["/a"])
            try made.storeUnpacked(.snapshot, file.encoded())
            let cramped = CrampedBackend(made.backend, free: 0, reserve: 2500)
            try made.with(cramped).locked(exclusively: true) { held in
                let result = try held.pruneWithoutRoom(PruneOptions(), copying: 0, .none)
                #expect(result.findings == [])
            }
            #expect(try made.backend.list(.data).items.count == 5)
            #expect(try made.check(.all).findings == [])
        }
    }
}
