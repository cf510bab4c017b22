import BackupKit
import TestSupport
import Testing

/// Photos that cannot be taken where an event names them: they are left out and named, and all else comes in.
struct CommandsPhotoLinkTests {
    private static func log(_ photo: String) -> String {
        """
        {"id":"ok","time":"2026-04-01T10:00:00+02:00","type":"eten"}
        {"id":"seen","time":"2026-04-01T11:00:00+02:00","type":"foto","photo":"\(photo)"}

        """
    }

    @Test(arguments: [
        ("x.jpg", "ln -s ../secret/x.jpg l/x.jpg"), ("ph/x.jpg", "ln -s ../secret l/ph"),
        ("ph/x.jpg", "ln -s secret ph"), ("x.jpg", "ln -s x.jpg l/x.jpg"), ("ph/x.jpg", "ln -s ph l/ph"),
    ])
    func aPhotoBehindALink_isLeftOutAndNamed(photo: String, link: String) throws {
        let bench = try Workbench()
        try bench.write("l/a.jsonl", Self.log(photo))
        try bench.write("secret/x.jpg", "SECRET")
        try bench.shell(link)
        for (number, words) in [["l"], ["l/a.jsonl"], ["l", "--attachments", "l"]].enumerated() {
            let store = "\(number).db"
            let result = try bench.tool(["import", "--create", "--store", store] + words)
            #expect(result.status == 3 && result.stderr.contains("\(photo): was left out"), "\(result.stderr)")
            #expect(result.stderr.contains("symbolic link"), "\(result.stderr)")
            #expect((result.stdout + result.stderr).contains("2 added."), "\(result)")
            #expect(try bench.shell("sqlite3 \(store) 'SELECT count(*) FROM asset'") == "0\n")
        }
        // The file itself comes in when it takes the link's place.
        try bench.shell("rm -rf l/x.jpg l/ph ph")
        try bench.write("l/\(photo)", "a photo")
        try bench.tool(exit: 0, "import", "--store", "0.db", "l")
        #expect(try bench.text("0.db.assets/Attachments/\(photo)") == "a photo")
    }

    /// Where root runs the tests, an account without its rights imports.
    @Test(arguments: [("x.jpg", "l/x.jpg"), ("ph/x.jpg", "l/ph")])
    func aPhotoThatMayNotBeRead_costsOnlyItself(photo: String, hidden: String) throws {
        let bench = try Workbench()
        try bench.write("l/a.jsonl", Self.log(photo))
        try bench.write("l/\(photo)", "a photo")
        let script = """
            chmod 755 .; chown -R 65534:65534 .; chmod 000 \(hidden)
            run() { if [ $(id -u) = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; else "$@"; fi; }
            run \(try productsDirectory())/backup-tool import --create --store s.db l; status=$?; chmod 755 \(hidden)
            exit $status
            """
        let environment = testEnvironment(["TMPDIR": bench.path("tmp")])
        let result = try runProcess(["bash", "-c", script], environment: environment, in: bench.folder, timeout: 60)
        #expect(result.status == 3 && result.stderr.contains("l/\(photo): was left out"), "\(result.stderr)")
        #expect(result.stderr.contains("Permission denied"), "\(result.stderr)")
        #expect(try bench.shell("sqlite3 s.db \"SELECT count(*) FROM record WHERE type = 'PuppyEvent'\"") == "2\n")
    }

    @Test func whatStandsForAPhotoThatIsLeftOut_isNotTheFileOfAnotherEvent() throws {
        let bench = try Workbench()
        try bench.write("a/a.jsonl", Self.log("x.jpg"))
        try bench.write("a/x.jpg", "a photo")
        try bench.tool(exit: 0, "import", "--create", "a")
        try bench.write("b/b.jsonl", #"{"id":"b","time":"2026-04-02T11:00:00Z","type":"foto","photo":"x.jpg"}"# + "\n")
        try bench.shell("ln -s ../a/x.jpg b/x.jpg")
        try bench.tool(exit: 3, "import", "b")
        let shown = try bench.shell("sqlite3 store.db \"SELECT fields ->> '$.photo' FROM record WHERE local_id = 'b'\"")
        #expect(shown != "x.jpg\n")
    }

    @Test func aPhotoThatNeverCame_isNamedWithWhatBringsIt() throws {
        let bench = try Workbench()
        try bench.write("l/a.jsonl", Self.log("x.jpg"))
        let advice = "put it where the event says, beside the log, and import the log again"
        #expect(try bench.tool(exit: 3, "import", "--create", "l").stderr.contains(advice))
        let export = try bench.tool(exit: 3, "events", "export", "-o", "out")
        #expect(export.stderr.contains(advice) && !export.stderr.contains("store check"), "\(export.stderr)")
        try bench.write("l/x.jpg", "a photo")
        try bench.tool(exit: 0, "import", "l")
        try bench.tool(exit: 0, "events", "export", "-o", "out", "--force")
        #expect(try bench.text("out/x.jpg") == "a photo")
    }
}
