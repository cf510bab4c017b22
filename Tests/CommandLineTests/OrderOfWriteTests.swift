import BackupKit
import Glibc
import TestSupport
import Testing

/// The order in which every command that writes does so, read from its system calls: what gets a name is whole and synced
/// before, its folder is synced after, and nothing is removed while what replaces it could still be lost.
@Suite struct OrderOfWriteTests {
    /// Runs the tool and returns what it did to the bench's folder.
    private func trace(_ bench: Workbench, _ line: String) throws -> (disk: DiskModel, status: Int32, said: String) {
        let disk = try DiskModel(bench.folder)
        let words = line.split(separator: " ").map(String.init)
        let result = try runProcess(
            ["strace", "-o", "trace"] + SystemCall.options + [try productsDirectory() + "/backup-tool"] + words,
            environment: testEnvironment([
                "TMPDIR": bench.path("tmp"), "HOME": bench.path("home"), "BACKUP_TOOL_STORE": "store.db",
                "BACKUP_TOOL_VAULT": "v", "BACKUP_TOOL_PASSWORD_FILE": "pw", "XDG_CONFIG_HOME": bench.path("xdg"),
            ]), in: bench.folder, timeout: 120)
        disk.play(SystemCall.parse(try bench.bytes("trace")))
        return (disk, result.status, result.stderr)
    }

