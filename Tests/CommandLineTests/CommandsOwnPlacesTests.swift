import TestSupport
import Testing

/// Places that belong to a store, which nothing else is put into.
@Suite struct CommandsOwnPlacesTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("l/l.bib", "@misc{k, title={T}, file={k.pdf}}\n")
        try bench.write("l/k.pdf", "a\n")
        try bench.tool(exit: 0, "import", "--create", "l")
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        return bench
    }

    @Test(arguments: ["-wal", "-shm", "-journal"]) func filesOfSQLite_areNoTargets(ending: String) throws {
        let bench = try bench()
        let ways = ["export -o", "export --force -o", "events export -o", "restore b.zip --to"]
        for words in ways.map({ $0.split(separator: " ").map(String.init) }) {
            let told = try bench.tool(words + ["store.db" + ending])
            #expect(told.status != 0 && told.stderr.contains("keeps beside it"), "\(words): \(told)")
        }
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aVaultAmongAttachments_isRefused() throws {
        let bench = try bench()
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw; mkdir elsewhere; ln -s store.db.assets inside")
        for place in ["store.db.assets", "store.db.assets/v", "inside/v"] {
            let told = try bench.tool("vault", "init", "--vault", place, "--password-file", "pw")
            #expect(told.status != 0 && told.stderr.contains("lies in"), "\(place): \(told)")
        }
        try bench.tool(exit: 0, "vault", "init", "--vault", "v", "--password-file", "pw")
        try bench.shell("mv v store.db.assets/v")
        let told = try bench.tool("vault", "backup", "--vault", "store.db.assets/v", "--password-file", "pw")
        #expect(told.status == 1 && told.stderr.contains("where a store keeps its attachments"), "\(told)")
    }
}
