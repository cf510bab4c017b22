import BackupKit
import TestSupport
import Testing

private let schemas = "\(Workbench.samples)/schema"

@Test func schemaCheck_namesEachFieldThatBreaksARule() throws {
    let bench = try Workbench()
    try bench.tool(
        exit: 0, "schema", "check", "\(schemas)/library-120.json", "--against", "\(schemas)/library-110.json")
    let broken = "\(schemas)/library-120-broken.json"
    let report = try bench.json(exit: 4, "schema", "check", broken, "--against", "\(schemas)/library-110.json")
    let findings = (report["findings"]?.array ?? []).filter { $0["severity"]?.string == "error" }
    let found = Set(findings.compactMap { finding in finding["field"]?.string })
    #expect(
        found == [
            "Publication.citeKey", "Publication.entryType", "Publication.title", "Publication.year",
            "Publication.linkedFiles", "Publication.manuscripts", "Manuscript.publication",
        ])
    #expect(report["ok"]?.bool == false && report["version"]?.integer == 120)
    let text = try bench.tool(exit: 4, "schema", "check", broken, "--against", "\(schemas)/library-110.json")
    #expect(text.stderr.contains("error: Publication.title: was renamed to 'heading'"))
    try bench.tool(exit: 10, "schema", "check", "nowhere.json")
    let wrong = try bench.tool(exit: 4, "schema", "check", "\(Workbench.samples)/library/settings.json")
    #expect(wrong.stderr.contains("is no schema"))
}

@Test func aRestore_givesOlderRecordsTheDefaultsThatTheyLack() throws {
    let bench = try Workbench()
    try bench.write(
        "records.jsonl",
        #"{"createdAt":"2026-01-01T00:00:00.000Z","fields":{"title":"Draft"},"localId":"M","modifiedAt":"2026-01-01T00:00:00.000Z","#
            + #""recordName":"M","recordType":"Manuscript","schemaVersion":110,"zone":"Library"}"# + "\n")
    try bench.tool(exit: 0, "import", "records.jsonl")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let schema = "\(schemas)/library-120.json"
    let plan = try bench.json(exit: 0, "restore", "--create", "out", "--store", "b.db", "--schema", schema, "--dry-run")
    let filled = (plan["findings"]?.array ?? []).compactMap { $0["path"]?.string }
    #expect(filled == ["Manuscript.annotated", "Manuscript.status"])
    try bench.tool(exit: 0, "restore", "--create", "out", "--store", "b.db", "--schema", schema)
    let query = "SELECT fields, schema_version FROM record WHERE local_id = 'M'"
    #expect(
        try bench.shell("sqlite3 b.db \"\(query)\"")
            == "{\"title\":\"Draft\",\"status\":\"draft\",\"annotated\":false}|120\n")
    #expect(
        try bench.json(exit: 0, "restore", "--create", "out", "--store", "b.db", "--schema", schema)["writes"]?.integer
            == 0)
    let wrong = try bench.tool(
        exit: 4, "restore", "--create", "out", "--store", "b.db", "--schema", "\(schemas)/../README.md")
    #expect(wrong.stderr.contains("is not JSON"))
}

@Test func aStoreThatANewerToolWrote_isReadAndExported_andNeverWritten() throws {
    let bench = try Workbench()
    try bench.importSamples()
    for (version, text) in [(130, "this backup-tool knows 120"), (115, "which was never one")] {
        try bench.shell("sqlite3 store.db \"UPDATE meta SET value = \(version) WHERE key = 'schema_version'\"")
        let before = try bench.state()
        for words in [
            ["import", "\(Workbench.samples)/library/latin1.bib"], ["store", "delete", "x"], ["undo"], ["dedup"],
            ["conflicts", "resolve", "1", "--with", "merge"],
        ] {
            let result = try bench.tool(words)
            #expect(result.status == 1 && result.stderr.contains(text), "\(words): \(result.stderr)")
            #expect(result.stderr.contains("'backup-tool export -o DIR' still gives you everything"))
        }
        #expect(try bench.state() == before)
        try bench.tool(exit: 0, "export", "-q", "-o", "out\(version)")
        try bench.tool(exit: 3, "verify", "out\(version)", "--level", "deep")
        try bench.tool(exit: 0, "restore", "out\(version)", "--to", "plain\(version)")
        let refused = try bench.tool(exit: 1, "restore", "--create", "out\(version)", "--store", "b.db")
        #expect(refused.stderr.contains("'backup-tool restore out\(version) --to DIR' gives you the plain files"))
        #expect(try !bench.exists("b.db"))
    }
}

@Test func recordsOfANewerSchema_areLeftOutOneByOne() throws {
    let bench = try Workbench()
    func line(_ id: String, _ version: Int) -> String {
        #"{"createdAt":"2026-01-01T00:00:00.000Z","fields":{"x":1},"localId":"\#(id)","modifiedAt":"2026-01-01T00:00:00.000Z","#
            + #""recordName":"\#(id)","recordType":"Item","schemaVersion":\#(version),"zone":"Z"}"# + "\n"
    }
    try bench.write("records.jsonl", line("a", 120) + line("b", 130))
    let result = try bench.json(exit: 3, "import", "records.jsonl")
    #expect(result["added"]?.integer == 1 && result["rejected"]?.integer == 1)
    #expect(result["findings"]?.array?.first?["code"]?.string == "newer-schema")
}