    /// Runs one command after the other; each has something to write.
    private func expectOrder(_ bench: Workbench, _ lines: [String]) throws {
        for line in lines {
            let (disk, status, said) = try trace(bench, line)
            #expect([0, 3].contains(status), "\(line): \(said)")
            #expect(disk.count > 0, "\(line): wrote nothing")
            #expect(disk.defects.isEmpty, "\(line)\n\(disk.defects.joined(separator: "\n"))")
        }
    }

    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
        try bench.write("b.bib", "@misc{c, title={C}}\n@misc{a, title={Another A}, author={Z}}\n")
        try bench.write("in/x.jsonl", "{\"id\":\"1\",\"time\":\"2026-01-01T00:00Z\",\"type\":\"x\"}\n")
        for name in ["a", "b"] { try bench.write("pdfs/\(name).pdf", String(repeating: name, count: 3000)) }
        try bench.write("more/a.pdf", "another a")
        try bench.write("more/c.pdf", "c")
        for (name, text) in [("pw", "secret\n"), ("pw2", "another\n"), ("pw3", "a third\n")] {
            try bench.write(name, text)
        }
        try bench.shell("chmod 600 pw pw2 pw3; mkdir home")
        return bench
    }

    @Test func whatWritesToAStore() throws {
        let bench = try bench()
        try expectOrder(
            bench,
            [
                "store init", "import a.bib --attachments pdfs", "events import in", "export -o backup.tar.zst -q",
                "import b.bib --attachments more", "conflicts resolve 1 --with keep-existing", "store set-local 1",
                "store enable-cloud 1",
                "store share --with bob --owner ann --user ann Library", "store delete 1",
                "restore backup.tar.zst --mode replace", "undo", "undo", "undo --redo",
                "import b.bib --create --store new.db",
            ])
        try bench.write("b.bib", "@misc{a, title={Another A}, author={Z}}\n")
        try expectOrder(bench, ["import --mirror b.bib"])
        try bench.giveSecondNames()
        try expectOrder(bench, ["dedup"])
        try checkSound(bench.path("store.db"))
    }

    @Test func whatRepairsAndPurges() throws {
        let bench = try bench()
        try bench.tool("import", "a.bib", "--attachments", "pdfs")
        try bench.tool(exit: 0, "export", "-o", "backup.tar.zst", "-q")
        try bench.tool("import", "b.bib", "--attachments", "more")
        try bench.shell("sqlite3 store.db \"UPDATE record SET fields = '{}' WHERE fields LIKE '%{B}%'\"")
        let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%{A}%' LIMIT 1\"")
        try expectOrder(
            bench,
            [
                "store repair --from backup.tar.zst", "store delete \(id.dropLast())",
                "store purge --deleted-before 2999-01-01 --confirm --with-files --source backup.tar.zst",
            ])
        try bench.tool(exit: 0, "store", "check")
        try checkSound(bench.path("store.db"))
    }

    @Test(arguments: [
        "store check", "store digest", "verify backup.tar.zst --level deep", "diff backup.tar.zst store.db",
    ])
    func whatOnlyReads(_ line: String) throws {
        let bench = try bench()
        try bench.tool("import", "a.bib", "--attachments", "pdfs")
        try bench.tool(exit: 0, "export", "-o", "backup.tar.zst", "-q")
        let before = try bench.state()
        let (disk, status, said) = try trace(bench, line)
        #expect(status == 0 && disk.defects.isEmpty, "\(line): \(said) \(disk.defects)")
        #expect(try bench.state() == before, "\(line)")
    }

    @Test func whatWritesExportsAndPlainFiles() throws {
        let bench = try bench()
        try bench.tool("import", "a.bib", "in", "--attachments", "pdfs")
        try expectOrder(
            bench,
            [
                "export -o out", "export -o out.tar.zst", "export -o out.zip", "export -o out.tar.gz",
                "export -o i --format imbib", "export -o i.zip --format imbib", "export -o out --force",
                "export -o out.zip --force", "restore out.zip --to plain", "restore out --to plain --force",
                "events export -o days", "events export -o all.jsonl", "man --all pages",
            ])
        for name in ["out", "out.tar.zst", "out.zip", "out.tar.gz"] { try bench.tool(exit: 0, "verify", name) }
    }

    /// An export that was never read back is a hope. Reading comes after the last write and before the name.
    @Test(arguments: ["dir", "tar.gz", "tar.zst", "zip"])
    func whatIsExportedIsReadBackBeforeItGetsItsName(_ format: String) throws {
        let bench = try bench()
        try bench.tool("import", "a.bib", "--attachments", "pdfs")
        for option in ["--no-verify", "--force"] {
            _ = try runProcess(
                ["strace", "-f", "-qq", "-y", "-o", "trace", "-e", "trace=write,pwrite64,pread64,renameat2"]
                    + [try productsDirectory() + "/backup-tool", "export", "-o", "o", "--format", format, option],
                environment: testEnvironment(["TMPDIR": bench.path("tmp"), "BACKUP_TOOL_STORE": "store.db"]),
                in: bench.folder)
            var (written, readBack): (Set<String>, Set<String>) = ([], [])
            for line in try bench.text("trace").split(separator: "\n") {
                if line.contains("renameat2(") { break }
                guard let start = line.firstIndex(of: "<"), let end = line[start...].firstIndex(of: ">"),
                    line[start..<end].contains("/.o.tmp-")
                else { continue }
                let path = String(line[start..<end])
                if line.contains("pread64(") {
                    readBack.insert(path)
                } else {
                    written.insert(path)
                    readBack.remove(path)
                }
            }
            #expect(!written.isEmpty && readBack == (option == "--force" ? written : []), "\(format) \(option)")
        }
    }

    @Test func whatSyncs() throws {
        let bench = try bench()
        try bench.tool("import", "a.bib", "--attachments", "pdfs")
        try expectOrder(bench, ["hub init hub.db", "sync --hub hub.db"])
        try bench.tool("store", "init", "--store", "other.db")
        try expectOrder(bench, ["sync --hub hub.db --store other.db"])
        try bench.tool("import", "b.bib", "--attachments", "more", "--create", "--store", "other.db")
        try expectOrder(bench, ["sync --hub hub.db --store other.db", "sync --hub hub.db"])
        for name in ["store.db", "other.db"] { try checkSound(bench.path(name)) }
    }

    @Test func whatWritesToAVault() throws {
        let bench = try bench()
        try bench.tool("import", "a.bib", "--attachments", "pdfs")
        try bench.makeCheapVault()
        try bench.shell("mkdir saved")
        try expectOrder(bench, ["vault init --vault w", "vault backup --time 2026-01-01T00:00:00Z"])
        try bench.tool("import", "b.bib", "--attachments", "more")
        try expectOrder(
            bench,
            [
                "vault backup --time 2026-02-01T00:00:00Z", "vault copy --vault w --from v --from-password-file pw",
                "vault key add --new-password-file pw3", "vault forget --keep-last 1",
                "vault prune --max-unused 0",
            ])
        let keys = try bench.json(exit: 0, "vault", "key", "list", "--vault", "v", "--password-file", "pw").array ?? []
        let other = try #require(keys.first { $0["current"]?.bool == false }?["id"]?.string)
        try bench.leaveLock()
        try expectOrder(bench, ["vault unlock", "vault key remove \(other)"])
        try bench.shell(
            "p=$(ls -S v/data/*/* | head -1); chmod +w $p; printf xxxx | dd of=$p bs=1 seek=50 conv=notrunc")
        try expectOrder(
            bench, ["vault repair --save saved", "vault backup", "vault key passwd --new-password-file pw2"])
        // An older snapshot may have lost what only the damaged pack held; the newest is whole.
        let vault = ["--vault", "v", "--password-file", "pw2"]
        for words in [["vault", "forget", "--keep-last", "1"], ["vault", "check", "--read-data"]] {
            let result = try bench.tool(words + vault)
            #expect(result.status == 0, "\(words): \(result.stderr)")
        }
    }

    @Test func whatTheNightsWrite() throws {
        let bench = try bench()
        try bench.tool("import", "a.bib", "--attachments", "pdfs")
        try bench.makeCheapVault()
        try bench.write(
            "c/nightly.toml",
            "store = '../store.db'\nvault = '../v'\npassword-file = '../pw'\nkeep.last = 1\nmetrics.file = '../m.prom'\n"
        )
        try expectOrder(
            bench,
            [
                "run --config c/nightly.toml", "drill --config c/nightly.toml",
                "schedule install --systemd --user --config c/nightly.toml",
                "schedule remove --user --config c/nightly.toml",
            ])
        try bench.tool("import", "b.bib")
        try bench.tool(exit: 0, "export", "-q", "-o", "out")
        try expectOrder(bench, ["run --config c/nightly.toml", "drill out --log logs/drills.jsonl"])
    }
}

extension Workbench {
    /// Leaves the lock of a process that was killed in the vault `v`.
    func leaveLock() throws {
        try shell(
            """
            strace -f -qq -o /dev/null -e inject=unlink,unlinkat:signal=KILL \
                "$T" vault backup -q --vault v --password-file pw || true
            ls v/locks | grep -q .
            """)
    }
}
