import TestSupport
import Testing

@testable import BackupKit

extension Workbench {
    /// Leaves every publication under a second, younger name, with a newer field: what no import would do.
    func giveSecondNames() throws {
        let store = try Store(path("store.db"), .write)
        try store.write {
            var publications: [Record] = []
            try store.forEachLive(type: RecordType.publication) { publications.append($0.record) }
            for var record in publications {
                record.id = RecordID(zone: record.id.zone, name: "save-\(record.localID)")
                record.fields = Fields.text(try Fields.parse(record.fields) + [Field("seen", .string("twice"))])
                record.createdAt = Timestamp(milliseconds: record.createdAt.milliseconds + 1)
                record.modifiedAt = Timestamp(milliseconds: record.modifiedAt.milliseconds + 1)
                try store.put(record, replacing: nil)
            }
        }
    }
}

@Test func dedup_foldsWhatHasSeveralNames_andItsBackupRestoresToTheSame() throws {
    let bench = try Workbench()
    try bench.importSamples()
    let single = try bench.json(exit: 0, "store", "info")["records"]?["publications"]?.integer
    try bench.giveSecondNames()
    // Rows that another program wrote get their keys from the next writer.
    try bench.tool(exit: 0, "dedup", "--dry-run")
    let before = try (bench.digest(), bench.state())
    let plan = try bench.json(exit: 0, "dedup", "--dry-run")
    #expect(plan["folded"]?.integer == single && plan["batch"] == .null)
    #expect(try bench.state() == before.1)
    let text = try bench.tool(exit: 0, "dedup", "--dry-run")
    #expect(text.stdout.contains("merged into Library/") && text.stderr.contains("nothing written"))
    let done = try bench.json(exit: 0, "dedup")
    #expect(done["records"]?.integer == single && done["plan"] == plan["plan"])
    #expect(try bench.json(exit: 0, "store", "info")["records"]?["publications"]?.integer == single)
    let folded = try bench.digest()
    #expect(try bench.tool(exit: 0, "dedup").stderr == "There are no duplicates.\n")
    try bench.tool(exit: 0, "export", "-q", "-o", "out.tar.zst")
    try bench.tool(exit: 0, "verify", "out.tar.zst", "--level", "deep")
    try bench.tool("restore", "--create", "out.tar.zst", "--store", "b.db", "--only", Workbench.allKinds)
    #expect(try bench.digest("b.db") == folded)
    // The second dedup changed nothing, so the undo names the batch that it means.
    try bench.undoNamedBatch()
    #expect(try bench.digest() == before.0)
}

/// Days of a rota, each a record with these fields, and what a dedup by the date and the shift makes of them.
private let rotas: [(days: [String], folded: Int64)] = [
    // Nobody has said the date: not before a restore has put the default in, and not afterwards.
    (["", ""], 0), ([#""shift":"late""#, #""shift":"late""#], 0),
    ([#""date":"","shift":"""#, #""date":" ","shift":"day""#, #""date":"","shift":"""#], 0),
    // The default stands for a shift where the date is known.
    ([#""date":"2026-03-01","shift":"day""#, #""date":"2026-03-01","shift":"day""#], 1),
    ([#""date":"2026-03-01","shift":"""#, #""date":"2026-03-01","shift":"""#], 1),
    ([#""date":"2026-03-01""#, #""date":"2026-03-01""#], 0),
]

@Test(arguments: rotas) func aKeyThatNobodyHasFilledIn_makesNoDuplicates(days: [String], folded: Int64) throws {
    let bench = try Workbench()
    try bench.write(
        "rota.json",
        """
        {"format": "backup-tool-schema", "formatVersion": 1, "version": 100, "entities": {"CD_Day": {
        "key": ["date", "shift"], "attributes": {"date": {"type": "string", "default": ""},
        "shift": {"type": "string", "default": "day"}, "line": {"type": "string", "optional": true}}}}}
        """)
    let records = days.enumerated().map { index, fields in
        let time = "\"2026-03-0\(index + 1)T10:00:00.000Z\""
        let all = fields + (fields.isEmpty ? "" : ",") + "\"line\":\"Dr. \(index)\""
        return """
            {"createdAt":\(time),"fieldTimes":{},"fields":{\(all)},"localId":"n\(index)","modifiedAt":\(time),\
            "recordName":"n\(index)","recordType":"CD_Day","schemaVersion":100,"zone":"Rota"}\n
            """
    }
    try bench.write("records.jsonl", records.joined())
    try bench.tool(exit: 0, "import", "--create", "records.jsonl")
    try bench.tool(exit: 0, "export", "-o", "e")
    try bench.tool(exit: 0, "restore", "e", "--create", "--store", "r.db", "--schema", "rota.json")
    for store in ["store.db", "r.db"] {
        let found = try bench.json(exit: 0, "dedup", "--store", store, "--schema", "rota.json")
        #expect(found["folded"]?.integer == folded, "\(store): \(found)")
    }
}

/// Two devices, one with the line before its app gave it an id, and one with the line after that.
@Test func anEventThatGotItsIDOnAnotherDevice_isOneAfterADedup() throws {
    let bench = try Workbench()
    let said = "\"type\":\"walk\",\"time\":\"2026-03-01T10:00:00Z\",\"note\":\"walked\""
    try bench.write("before.jsonl", "{\"localId\":\"q\",\(said)}\n")
    try bench.write("after.jsonl", "{\"id\":\"i\",\"localId\":\"q\",\(said)}\n")
    try bench.shell("touch -d '1 hour ago' *.jsonl; $T hub init hub.db")
    for (store, log) in [("a.db", "before.jsonl"), ("b.db", "after.jsonl")] {
        try bench.tool(exit: 0, "import", "--create", "--store", store, log)
    }
    try bench.tool(exit: 0, "export", "-q", "--store", "a.db", "-o", "a")
    for store in ["a.db", "b.db", "a.db"] { try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", store) }
    try bench.tool(exit: 0, "dedup", "--store", "a.db")
    for store in ["a.db", "b.db", "a.db"] { try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", store) }
    for store in ["a.db", "b.db"] {
        let living = "SELECT group_concat(local_id) FROM record WHERE type = 'PuppyEvent' AND deleted_at IS NULL"
        #expect(try bench.shell("sqlite3 \(store) \"\(living)\"") == "i\n", "\(store)")
        for log in ["before.jsonl", "after.jsonl"] {
            try bench.tool("import", "--store", store, log)
            #expect(try bench.shell("sqlite3 \(store) \"\(living)\"") == "i\n", "\(store), \(log)")
        }
    }
    // A restore into a store that has the other form says so.
    try bench.tool(exit: 0, "import", "--create", "--store", "c.db", "after.jsonl")
    let told = try bench.tool(exit: 3, "restore", "--store", "c.db", "a")
    #expect(told.stderr.contains("is in the store twice now"), "\(told.stderr)")
}