@Test func featureFlags_travelWithTheSettings_knownOrNot() throws {
    let bench = try Workbench()
    let flags = """
        {"enableNewConflictResolution": true, "enableLargePDFSync": false, "syncSchemaVersion": 3,
         "someFlagOfTomorrow": {"nested": [1, 2.50, "é"], "on": null}, "sortOrder": "year"}
        """
    try bench.write("settings.json", flags)
    try bench.tool(exit: 0, "import", "settings.json", "--only", "settings")
    let before = try bench.digest()
    for (format, name) in [("tar.zst", "out.tar.zst"), ("imbib", "out-imbib")] {
        try bench.tool(exit: 0, "export", "-q", "-o", name, "--format", format)
        try bench.tool(exit: 0, "restore", "--create", name, "--store", "\(format).db", "--only", "settings")
        #expect(try bench.digest("\(format).db") == before, "\(format)")
    }
    try bench.tool(exit: 0, "export", "-q", "-o", "plain")
    try bench.python(
        """
        import json
        assert json.load(open('plain/settings.json')) == json.load(open('settings.json'))
        """)
    // A restore of something else leaves them alone.
    try bench.write("settings.json", "{\"enableLargePDFSync\": true}")
    try bench.tool(exit: 0, "import", "settings.json", "--only", "settings")
    try bench.tool(exit: 0, "restore", "out.tar.zst")
    #expect(
        try bench.shell("sqlite3 store.db \"SELECT value FROM setting WHERE key = 'enableLargePDFSync'\"") == "true\n")
}

private func model(_ entity: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel"><entity name="\(entity)" syncable="YES">
    <attribute name="a" optional="YES" attributeType="String"/></entity></model>
    """
}

/// A project's folder may hold several schemas, and none of them is passed over.
@Test func aFolderWithSchemas_isChecked_orRefusedWithTheirNames() throws {
    let bench = try Workbench()
    try bench.write("proj/App.xcdatamodeld/App.xcdatamodel/contents", model("New"))
    try bench.tool(exit: 0, "schema", "check", "proj")
    for other in ["proj/Old.xcdatamodel/contents", "proj/c.ckdb", "proj/More.xcdatamodeld/M.xcdatamodel/contents"] {
        try bench.write(other, other.hasSuffix("ckdb") ? "DEFINE SCHEMA RECORD TYPE Day ( a STRING );" : model("Old"))
        let many = try bench.tool(exit: 1, "schema", "check", "proj")
        let name = other.split(separator: "/")[1]
        #expect(many.stderr.contains("holds 2 schemas (") && many.stderr.contains("proj/\(name)"), "\(many.stderr)")
        #expect(many.stderr.contains("'backup-tool schema check proj/App.xcdatamodeld' or"), "\(many.stderr)")
        try bench.shell("rm -r proj/\(name)")
    }
    try bench.shell("rm -r proj/App.xcdatamodeld")
    let none = try bench.tool(exit: 10, "schema", "check", "proj")
    #expect(none.stderr.contains("name the schema file itself"), "\(none.stderr)")
}

@Test func anXcodeFolderOfModels_isItsCurrentOne() throws {
    let bench = try Workbench()
    try bench.write("L.xcdatamodeld/L.xcdatamodel/contents", model("Old"))
    try bench.tool(exit: 0, "schema", "check", "L.xcdatamodeld")
    try bench.write("L.xcdatamodeld/L & 2.xcdatamodel/contents", model("New"))
    let unclear = try bench.tool(exit: 1, "schema", "check", "L.xcdatamodeld")
    #expect(unclear.stderr.contains("holds 2 models, and no .xccurrentversion says which is the current one"))
    try bench.write(
        "L.xcdatamodeld/.xccurrentversion",
        "<plist version=\"1.0\"><dict>\n\t<key>_XCCurrentVersionName</key>\n\t<string>L &amp; 2.xcdatamodel</string>\n</dict></plist>"
    )
    let changed = try bench.tool(
        exit: 4, "schema", "check", "L.xcdatamodeld", "--against", "L.xcdatamodeld/L.xcdatamodel")
    #expect(changed.stderr.contains("'New' looks like its new name"))
    try bench.write("L.xcdatamodeld/.xccurrentversion", "<key>_XCCurrentVersionName</key><string>../x</string>")
    try bench.tool(exit: 10, "schema", "check", "L.xcdatamodeld")
    try bench.write("c.ckdb", "DEFINE SCHEMA RECORD TYPE Day ( a STRING );")
    #expect(try bench.tool(exit: 0, "schema", "check", "c.ckdb").stderr.contains("CloudKit schema, 1 entity, 1 field"))
    try bench.tool(exit: 64, "schema", "check", "c.ckdb", "--against", "L.xcdatamodeld/L.xcdatamodel")
    try bench.write("bad.ckdb", "DEFINE SCHEMA\nRECORD TYPE Day ( a STRING; );")
    #expect(
        try bench.tool(exit: 4, "schema", "check", "bad.ckdb").stderr.contains(
            "line 2: is not CloudKit's schema language"))
}
