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
