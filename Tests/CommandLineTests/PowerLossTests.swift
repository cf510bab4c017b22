import BackupKit
import Glibc
import TestSupport
import Testing

/// What is plugged out while it writes.
enum UnpluggedCommand: String, CaseIterable, Sendable {
    case export, exportFolder, importWithAttachments, importMirror, restore, undo, redo, storeRepair, storePurge, sync,
        vaultBackup, vaultPrune, vaultUnlock, keyRemove, scheduleInstall

    var line: String {
        switch self {
        case .export: "export -q -o out"
        case .exportFolder: "export -q -o out --format dir"
        case .importWithAttachments: "import -q new.bib --attachments new"
        case .importMirror: "import -q --mirror b.bib"
        case .restore: "restore -q backup.tar.zst --mode replace"
        case .undo: "undo -q"
        case .redo: "undo -q --redo"
        case .storeRepair: "store repair -q --from backup.tar.zst"
        case .storePurge: "store purge -q --deleted-before 2999-01-01 --confirm --with-files"
        case .sync: "sync -q --hub hub.db"
        case .vaultBackup: "vault backup -q"
        case .vaultPrune: "vault forget -q --keep-last 1 --prune --max-unused 0"
        case .vaultUnlock: "vault unlock -q"
        case .keyRemove: "vault key remove -q ID"
        case .scheduleInstall: "schedule install -q --systemd --user --config nightly.toml"
        }
    }

    /// What comes before it.
    var preparation: String {
        switch self {
        case .vaultPrune: "$T vault backup -q"
        case .redo: "$T undo -q"
        case .importMirror: "echo '@misc{f, title={F}}' > b.bib"
        case .storeRepair: "sqlite3 store.db \"UPDATE record SET fields = '{}' WHERE fields LIKE '%{B}%'\""
        case .storePurge:
            """
            $T store delete -q "$(sqlite3 store.db "SELECT local_id FROM record WHERE fields LIKE '%{A}%' LIMIT 1")"
            """
        case .vaultUnlock:
            """
            strace -f -qq -o /dev/null -e inject=unlink,unlinkat:signal=KILL "$T" vault backup -q || true
            ls v/locks | grep -q .
            """
        case .keyRemove:
            """
            echo another > pw2; chmod 600 pw2; $T vault key add -q --new-password-file pw2
            $T vault key list --json | python3 -c '
            import json, sys
            print([key["id"] for key in json.load(sys.stdin) if not key["current"]][0])' > id
            """
        case .scheduleInstall: "printf \"store = 'store.db'\\nvault = 'v'\\npassword-file = 'pw'\\n\" > nightly.toml"
        default: ":"
        }
    }

    /// With damage, and with work that is left to do, commands end otherwise.
    var mayEndWith: [Int32] { self == .storeRepair ? [0, 3, 4] : self == .storePurge ? [0, 3] : [0] }
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
    private func state(
        _ bench: Workbench, in folder: String, _ place: String, mayEndWith codes: [Int32]
    ) throws -> String {
        func tool(_ words: String...) throws -> ProcessResult {
            let result = try runTool(
                words, environment: testEnvironment(Self.environment.merging(["TMPDIR": bench.path("tmp")]) { $1 }),
                in: folder)
            #expect(codes.contains(result.status), "\(place): \(words): \(result.stderr)")
            return result
        }
        var parts = [try tool("store", "digest", "--store", "store.db").stdout]
        _ = try tool("store", "check", "--store", "store.db")
        // Without the files that its rows name, a store is half a state.
        _ = try tool("export", "-q", "--store", "store.db", "-o", "looked.tar")
        parts.append(try tool("vault", "snapshots", "--json").stdout)
        _ = try tool("vault", "check", "--read-data", "-q")
        if try FileStatus.ofName("\(folder)/out") != nil {
            _ = try tool("verify", "out", "-q")
            parts.append("exported\n")
        }
        parts.append("keys \(try Directory.names(in: "\(folder)/v/keys"))\n")
        if try FileStatus.ofName("\(folder)/xdg/systemd/user") != nil {
            for (name, bytes) in try contents(of: "\(folder)/xdg/systemd/user").sorted(by: { $0.key < $1.key }) {
                // What is on its way has no name yet.
                if !name.hasPrefix(".") {
                    parts.append("\(name) \((bytes ?? []).withUnsafeBytes { SHA256Digest.of($0) }.hex)\n")
                }
            }
        }
        return parts.joined()
    }

    @Test(arguments: UnpluggedCommand.allCases)
    func unpluggedAnywhere_theOldStateOrTheNewOneOpens(_ command: UnpluggedCommand) throws {
        let bench = try bench()
        let folder = bench.folder
        let codes = command.mayEndWith
        try bench.shell(command.preparation)
        let id = try bench.exists("id") ? bench.text("id").dropLast() : ""
        let words = command.line.split(separator: " ").map { $0 == "ID" ? String(id) : String($0) }
        try bench.shell("mkdir tmp/old; cp -a $(ls -A | grep -vx tmp) tmp/old")
        let before = try state(bench, in: "\(folder)/tmp/old", "before", mayEndWith: codes)
        let disk = try DiskModel(folder)
        let result = try runProcess(
            ["strace", "-o", "trace"] + SystemCall.options + [try productsDirectory() + "/backup-tool"] + words,
            environment: testEnvironment(
                Self.environment.merging([
                    "TMPDIR": bench.path("tmp"), "BACKUP_TOOL_STORE": "store.db", "XDG_CONFIG_HOME": bench.path("xdg"),
                ]) { $1 }),
            in: folder, timeout: 120)
        #expect([0, 3].contains(result.status), "\(result.stderr)")
        disk.play(SystemCall.parse(try bench.bytes("trace")))
        try bench.shell("rm -f trace; mkdir tmp/new; cp -a $(ls -A | grep -vx tmp) tmp/new")
        let after = try state(bench, in: "\(folder)/tmp/new", "after", mayEndWith: codes)

        var random = SeededGenerator(seed: testSeed())
        for round in 0..<(isTorture ? 30 : 5) {
            countRounds()
            // The last round: all is done, and nothing survives but what was synced.
            let moment = round == 0 ? disk.count : random.below(disk.count + 1)
            let odds = [0, 1, 2, 4][round == 0 ? 0 : random.below(4)]
            let lost = bench.path("tmp/lost")
            try disk.lose(after: moment, into: lost) { odds > 0 && random.chance(odds) }
            let place = "\(command.rawValue), after step \(moment) of \(disk.count), seed \(testSeed()), round \(round)"
            try bench.shell("chmod 600 tmp/lost/pw; rm -rf tmp/lost/v/locks/*; cd tmp/lost; rm -f looked.tar")
            let found = try state(bench, in: lost, place, mayEndWith: codes)
            #expect(
                found == before || found == after || isBetween(found, after, command),
                "\(place): \(found)\n\(before)\n\(after)")
            if round == 0 { #expect(found == after, "\(place): a command that ended was lost") }
            // The next writer needs no help either.
            let next = try runTool(
                ["store", "delete", "none", "--store", "store.db"],
                environment: testEnvironment(["TMPDIR": bench.path("tmp")]), in: lost)
            #expect(next.status == 10 || next.stderr.contains("no record has this id"), "\(place): \(next.stderr)")
            try Directory.removeTree(lost)
        }
    }

    /// A sync is many transactions, and the two units of a schedule are two files.
    private func isBetween(_ found: String, _ after: String, _ command: UnpluggedCommand) -> Bool {
        command == .sync
            || command == .scheduleInstall
                && Set(found.split(separator: "\n")).isSubset(of: after.split(separator: "\n"))
    }
}
