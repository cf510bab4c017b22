import BackupKit
import Glibc
import TestSupport
import Testing

/// What is plugged out while it writes.
enum UnpluggedCommand: String, CaseIterable, Sendable {
    case export, exportFolder, importWithAttachments, restore, undo, sync, vaultBackup, vaultPrune

    var line: String {
        switch self {
        case .export: "export -q -o out"
        case .exportFolder: "export -q -o out --format dir"
        case .importWithAttachments: "import -q new.bib --attachments new"
        case .restore: "restore -q backup.tar.zst --mode replace"
        case .undo: "undo -q"
        case .sync: "sync -q --hub hub.db"
        case .vaultBackup: "vault backup -q"
        case .vaultPrune: "vault forget -q --keep-last 1 --prune --max-unused 0"
        }
    }
}

/// The power goes at any moment of a command. Of what was not synced any part may be on the disk, in any combination; what
/// is found opens, and is the old state or the new one.
@Suite struct PowerLossTests {
    private static let environment = ["BACKUP_TOOL_VAULT": "v", "BACKUP_TOOL_PASSWORD_FILE": "pw"]

    private func bench() throws -> Workbench {
        let bench = try Workbench(Self.environment)
        try bench.write("a.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
        for name in ["a", "b"] { try bench.write("old/\(name).pdf", String(repeating: name, count: 20_000)) }
        try bench.tool(exit: 0, "import", "a.bib", "--attachments", "old")
        try bench.tool(exit: 0, "export", "-q", "-o", "backup.tar.zst")
        try bench.makeCheapVault()
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw")
        try bench.tool(exit: 0, "vault", "backup", "--time", "2026-01-01T00:00:00Z")
        try bench.write("old/a.pdf", "another a")
        try bench.write("b.bib", "@misc{c, title={C}}\n")
        try bench.tool("import", "b.bib", "--attachments", "old")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.write("new.bib", "@misc{d, title={D}}\n@misc{e, title={E}}\n")
        for name in ["d", "e"] { try bench.write("new/\(name).pdf", String(repeating: name, count: 20_000)) }
        return bench
    }

    /// All that a reader of the folder can see: the store, the hub, the snapshots, the export.
    private func state(_ bench: Workbench, in folder: String, _ place: String) throws -> String {
        func tool(_ words: String...) throws -> ProcessResult {
            let result = try runTool(
                words, environment: testEnvironment(Self.environment.merging(["TMPDIR": bench.path("tmp")]) { $1 }),
                in: folder)
            #expect(result.status == 0, "\(place): \(words): \(result.stderr)")
            return result
        }
        var parts = [try tool("store", "digest", "--store", "store.db").stdout]
        // Without the files that its rows name, a store is half a state.
        _ = try tool("export", "-q", "--store", "store.db", "-o", "looked.tar")
        parts.append(try tool("vault", "snapshots", "--json").stdout)
        _ = try tool("vault", "check", "--read-data", "-q")
        if try FileStatus.ofName("\(folder)/out") != nil {
            _ = try tool("verify", "out", "-q")
            parts.append("exported")
        }
        return parts.joined()
    }

    @Test(arguments: UnpluggedCommand.allCases)
    func unpluggedAnywhere_theOldStateOrTheNewOneOpens(_ command: UnpluggedCommand) throws {
        let bench = try bench()
        let folder = bench.folder
        let words = command.line.split(separator: " ").map(String.init)
        if command == .vaultPrune { try bench.tool(exit: 0, "vault", "backup") }
        try bench.shell("mkdir tmp/old; cp -a $(ls -A | grep -vx tmp) tmp/old")
        let before = try state(bench, in: "\(folder)/tmp/old", "before")
        let disk = try DiskModel(folder)
        let result = try runProcess(
            ["strace", "-o", "trace"] + SystemCall.options + [try productsDirectory() + "/backup-tool"] + words,
            environment: testEnvironment(
                Self.environment.merging(["TMPDIR": bench.path("tmp"), "BACKUP_TOOL_STORE": "store.db"]) { $1 }),
            in: folder, timeout: 120)
        #expect([0, 3].contains(result.status), "\(result.stderr)")
        disk.play(SystemCall.parse(try bench.bytes("trace")))
        try bench.shell("rm -f trace; mkdir tmp/new; cp -a $(ls -A | grep -vx tmp) tmp/new")
        let after = try state(bench, in: "\(folder)/tmp/new", "after")

        var random = SeededGenerator(seed: testSeed())
        for round in 0..<(isTorture ? 2000 : 5) {
            countRounds()
            // The last round: all is done, and nothing survives but what was synced.
            let moment = round == 0 ? disk.count : random.below(disk.count + 1)
            let odds = [0, 1, 2, 4][round == 0 ? 0 : random.below(4)]
            let lost = bench.path("tmp/lost")
            try disk.lose(after: moment, into: lost) { odds > 0 && random.chance(odds) }
            let place = "\(command.rawValue), after step \(moment) of \(disk.count), seed \(testSeed()), round \(round)"
            try bench.shell("chmod 600 tmp/lost/pw; rm -rf tmp/lost/v/locks/*; cd tmp/lost; rm -f looked.tar")
            let found = try state(bench, in: lost, place)
            #expect(
                found == before || found == after || isBetween(found, command),
                "\(place): \(found)\n\(before)\n\(after)")
            if round == 0 { #expect(found == after, "\(place): a command that ended was lost") }
            // The next writer needs no help either.
            let next = try runTool(
                ["store", "delete", "none", "--store", "store.db"],
                environment: testEnvironment(["TMPDIR": bench.path("tmp")]), in: lost)
            #expect(next.status == 10 || next.stderr.contains("no such record"), "\(place): \(next.stderr)")
            try Directory.removeTree(lost)
        }
    }

    /// A sync is many transactions, and an export that is there is whole whatever the store says.
    private func isBetween(_ found: String, _ command: UnpluggedCommand) -> Bool { command == .sync }
}
