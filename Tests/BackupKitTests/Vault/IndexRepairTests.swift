import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// What can happen to the index and to the names of packs while every pack is whole.
private enum Blow: CaseIterable {
    case flip, cut, empty, remove
    /// An index names a pack that is not there, or says of a pack what is not so.
    case invent, contradict
    /// Packs change their names in a circle, or one gets a name of its own.
    case swap, rotate, rename
}

private struct Attacker {
    let path: String
    var random: SeededGenerator

    private func files(_ kind: VaultFile.Kind) throws -> [String] {
        try FolderBackend(path).list(kind).items.map { "\(path)/\(VaultFile(kind, $0.id).path)" }
    }

    mutating func strike(_ blow: Blow) throws {
        switch blow {
        case .flip, .cut, .empty, .remove: try damageIndex(blow)
        case .invent, .contradict: try addIndex(isInvented: blow == .invent)
        case .swap: try rotate(2)
        case .rotate: try rotate(3)
        case .rename:
            guard let pack = try files(.data).randomElement(using: &random) else { return }
            let name = "\(path)/\(VaultFile(.data, .of("\(random.next())")).path)"
            try Directory.createAll(parent(of: name))
            _ = try runProcess(["mv", pack, name])
        }
    }

    private mutating func damageIndex(_ blow: Blow) throws {
        guard let file = try files(.index).randomElement(using: &random) else { return }
        var bytes = try readFile(file)
        unlink(file)
        switch blow {
        case .flip: if !bytes.isEmpty { bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8)) }
        case .cut: bytes.removeLast(random.below(bytes.count + 1))
        case .empty: bytes = []
        default: return
        }
        try bytes.withUnsafeBytes { try FileHandle.create(file).write($0) }
    }

    private mutating func addIndex(isInvented: Bool) throws {
        let vault = try ResticVault.open(path)
        let index = try vault.loadIndex().blobs
        guard let known = index.packs.randomElement(using: &random) else { return }
        var offset: UInt32 = 0
        let blobs = known.blobs.reversed().map { number in
            var blob = index[number]
            (blob.offset, offset) = (offset, offset + blob.length)
            return blob
        }
        let id = isInvented ? SHA256Digest.of("\(random.next())") : known.id
        try vault.storeUnpacked(.index, PackIndex(packs: [PackIndex.Pack(id: id, blobs: blobs)]).encoded())
    }

    private mutating func rotate(_ count: Int) throws {
        let packs = Array(try files(.data).shuffled(using: &random).prefix(count))
        guard let first = packs.first else { return }
        _ = try runProcess(["mv", first, "\(path)/aside"])
        for (from, to) in zip(packs.dropFirst(), packs) { _ = try runProcess(["mv", from, to]) }
        _ = try runProcess(["mv", "\(path)/aside", packs[packs.count - 1]])
    }
}

@Suite struct IndexRepairTests {
    /// Whatever becomes of the index and of names, all packs are there, so a repair loses nothing.
    @Test(arguments: testSeeds(isTorture ? 50 : 8))
    func whateverBecomesOfTheIndexAndOfNames_aRepairMendsIt(seed: UInt64) throws {
        countRounds()
        try withTemporaryFolder { folder in
            let path = try ResticVault.copy(to: folder)
            var attacker = Attacker(path: path, random: SeededGenerator(seed: seed))
            var blows: [Blow] = []
            for _ in 0...attacker.random.below(4) {
                blows.append(Blow.allCases[attacker.random.below(Blow.allCases.count)])
                try attacker.strike(blows[blows.count - 1])
            }
            var result = RepairResult()
            try ResticVault.open(path).locked(exclusively: true) { held in
                let plan = try held.repair(saving: nil, dryRun: true)
                result = try held.repair(saving: "\(folder)/saved")
                #expect(plan.packs == result.packs && plan.blobsLost == 0, "seed \(seed): \(blows)")
            }
            #expect(result.blobsLost == 0, "seed \(seed): \(blows)")
            try ResticVault.expectSound(path)
            #expect(try ResticVault.open(path).snapshots().snapshots.count == 2)
            try ResticVault.open(path).locked(exclusively: true) { held in
                let again = try held.repair(saving: "\(folder)/saved")
                #expect(again.packs == 0 && again.damage.isEmpty && again.findings.isEmpty, "seed \(seed): \(blows)")
            }
        }
    }

    /// A pack that has lost its header and its index is named, and stays.
    @Test func whatNobodyCanTellTheContentOf_isNamed() throws {
        try withTemporaryFolder { folder in
            let path = try ResticVault.copy(to: folder)
            let backend = try FolderBackend(path)
            let pack = VaultFile(.data, try #require(backend.list(.data).items.first).id)
            for item in try backend.list(.index).items { unlink("\(path)/\(VaultFile(.index, item.id).path)") }
            var bytes = try readFile("\(path)/\(pack.path)")
            bytes.removeLast()
            unlink("\(path)/\(pack.path)")
            try bytes.withUnsafeBytes { try FileHandle.create("\(path)/\(pack.path)").write($0) }
            try ResticVault.open(path).locked(exclusively: true) { held in
                let result = try held.repair(saving: "\(folder)/saved")
                #expect(result.findings.map(\.subject) == [pack.path] && result.packsIndexed > 0)
            }
            #expect(try backend.size(pack) == Int64(bytes.count))
        }
    }

    /// Where the packs cannot be seen, nothing is made of what is there.
    @Test func anIndexIsNotMadeOfNothing() throws {
        try withTemporaryFolder { folder in
            let path = try ResticVault.copy(to: folder)
            for item in try FolderBackend(path).list(.index).items {
                let file = "\(path)/\(VaultFile(.index, item.id).path)"
                unlink(file)
                try writeFile(file, "rubbish")
            }
            _ = try runProcess(["mv", "\(path)/data", "\(folder)/elsewhere"])
            let before = try FolderBackend(path).list(.index)
            try ResticVault.open(path).locked(exclusively: true) { held in
                #expect(errorCode { _ = try held.repair(saving: "\(folder)/saved") } == .damaged)
            }
            #expect(try FolderBackend(path).list(.index) == before)
            _ = try runProcess(["mv", "\(folder)/elsewhere", "\(path)/data"])
            try ResticVault.open(path).locked(exclusively: true) { _ = try $0.repair(saving: "\(folder)/saved") }
            try ResticVault.expectSound(path)
            #expect(try Directory.names(in: "\(folder)/saved").count == before.items.count)
        }
    }
}
