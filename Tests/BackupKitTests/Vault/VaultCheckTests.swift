import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// A vault that restic has filled, made once: two snapshots, the second with one file changed and some gone, so that
/// pruning has to repack. Tests work on copies.
enum ResticVault {
    static let password = "secret"

    private static let made = Result { try make() }

    /// The folder of a fresh copy.
    static func copy(to folder: String) throws -> String {
        let path = "\(folder)/v"
        let result = try runProcess(["cp", "-a", try made.get(), path])
        try #require(result.status == 0, "\(result.stderr)")
        return path
    }

    static func open(_ path: String) throws -> Vault {
        try Vault.open(FolderBackend(path), password: utf8(password))
    }

    @discardableResult
    static func restic(_ path: String, _ arguments: String..., exit code: Int32? = 0) throws -> ProcessResult {
        let result = try runProcess(
            ["restic", "-r", path, "--no-cache"] + arguments,
            environment: testEnvironment(["RESTIC_PASSWORD": password]), timeout: 120)
        if let code { #expect(result.status == code, "restic \(arguments): \(result.stdout)\(result.stderr)") }
        return result
    }

    /// Both programs find the vault sound, to the last byte.
    static func expectSound(_ path: String, _ where: SourceLocation = #_sourceLocation) throws {
        let result = try open(path).check(.all)
        #expect(result.findings.filter { $0.severity != .note } == [], sourceLocation: `where`)
        try restic(path, "check", "--read-data")
        #expect(try Directory.names(in: "\(path)/locks") == [], sourceLocation: `where`)
    }

    private static func make() throws -> String {
        // Lives as long as the tests.
        let folder = "/tmp/backup-tool-test-restic-\(getpid())"
        try Directory.removeTree(folder)
        atexit { try? Directory.removeTree("/tmp/backup-tool-test-restic-\(getpid())") }
        let source = "\(folder)/source"
        try Directory.createAll("\(source)/notes")
        var generator = SeededGenerator(seed: 7)
        for number in 0..<40 {
            let file = try FileHandle.create("\(source)/paper-\(number).pdf")
            let words = (0..<4000 + number * 200).map { _ in generator.next() }
            try words.withUnsafeBytes { try file.write($0) }
        }
        let large = (0..<200_000).map { _ in generator.next() }
        try large.withUnsafeBytes { try FileHandle.create("\(source)/notes/large.bin").write($0) }
        try writeFile("\(source)/notes/a.md", String(repeating: "# Notes\n", count: 1000))
        let path = "\(folder)/v"
        try restic(path, "init")
        // A key that costs nothing in place of restic's: the tests open the vault hundreds of times.
        let vault = try open(path)
        _ = try KeyRing(backend: vault.backend).add(vault.key, password: utf8(password), cost: testCost)
        try vault.backend.remove([VaultFile(.key, vault.keyID)])
        try restic(path, "backup", source, "--time", "2026-01-02 03:04:05", "--host", "h")
        for number in 0..<20 { unlink("\(source)/paper-\(number).pdf") }
        try writeFile("\(source)/notes/a.md", "changed")
        try restic(path, "backup", source, "--time", "2026-02-02 03:04:05", "--host", "h")
        return path
    }
}

private func withVault(_ body: (String) throws -> Void) throws {
    try withTemporaryFolder { try body(try ResticVault.copy(to: $0)) }
}

private func files(_ path: String, _ kind: VaultFile.Kind) throws -> [String] {
    try FolderBackend(path).list(kind).items.map { "\(path)/\(VaultFile(kind, $0.id).path)" }
}

private func damage(_ path: String, _ change: (inout [UInt8]) -> Void) throws {
    var bytes = try readFile(path)
    change(&bytes)
    unlink(path)
    try bytes.withUnsafeBytes { try FileHandle.create(path).write($0) }
}

@Suite struct VaultCheckTests {
    @Test func aVaultOfResticIsSoundAndCounted() throws {
        try withVault { path in
            let result = try ResticVault.open(path).check(.all)
            #expect(result.findings.isEmpty && result.isSound, "\(result.findings)")
            #expect(result.snapshots == 2 && result.packsRead == result.packs && result.bytesRead > 2_000_000)
        }
    }

    @Test func everyMissingCutOrFlippedFileIsFoundAndNothingTraps() throws {
        var generator = SeededGenerator(seed: testSeed())
        try withVault { original in
            for kind in VaultFile.Kind.allCases where kind != .lock {
                for file in try files(original, kind) {
                    let name = String(file.dropFirst(original.utf8.count + 1))
                    for how in ["missing", "cut", "flipped", "empty"] {
                        try withTemporaryFolder { folder in
                            let path = "\(folder)/v"
                            _ = try runProcess(["cp", "-a", original, path])
                            let victim = "\(path)/\(name)"
                            switch how {
                            case "missing": unlink(victim)
                            case "cut": try damage(victim) { $0.removeLast() }
                            case "empty": try damage(victim) { $0.removeAll() }
                            default:
                                let place = generator.below(Int(try FileStatus.ofName(victim)?.size ?? 1))
                                try damage(victim) { $0[place] ^= 1 << UInt8(generator.below(8)) }
                            }
                            // A snapshot that is gone is gone, as after forget; only who remembers it can miss it.
                            if how == "missing", kind == .snapshot { return }
                            var isFound = true
                            do {
                                isFound = !(try ResticVault.open(path).check(.all)).isSound
                            } catch is BackupError {}
                            #expect(isFound, "\(name) \(how)")
                        }
                    }
                }
            }
        }
    }

