import BackupKit
import TestSupport
import Testing

/// Whoever names an output by a symbolic link means the place that the link leads to.
@Suite struct CommandsOutputLinkTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("lib.bib", "@misc{a, title={A}}\n")
        try bench.write("diary.jsonl", #"{"id":"e","time":"2026-02-14T15:00+01:00","type":"walk"}"# + "\n")
        try bench.tool(exit: 0, "import", "lib.bib", "diary.jsonl")
        try bench.tool(exit: 0, "export", "-q", "-o", "backup.tar")
        try bench.write("bad.jsonl", "no event\n")
        try bench.shell("mkdir far")
        return bench
    }

    /// Commands that write `OUT`, and a command that makes something there that they may replace.
    private static let outputs = [
        ("export -o OUT --format tar", "$T export -q -o far/out --format tar"),
        ("export -o OUT --format dir", "$T export -q -o far/out --format dir"),
        ("export -o OUT/ --format dir", "$T export -q -o far/out --format dir"),
        ("export -o OUT --format imbib", "$T export -q -o far/out --format imbib"),
        ("restore backup.tar --to OUT", "$T restore -q backup.tar --to far/out"),
        ("events export -o OUT", "$T events export -q -o far/out"),
        ("events export -o OUT.jsonl", "$T events export -q -o far/out.jsonl"),
        ("events import bad.jsonl --rejected OUT", ": > far/out"),
    ]

    private func run(_ bench: Workbench, _ line: String, _ more: String...) throws -> ProcessResult {
        try bench.tool((line.replacing("OUT", with: "out").split(separator: " ").map(String.init)) + more)
    }

    @Test(arguments: outputs.indices)
    func anOutputNamedByALink_replacesWhatItLeadsTo(_ number: Int) throws {
        let (line, make) = Self.outputs[number]
        let bench = try bench()
        let end = line.contains(".jsonl") && !line.contains("import") ? ".jsonl" : ""
        try bench.shell("\(make) || [ $? = 3 ]; ln -s far/out\(end) out\(end); stat -c %i far/out\(end) > inode")
        let before = try bench.shell("ls -A1 . far | grep -v store.db")
        let unforced = try run(bench, line)
        #expect(unforced.status == 1 && unforced.stderr.contains("already exists"), "\(line): \(unforced.stderr)")
        let forced = try run(bench, line, "--force")
        #expect([0, 3].contains(forced.status), "\(line): \(forced.stderr)")
        try bench.shell("test -L out\(end); test $(readlink out\(end)) = far/out\(end)")
        try bench.shell("test $(stat -c %i far/out\(end)) != $(cat inode)")
        #expect(try bench.shell("ls -A1 . far | grep -v store.db") == before, "\(line)")
    }

    @Test(arguments: outputs.indices)
    func anOutputNamedByALinkThatLeadsNowhere_isRefused(_ number: Int) throws {
        let line = Self.outputs[number].0
        let bench = try bench()
        try bench.shell("ln -s far/out out; ln -s far/out out.jsonl")
        for more in [[], ["--force"]] {
            let told = try more.isEmpty ? run(bench, line) : run(bench, line, "--force")
            #expect(told.status != 0 && told.stderr.contains("is a link to 'far/out'"), "\(line): \(told.stderr)")
        }
        try bench.shell("test -L out; test -L out.jsonl; test -z \"$(ls -A far)\"")
    }

    @Test(arguments: ["store init --store", "hub init", "vault init --vault"])
    func whatIsMadeInThePlaceOfALostLink_isRefused(_ line: String) throws {
        let bench = try bench()
        try bench.shell("ln -s far/out out")
        let told = try bench.tool(
            line.split(separator: " ").map(String.init) + ["out"], environment: ["BACKUP_TOOL_PASSWORD": "x"])
        #expect(told.status != 0 && told.stderr.contains("is a link to 'far/out'"), "\(line): \(told.stderr)")
        try bench.shell("test -L out; test -z \"$(ls -A far)\"")
    }

    @Test(arguments: ["cp lib.bib far/out", "cp -a store.db far/out", "mkdir far/out; cp lib.bib far/out"])
    func whatALinkLeadsTo_isReplacedOnlyIfItMayBe(_ make: String) throws {
        let bench = try bench()
        try bench.shell("\(make); ln -s far/out out; find far -type f | xargs sha256sum > before")
        for (line, _) in Self.outputs where !line.contains(".jsonl") {
            let told = try run(bench, line, "--force")
            #expect(told.status == 1 && told.stderr.contains("--force does not replace"), "\(line): \(told.stderr)")
            try bench.shell("test -L out; sha256sum --quiet -c before")
        }
    }
}
