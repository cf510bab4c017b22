import TestSupport
import Testing

/// `events import --rejected FILE` replaces nothing but what an import of the same lines rejected before.
@Suite struct CommandsRejectedTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        let event = #"{"id":"a","time":"2026-02-14T08:00:00Z","type":"eten"}"#
        try bench.write("log/day.jsonl", "\(event)\nbroken\n")
        try bench.write("log/bad.jsonl", "broken\n")
        try bench.write("log/note.txt", "a note\n")
        try bench.shell("ln -s log way; ln -s log/bad.jsonl bad; ln log/bad.jsonl twin; $T -q store init")
        return bench
    }

    /// Nothing changes, and nobody is told to do what would be refused.
    private func expectRefusal(
        _ bench: Workbench, _ line: String, _ reason: String, _ sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        func state() throws -> String {
            try bench.shell("find . -type f ! -path './store.db*' -exec sha256sum {} + | sort; $T store digest")
        }
        let before = try state()
        for more in [[], ["--force"], ["--force", "--dry-run"]] {
            let words = line.split(separator: " ").map(String.init) + more
            let told = try bench.tool(words)
            let isRefused = told.status == 1 && told.stderr.contains(reason)
            #expect(isRefused, "\(words): \(told)", sourceLocation: sourceLocation)
            #expect(!told.stderr.contains("with --force"), "\(words): \(told.stderr)", sourceLocation: sourceLocation)
            let isSource = reason.contains("being read")
            #expect(
                told.stderr.contains("remove it yourself") != isSource, "\(words): \(told.stderr)",
                sourceLocation: sourceLocation)
        }
        #expect(try state() == before, "\(line)", sourceLocation: sourceLocation)
    }

    @Test(arguments: [
        "log --rejected log/day.jsonl", "log --rejected log/bad.jsonl", "log --rejected log/new.jsonl",
        "log --rejected log/new.txt", "log --rejected log/note.txt", "log --rejected way/bad.jsonl",
        "log --rejected bad", "way --rejected log/new.jsonl", "log/bad.jsonl --rejected log/bad.jsonl",
        "log/bad.jsonl --rejected way/bad.jsonl", "log/bad.jsonl --rejected bad", "log/bad.jsonl --rejected twin",
        "bad --rejected log/bad.jsonl", "log/day.jsonl log --rejected log/new.jsonl", ". --rejected new.jsonl",
    ])
    func whatIsRead_isNoPlaceForRejectedLines(line: String) throws {
        try expectRefusal(bench(), "events import \(line)", "being read")
    }

    /// A log holds the lines of its copy, and an export those that the tool wrote.
    @Test(arguments: [
        "cp log/day.jsonl FILE", "printf 'broken\\n\\n' > FILE", "printf 'broken\\nother\\n' > FILE",
        "head -n 1 log/day.jsonl > FILE", "$T -q export -o FILE",
        "$T -q events import log || :; $T -q events export -o e.jsonl; mv e.jsonl FILE",
        "echo chapter > FILE", "mkdir FILE", "mkfifo FILE",
    ])
    func whatIsNotRejected_isNotReplaced(make: String) throws {
        let bench = try bench()
        try bench.shell(make.replacing("FILE", with: "there.zip"))
        try expectRefusal(bench, "events import log --rejected there.zip", "--force does not replace this")
    }

    @Test func linesThatAreRejectedAgain_areReplaced() throws {
        let bench = try bench()
        try bench.shell(
            "printf '{\"id\":\"%s\"}\\r\\n' $(seq 99) > log/ids.jsonl; tr -d '\\n' < log/ids.jsonl > log/one.jsonl")
        let words = ["events", "import", "log", "--rejected", "log.bad", "--max-line", "400"]
        try bench.tool(words: words + ["--dry-run"], exit: 3)
        #expect(try !bench.exists("log.bad"))
        try bench.tool(words: words, exit: 3)
        let first = try bench.bytes("log.bad")
        #expect(try bench.tool(words).stderr.contains("replace it with --force"))
        for more in [[], ["-v"]] {
            try bench.tool(words: words + more + ["--force"], exit: 3)
            #expect(try bench.bytes("log.bad") == first)
        }
        // What no log holds any more is nowhere else.
        try bench.shell("rm log/one.jsonl")
        #expect(try bench.tool(words + ["--force"]).stderr.contains("lines that this import does not reject"))
    }

    /// The file that is being written lies beside the logs, and nobody is told to import it.
    @Test func aFileBesideALog_isNotPartOfTheImport() throws {
        let bench = try bench()
        for _ in 0..<2 {
            let told = try bench.tool(
                exit: 3, "events", "import", "log/day.jsonl", "--rejected", "log/new.txt", "--force"
            ).stderr
            #expect(!told.contains("tmp-"), "\(told)")
            #expect(try bench.text("log/new.txt") == "broken\n")
        }
    }
}