    /// The vault is there; that it has lost a pack is no "not found".
    @Test func aRestoreThatNeedsAMissingPack_callsTheVaultDamaged() throws {
        try withVault { original in
            for pack in try files(original, .data) {
                try withTemporaryFolder { folder in
                    _ = try runProcess(["cp", "-a", original, "\(folder)/v"])
                    unlink("\(folder)/v\(pack.dropFirst(original.utf8.count))")
                    let vault = try ResticVault.open("\(folder)/v")
                    let (reader, index) = (try BlobReader(vault), try vault.loadIndex().blobs)
                    for snapshot in try vault.snapshots().0 {
                        let tree = try #require(snapshot.file.tree)
                        do { _ = try reader.nodes(of: tree, in: index) } catch let error as BackupError {
                            #expect(error.code == .damaged && error.remedy != nil, "\(error)")
                        }
                    }
                }
            }
        }
    }

    @Test func damageInAPackIsNamedByFileAndSnapshot() throws {
        try withVault { path in
            let vault = try ResticVault.open(path)
            let index = try vault.loadIndex().blobs
            // The blob of one paper that only the first snapshot has.
            let snapshots = try vault.snapshots().snapshots
            let reader = try BlobReader(vault)
            func find(_ name: String) throws -> TreeNode {
                var tree = try #require(snapshots[0].file.tree)
                while true {
                    let nodes = try reader.read(BlobHandle(.tree, tree), in: index, Tree.init(parsing:)).nodes
                    if let node = nodes.first(where: { $0.text == name }) { return node }
                    tree = try #require(nodes.first { $0.kind == .folder }?.subtree)
                }
            }
            let blob = try #require(try find("paper-3.pdf").content?.first)
            let number = try #require(index.find(BlobHandle(.data, blob)))
            let pack = index.packs[index.pack(of: number)].id
            try damage("\(path)/\(VaultFile(.data, pack).path)") { $0[Int(index[number].offset) + 20] ^= 1 }
            #expect(try vault.check().isSound, "without reading nobody can know")
            let result = try vault.check(.all)
            #expect(result.affected.map { lastComponent(of: $0.path) } == ["paper-3.pdf"])
            #expect(result.affected.first?.snapshot.id == snapshots[0].id)
            #expect(result.findings.contains { $0.subject.hasPrefix("data/") && $0.code == .entryDamaged })
            try ResticVault.restic(path, "check", "--read-data", exit: 1)
            // The same for a pack that is gone: both snapshots need what is in it.
            unlink("\(path)/\(VaultFile(.data, pack).path)")
            let gone = try vault.check()
            #expect(gone.affected.contains { lastComponent(of: $0.path) == "paper-3.pdf" })
            #expect(gone.affectedCount == gone.affected.count && gone.affected.count > 10)
        }
    }

    @Test func filesOfOneKindInThePlaceOfAnotherAreFound() throws {
        try withVault { path in
            let snapshot = try #require(try files(path, .snapshot).first)
            let index = try #require(try files(path, .index).first)
            _ = try runProcess(["cp", snapshot, "\(path)/index/"])
            _ = try runProcess(["cp", index, "\(path)/snapshots/"])
            let result = try ResticVault.open(path).check()
            #expect(result.findings.contains { $0.subject.hasPrefix("index/") && $0.severity == .damage })
            #expect(result.findings.contains { $0.subject.hasPrefix("snapshots/") && $0.severity == .damage })
        }
    }

