import BackupKit
import Glibc
import TestSupport
import Testing

/// What is done to a store while it is killed.
enum CrashedCommand: String, CaseIterable, Sendable {
    case export, importWithAttachments, restore, undo, redo, resolve, dedup, adopt

    func words(_ bench: Workbench, target: String) -> [String] {
        switch self {
        case .export: ["export", "-q", "-o", "out.\(target)"]
        case .importWithAttachments: ["import", "-q", "new.bib", "--attachments", "new"]
        case .restore: ["restore", "-q", "backup.tar.zst", "--mode", "replace"]
        case .undo: ["undo", "-q"]
        case .redo: ["undo", "-q", "--redo"]
        case .adopt: ["store", "adopt", "-q"]
        case .resolve: ["conflicts", "resolve", "-q", "1", "--with", "keep-incoming"]
        case .dedup: ["dedup", "-q"]
        }
    }
}

/// A store whose commands all have something to do.
private func crashBench(_ command: CrashedCommand = .export) throws -> Workbench {
    let bench = try Workbench(["BACKUP_TOOL_VAULT": "v", "BACKUP_TOOL_PASSWORD_FILE": "pw"])
    try bench.makeCheapVault()
    try bench.write("pw", "secret\n")
    try bench.shell("chmod 600 pw")
    try bench.write("old.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
    for name in ["a", "b"] { try bench.write("old/\(name).pdf", String(repeating: name, count: 100_000)) }
    try bench.tool(exit: 0, "import", "old.bib", "--attachments", "old")
    try bench.tool(exit: 0, "export", "-q", "-o", "backup.tar.zst")
    try bench.write("old/a.pdf", "another a")
    try bench.write("mid.bib", "@misc{c, title={C}}\n")
    try bench.tool("import", "mid.bib", "--attachments", "old")
    try bench.write("new.bib", "@misc{d, title={D}}\n@misc{e, title={E}}\n")
    for name in ["d", "e"] { try bench.write("new/\(name).pdf", String(repeating: name, count: 100_000)) }
    // Others would fold them: only a sync brings one record under several names.
    if command == .dedup { try bench.giveSecondNames() }
    if command == .redo { try bench.tool(exit: 0, "undo", "-q") }
    if command == .adopt { try bench.write("store.db.assets/Attachments/b.pdf", "annotated b") }
    try bench.shell("cp -a store.db keep.db; cp -a store.db.assets keep.assets")
    return bench
}

/// A command that is killed, and the two states that it may leave.
private final class CrashStage {
    let command: CrashedCommand
    let bench: Workbench
    private let before: (digest: String, assets: Set<String>)
    private let after: (digest: String, assets: Set<String>)
    private let words: [String]

    init(_ command: CrashedCommand) throws {
        self.command = command
        bench = try crashBench(command)
        words = command.words(bench, target: "x") + ["--store", "store.db"]
        before = (try Self.state(command, bench), try Self.assets(bench))
        let whole = try Self.run(words, bench, [])
        #expect([0, 3].contains(whole.status), "\(whole.stderr)")
        after = (try Self.state(command, bench), try Self.assets(bench))
        #expect((before.digest == after.digest) == (command == .export))
    }

    private static func run(_ words: [String], _ bench: Workbench, _ options: [String]) throws -> ProcessResult {
        try runProcess(
            ["strace", "-f", "-qq", "-o", "trace"] + options + [try productsDirectory() + "/backup-tool"] + words,
            environment: testEnvironment(["TMPDIR": bench.path("tmp")]), in: bench.folder)
    }

    private static func assets(_ bench: Workbench) throws -> Set<String> {
        Set(try bench.files("store.db.assets").filter { !$0.hasPrefix(".") })
    }

    /// What a decision writes is as old as the decision, and so never twice the same to the last digit.
    private static func state(_ command: CrashedCommand, _ bench: Workbench) throws -> String {
        guard command == .resolve || command == .dedup else { return try bench.digest() }
        return try bench.shell(
            """
            sqlite3 store.db "SELECT zone, ifnull(name, local_id), local_id, fields, deleted_at IS NULL FROM record
              ORDER BY 1, 2; SELECT path, sha256 FROM asset; SELECT * FROM conflict_number"
            """)
    }

    private func reset() throws {
        try bench.shell("rm -rf store.db* out.* .out*; cp -a keep.db store.db; cp -a keep.assets store.db.assets")
    }

    /// The command's steps that are such system calls.
    func steps(_ calls: String) throws -> [TracedStep] {
        try reset()
        _ = try Self.run(words, bench, ["-e", "trace=\(calls)"])
        return TracedStep.all(in: try bench.text("trace"))
    }

    /// Kills the command at one of its steps, and judges what is left.
    func kill(at step: TracedStep) throws {
        let place = "\(command.rawValue), \(step)"
        try reset()
        _ = try Self.run(words, bench, step.kill)
        // A reader finds one of the two states at once, without any repair.
        let found = try Self.state(command, bench)
        #expect(found == before.digest || found == after.digest, "\(place)")
        // The files are those of its rows, without any writer. What an app changed is said, before and after.
        let code: Int32 = command == .adopt && found == before.digest ? 3 : 0
        let read = try bench.json(exit: code, "export", "-o", "out.read")
        if code == 0 {
            #expect(try read["contentDigest"]?.string.map { $0 + "\n" } == bench.digest(), "\(place)")
            #expect(read["warnings"]?.array?.isEmpty == true, "\(place): \(read)")
        }
        try bench.tool(exit: code, "vault", "backup", "-q")
        #expect(try bench.shell("sqlite3 store.db 'PRAGMA integrity_check'") == "ok\n", "\(place)")
        if command == .export, try bench.exists("out.x") {
            try bench.tool(exit: 0, "verify", "out.x", "--level", "deep")
        }
        // The next run needs no help, and cleans up. A delete of nothing opens the store for writing.
        try bench.tool("store", "delete", "none")
        let expected = found == before.digest ? before.assets : after.assets
        #expect(try Self.assets(bench) == expected, "\(place)")
        try bench.tool(exit: code, "export", "-q", "-o", "out.x", "--force")
        let omitted = try bench.json(exit: code, "export", "-o", "out.y")
        #expect(omitted["omitted"]?.array?.isEmpty == true, "\(place)")
        let left =
            try Directory.names(in: bench.folder).filter { $0.contains(".tmp-") }
            + Directory.names(in: bench.path("store.db.assets")).filter { $0.hasPrefix(".incoming") }
        #expect(left.isEmpty, "\(place): \(left)")
    }
}

/// SIGKILL at some of the system calls, and so at places that no timer finds.
@Test(arguments: CrashedCommand.allCases)
func killedAnywhere_aCommandLeavesTheOldStateOrTheNewOne(_ command: CrashedCommand) throws {
    let calls =
        "openat,openat2,write,pwrite64,fsync,fdatasync,renameat2,rename,link,unlink,unlinkat,mkdir,mkdirat,ftruncate,utimensat,rmdir"
    let stage = try CrashStage(command)
    let steps = try stage.steps(calls)
    var random = SeededGenerator(seed: testSeed())
    for _ in 0..<(isTorture ? 50 : 6) {
        countRounds()
        try stage.kill(at: steps[random.below(steps.count)])
    }
}

/// SIGKILL at every rename, link and unlink, and at every write and sync of a commit.
@Test(arguments: [CrashedCommand.restore, .undo, .redo])
func killedAtEveryStep_aReplaceOrUndoLeavesTheOldStateOrTheNewOne(_ command: CrashedCommand) throws {
    let calls = "rename,renameat,renameat2,link,linkat,unlink,unlinkat,pwrite64,fsync,fdatasync"
    let stage = try CrashStage(command)
    let steps = try stage.steps(calls)
    #expect(steps.count > 20)
    for step in steps.chosen(3) {
        countRounds()
        try stage.kill(at: step)
    }
}

/// I790. SIGKILL at every step of an undo that gives back what apps had written into files: each reader has the old state or
/// the new one, with the bytes, also before a writer comes.
@Test func killedAtEveryStep_anUndoThatGivesBackChangedFiles_isDoneOrNot() throws {
    let bench = try Workbench(["BACKUP_TOOL_VAULT": "v", "BACKUP_TOOL_PASSWORD_FILE": "pw"])
    try bench.makeCheapVault()
    try bench.write("pw", "secret\n")
    try bench.shell("chmod 600 pw")
    for name in ["a", "b", "c"] { try bench.write("old/\(name).pdf", "paper \(name)\n") }
    try bench.write("old.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n@misc{c, title={C}}\n")
    try bench.tool(exit: 0, "import", "old.bib", "--attachments", "old")
    try bench.tool(exit: 0, "export", "-q", "-o", "backup.tar")
    try bench.shell("for f in store.db.assets/Attachments/[ab].pdf; do echo notes >> $f; done")
    try bench.tool("restore", "-q", "backup.tar", "--mode", "replace")
    try bench.tool(exit: 0, "vault", "backup", "-q")
    try bench.shell("cp -a store.db keep.db; cp -a store.db.assets keep.assets; cp -a v keep.v")
    let tool = try productsDirectory() + "/backup-tool"
    func run(_ options: [String]) throws {
        _ = try runProcess(
            ["strace", "-f", "-qq", "-o", "trace"] + options + [tool, "undo", "-q", "--store", "store.db"],
            environment: testEnvironment(["TMPDIR": bench.path("tmp")]), in: bench.folder)
    }
    func reset() throws {
        try bench.shell(
            "rm -rf store.db* out* v; cp -a keep.db store.db; cp -a keep.assets store.db.assets; cp -a keep.v v")
    }
    /// The files of an export, of a snapshot, and what `store check` says.
    func state() throws -> [String] {
        try bench.tool("export", "-q", "-o", "out")
        try bench.tool("vault", "backup", "-q")
        try bench.tool("restore", "-q", "vault:v@latest", "--create", "--store", "out.db")
        let states = try ["out/Attachments", "out.db.assets/Attachments"].map {
            try bench.shell("cd \($0) && sha256sum *")
        }
        try bench.shell("rm -rf out*")
        return try states + [bench.tool("store", "check", "--quick").stdout, bench.tool("store", "check").stdout]
    }
    let old = try state()
    let all = ["unlinkat", "renameat", "fdatasync"] + (Workbench.isTorture ? ["renameat2", "fsync", "pwrite64"] : [])
    try reset()
    try run(["-e", "trace=\(all.joined(separator: ","))"])
    let steps = TracedStep.all(in: try bench.text("trace"))
    let new = try state()
    #expect(old[0] != new[0])
    for call in all { #expect(steps.count { $0.call == call } > 1, "\(call)") }
    for step in steps {
        try reset()
        try run(step.kill)
        let found = try state()
        #expect(found == old || found == new, "\(step): \(found)")
    }
}

@Test func aKilledDeepCheck_isCleanedUpByTheNext() throws {
    let bench = try crashBench()
    _ = try runProcess(
        [
            "strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=fdatasync,fsync:signal=KILL:when=3",
            try productsDirectory() + "/backup-tool", "verify", "backup.tar.zst", "--level", "deep",
        ], environment: testEnvironment(["TMPDIR": bench.path("tmp")]), in: bench.folder)
    #expect(try !Directory.names(in: bench.path("tmp")).isEmpty)
    try bench.tool(exit: 0, "verify", "backup.tar.zst", "--level", "deep")
    #expect(try Directory.names(in: bench.path("tmp")).isEmpty)
}

@Test func anInterruptedExport_leavesNothing_andSays130() throws {
    let bench = try Workbench()
    try bench.shell("mkdir big; truncate -s 100000000 big/a.bin big/b.bin")
    try bench.tool(exit: 3, "import", "--attachments", "big")
    for (target, signal) in [("out.tar.gz", SIGINT), ("out", SIGTERM)] {
        // Not by the shell: what it starts in the background ignores SIGINT.
        try bench.python(
            """
            import os, signal as signals, subprocess, sys, time
            # The test's own thread takes no signals, and what it starts inherits that.
            signals.pthread_sigmask(signals.SIG_SETMASK, [])
            tool, target, signal = sys.argv[1], sys.argv[2], int(sys.argv[3])
            run = subprocess.Popen([tool, 'export', '-o', target], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
            while not any('.tmp-' in name for name in os.listdir('.')): time.sleep(0.01)
            time.sleep(0.05)
            run.send_signal(signal)
            out, err = run.communicate()
            assert run.returncode == 128 + signal and out == b'' and b'interrupted' in err, (run.returncode, err)
            assert not os.path.exists(target) and not any('.tmp-' in name for name in os.listdir('.'))
            """, try productsDirectory() + "/backup-tool", target, String(signal))
    }
}

/// A disk that is full is called that, and nothing half written stays.
@Test func aFullDisk_isSaid_andLeavesEverythingAsItWas() throws {
    guard geteuid() == 0 else { return }
    let bench = try crashBench()
    guard try runProcess(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", bench.path("tmp")]).status == 0 else {
        return
    }
    defer { _ = try? runProcess(["umount", "-l", bench.path("tmp")]) }
    let before = try bench.state()
    for format in ["dir", "tar", "zip"] {
        let result = try bench.tool(
            exit: 1, "export", "-o", "tmp/out", "--format", format, environment: ["TMPDIR": "/var/tmp"])
        #expect(result.stderr.contains("No space left on device") && result.stderr.contains("free some space"))
        #expect(try Directory.names(in: bench.path("tmp")).isEmpty, "\(format)")
    }
    let deep = try bench.tool("verify", "backup.tar.zst", "--level", "deep")
    #expect(deep.status == 1 && deep.stderr.contains("No space left on device"), "\(deep.status) \(deep.stderr)")
    #expect(try Directory.names(in: bench.path("tmp")).isEmpty)
    #expect(try bench.state() == before)
}

@Test func aStoreOnAFullDisk_keepsItsOldState() throws {
    guard geteuid() == 0 else { return }
    let bench = try crashBench()
    try bench.shell("mkdir small")
    guard try runProcess(["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", bench.path("small")]).status == 0 else {
        return
    }
    defer { _ = try? runProcess(["umount", "-l", bench.path("small")]) }
    try bench.shell("cp -a keep.db small/store.db; cp -a keep.assets small/store.db.assets")
    let before = try bench.digest("small/store.db")
    try bench.write("more/f.pdf", String(repeating: "f", count: 1_000_000))
    let result = try bench.tool(exit: 1, "import", "new.bib", "--attachments", "more", "--store", "small/store.db")
    #expect(result.stderr.contains("No space left on device"), "\(result.stderr)")
    #expect(try bench.digest("small/store.db") == before)
    #expect(try bench.shell("sqlite3 small/store.db 'PRAGMA integrity_check'") == "ok\n")
    try bench.tool(exit: 0, "export", "--store", "small/store.db", "-o", "fine")
}

@Test func anExport_whileAnotherWrites_isOfOneMoment() throws {
    let bench = try Workbench()
    try bench.write("a.jsonl", "{\"id\":\"0\",\"time\":\"2026-01-01T00:00Z\",\"type\":\"x\"}\n")
    try bench.tool(exit: 0, "import", "a.jsonl")
    // Each import adds ten events in one transaction, so an export that saw part of one has an odd count.
    try bench.shell(
        """
        (for i in $(seq 12); do
            for j in 0 1 2 3 4 5 6 7 8 9; do
                echo "{\\"id\\":\\"$i-$j\\",\\"time\\":\\"2026-01-0${j}T00:00Z\\",\\"type\\":\\"x\\"}"
            done | sed 's/-00T/-10T/' > in$i.jsonl
            "$T" import -q in$i.jsonl
        done; touch done) &
        n=0
        while [ ! -e done ]; do n=$((n+1)); "$T" export -q -o e$n.tar; done
        wait
        for ((i = 1; i <= n; i++)); do
            "$T" verify -q e$i.tar --level deep
            count=$("$T" show e$i.tar records.jsonl | wc -l)
            [ $((count % 10)) = 1 ] || { echo "e$i has $count"; exit 1; }
        done
        """)
}

@Test func twoWriters_takeTurns_orTheSecondSaysLocked() throws {
    let bench = try Workbench()
    try bench.tool(exit: 0, "store", "init")
    for number in 1...6 { try bench.write("f\(number).bib", "@misc{k\(number), title={T}}\n") }
    try bench.shell(
        "for i in 1 2 3 4 5 6; do \"$T\" import -q f$i.bib & pids+=($!); done; for p in ${pids[@]}; do wait $p; done")
    #expect(try bench.json(exit: 0, "store", "info")["records"]?["publications"]?.integer == 6)
    guard Workbench.isTorture else { return }
    let result = try bench.shell(
        "flock store.db.assets sleep 15 & sleep 0.3; code=0; \"$T\" import f1.bib 2> said || code=$?; echo $code; wait")
    #expect(result == "11\n")
    #expect(try bench.text("said").contains("another backup-tool"))
}
