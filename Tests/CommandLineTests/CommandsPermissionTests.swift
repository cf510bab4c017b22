import BackupKit
import Glibc
import TestSupport
import Testing

/// What an account may not read.
struct CommandsPermissionTests {
    private static func bench() throws -> Workbench {
        let bench = try CommandsVaultTests.bench()
        try bench.tool("import", "--create", "\(Workbench.samples)/library/references.bib")
        try bench.makeCheapVault()
        try bench.tool(exit: 0, "vault", "backup")
        try bench.tool(exit: 0, "export", "-o", "e")
        try bench.tool(exit: 0, "export", "-o", "e.zip")
        return bench
    }

    /// Runs the tool as an account that owns everything here, for root may read what it likes.
    private static func run(_ bench: Workbench, _ line: String, hiding: String) throws -> ProcessResult {
        let tool = try productsDirectory() + "/backup-tool"
        let script = """
            chmod 755 .; chmod -R u+rwX v e; rm -rf out drills.jsonl
            chown -R 65534:65534 .; chmod 000 $(\(hiding))
            run() { if [ $(id -u) = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; else "$@"; fi; }
            run \(tool) \(line)
            """
        let environment = testEnvironment([
            "BACKUP_TOOL_STORE": "store.db", "BACKUP_TOOL_VAULT": "v", "BACKUP_TOOL_PASSWORD_FILE": "password",
            "TMPDIR": bench.path("tmp"),
        ])
        return try runProcess(["bash", "-c", script], environment: environment, in: bench.folder, timeout: 60)
    }

    @Test(arguments: [
        ("ls -S v/data/*/* | head -1", "vault check --read-data, verify vault:v, restore vault:v --to out"),
        ("ls -S v/data/*/* | tail -1", "vault check, vault prune, vault stats, drill vault:v --log drills.jsonl"),
        ("ls -d v/snapshots/*", "vault check, vault snapshots, vault prune, verify vault:v, vault backup"),
        ("ls -d v/index/*", "vault check, verify vault:v, vault repair --dry-run, vault backup, list vault:v"),
        ("echo e/library.bib", "verify e, restore e --to out, import e, drill e --log drills.jsonl"),
        ("echo e/manifest.json", "diff e store.db, verify e"),
        ("echo e.zip", "verify e.zip, restore e.zip, drill e.zip --log drills.jsonl"),
        ("echo e.zip", "export -o e.zip, export -o e.zip --force, restore e --to e.zip --force"),
        ("echo e", "export -o e, export -o e --force"), ("echo e/library.bib", "export -o e, export -o e --force"),
        ("echo store.db", "store check, vault backup"), ("echo store.db.assets", "store check, vault backup"),
    ])
    func whatMayNotBeRead_isNotCalledDamaged(hiding: String, lines: String) throws {
        let bench = try Self.bench()
        for line in lines.split(separator: ",").map(String.init) {
            let result = try Self.run(bench, line, hiding: hiding)
            #expect(result.status == 1, "\(line): \(result.stderr)\(result.stdout)")
            #expect(result.stderr.contains("Permission denied"), "\(line): \(result.stderr)")
            #expect(result.stderr.contains("run this as a user who may read it"), "\(line): \(result.stderr)")
            #expect(!result.stderr.contains("damage"), "\(line): \(result.stderr)")
            #expect(try !bench.exists("drills.jsonl") && !bench.exists("out"))
        }
    }

    @Test func aFileThatMayNotBeRead_isNotCountedAsChecked() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
        for key in ["a", "b"] { try bench.write("pdfs/\(key).pdf", "%PDF \(key)") }
        try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "pdfs")
        try bench.shell("mkdir v e")
        #expect(try Self.run(bench, "store check", hiding: "").stderr.contains(", 2 attachments checked."))
        let told = try Self.run(bench, "store check", hiding: "ls store.db.assets/*/a.pdf").stderr
        #expect(told.contains(", 1 attachment checked.") && told.contains("a.pdf: was not checked"), "\(told)")
    }
}