    /// Each file copied and moved to another name, another folder, and the vault's root.
    @Test func everyDuplicatedOrMisplacedFileIsFound() throws {
        var generator = SeededGenerator(seed: testSeed())
        try withVault { path in
            let vault = try ResticVault.open(path)
            for kind in VaultFile.Kind.allCases where ![.lock, .config].contains(kind) {
                for file in try files(path, kind).prefix(1) {
                    let other = SHA256Digest.of("\(generator.next())")
                    let name = lastComponent(of: file)
                    let wrong = name.hasPrefix("00") ? "01" : "00"
                    let places = [
                        "\(path)/\(VaultFile(kind, other).path)", "\(path)/\(name)",
                        kind == .data
                            ? "\(path)/data/\(wrong)/\(name)" : "\(path)/\(kind.rawValue)/\(name.uppercased())",
                    ]
                    for (place, isMoved) in places.flatMap({ [($0, false), ($0, true)] }) {
                        _ = try runProcess(["cp", "-a", file, "\(path)/aside"])
                        _ = try runProcess([isMoved ? "mv" : "cp", file, place])
                        let result = try vault.check(kind == .data ? .all : .none)
                        let subject = String(place.dropFirst(path.utf8.count + 1))
                        let finding = result.findings.first { $0.subject == subject }
                        #expect(finding.map { $0.severity != .note } == true, "\(subject) \(isMoved)")
                        if kind == .data { #expect(result.isSound == !isMoved, "\(subject) \(isMoved)") }
                        unlink(place)
                        _ = try runProcess(["mv", "-f", "\(path)/aside", file])
                    }
                }
            }
            try ResticVault.expectSound(path)
        }
    }

    /// The blobs are all there and sound, and by an index made anew the names are right; but they are not.
    @Test func packsUnderNamesThatAreNotTheirsAreDamageAndCanBeRepaired() throws {
        try withVault { path in
            let pack = try #require(try files(path, .data).first)
            let wrong = "\(path)/\(VaultFile(.data, .of("wrong")).path)"
            try Directory.createAll(parent(of: wrong))
            _ = try runProcess(["mv", pack, wrong])
            let moved = try ResticVault.open(path).check(.all).findings.filter { $0.code == .digestMismatch }
            #expect(moved.map(\.message) == ["is \(pack.dropFirst(path.utf8.count + 1)) under another name"])
            try ResticVault.restic(path, "rebuild-index")
            try ResticVault.restic(path, "check", "--read-data", exit: 1)
            let result = try ResticVault.open(path).check(.all)
            #expect(result.findings.map(\.code) == [.digestMismatch] && !result.isSound && result.affected.isEmpty)
            var repaired = RepairResult()
            try ResticVault.open(path).locked(exclusively: true) { repaired = try $0.repair(saving: "\(path)-saved") }
            #expect(repaired.packs == 1 && repaired.blobsLost == 0 && repaired.blobsKept > 0)
            try ResticVault.expectSound(path)
        }
    }

    @Test func subsetsTogetherAreTheWhole() throws {
        let ids = (0..<500).map { SHA256Digest.of("\($0)") }
        var seen: [Int] = []
        for part in 1...7 { seen += CheckedPacks.part(part, of: 7).select(500) { ids[$0] } }
        #expect(seen.sorted() == Array(0..<500))
        #expect(CheckedPacks.percent(10).select(500) { ids[$0] }.count == 50)
        #expect(CheckedPacks.percent(0.01).select(500) { ids[$0] }.count == 1)
        #expect(CheckedPacks(subset: "3/7") == .part(3, of: 7) && CheckedPacks(subset: "2.5%") == .percent(2.5))
        for wrong in ["", "0/7", "8/7", "1/257", "1/", "/", "%", "-1%", "101%", "x", "1/2/3"] {
            #expect(CheckedPacks(subset: wrong) == nil, "\(wrong)")
        }
    }

    @Test func treesThatNobodyShouldWriteAreReported() throws {
        try withTemporaryFolder { folder in
            let vault = try newVault(at: "\(folder)/v", password: "secret")
            func node(_ name: String, _ kind: TreeNode.Kind = .file) -> TreeNode {
                var node = TreeNode(name: utf8(name), kind: kind)
                node.content = kind == .file ? [] : nil
                return node
            }
            func check(_ nodes: [String]) throws -> [Finding] {
                let writer = try PackWriter(vault, known: vault.loadIndex().blobs)
                let lane = try PackWriter.Lane(writer)
                let json = utf8("{\"nodes\":[\(nodes.joined(separator: ","))]}\n")
                let id = try json.withUnsafeBytes { try lane.store($0, as: .tree).id }
                _ = try writer.finish()
                let file = SnapshotFile(time: GoTime(seconds: 0), tree: id, paths: ["/x"])
                try vault.forget(vault.snapshots().snapshots.map(\.id))
                try vault.storeUnpacked(.snapshot, file.encoded())
                return try vault.check().findings.filter { $0.severity != .note }
            }
            func json(_ node: TreeNode) throws -> String {
                let tree = String(decoding: try Tree(nodes: [node]).encoded(), as: UTF8.self)
                return String(tree.dropFirst("{\"nodes\":[".utf8.count).dropLast("]}\n".utf8.count))
            }
            let (a, b) = (try json(node("a")), try json(node("b")))
            #expect(try check([a, b]).isEmpty)
            #expect(try check([b, a]).map(\.severity) == [.warning])
            #expect(try check([a, a]).map(\.severity) == [.warning])
            for bad in try [
                json(node("..")), json(node("a/b")), json(node("")), json(node("x", .folder)),
                json(node("x", .other("y"))),
            ] {
                #expect(try check([bad]).contains { $0.severity == .damage }, "\(bad)")
            }
            var short = node("a")
            short.size = 5
            #expect(try check([json(short)]).map(\.severity) == [.warning])
            short.content = [.of("nowhere")]
            #expect(try check([json(short)]).contains { $0.message.contains("in no pack") })
        }
    }
}
