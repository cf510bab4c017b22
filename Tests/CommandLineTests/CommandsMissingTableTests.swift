import TestSupport
import Testing

/// `store check` names a table that is missing, and its advice ends in a sound store.
@Suite struct CommandsMissingTableTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("p.bib", "@article{k,title={T},author={A}}\n@article{z,title={Z},author={A}}\n")
        try bench.write("A/k.pdf", "scan\n")
        try bench.tool(exit: 0, "import", "p.bib", "--attachments", "A")
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        return bench
    }

    @Test(arguments: [
        "awaited_file", "purged", "batch_added", "batch_setting", "batch_said", "held", "conflict_number", "witness",
        "damaged", "ancestor", "imported_file", "listed",
    ])
    func aMissingTable_isNamed_andMadeAgain(table: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try bench.shell("sqlite3 store.db 'DROP TABLE \(table)'")
        let check = try bench.tool(exit: 4, "store", "check")
        #expect(check.stderr.contains("the table '\(table)' is missing"), "\(check)")
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "restore", "b.zip")
        try bench.tool("undo")
        try checkSound(bench.path("store.db"))
    }

    @Test func aLostListOfPurgedRecords_isFilledAgain() throws {
        let bench = try Workbench()
        try bench.write("day.jsonl", #"{"id":"walk","time":"2026-02-14T15:00:00Z","type":"x"}"# + "\n")
        try bench.tool(exit: 0, "import", "--create", "day.jsonl")
        try bench.tool(exit: 0, "store", "delete", "walk")
        try bench.tool("store", "purge", "--confirm", "walk")
        try bench.shell("sqlite3 store.db 'DROP TABLE purged'")
        #expect(try bench.tool(exit: 0, "store", "repair").stdout.contains("is known to be purged again"))
        #expect(try bench.tool("import", "--overwrite", "day.jsonl").stderr.contains("was purged, so it stays deleted"))
    }

    @Test func aLostTableOfWhatBatchesAdded_givesUpTheirUndo() throws {
        let bench = try bench()
        let digest = try bench.digest()
        try bench.shell("sqlite3 store.db 'DROP TABLE batch_added'")
        let said = try bench.tool(exit: 0, "store", "repair").stdout
        #expect(said.contains("what was done before can no longer be undone"), "\(said)")
        #expect(try bench.tool(exit: 1, "undo").stderr.contains("there is nothing to undo"))
        #expect(try bench.digest() == digest)
    }

    /// An index or a trigger holds no rows; but what is written without a trigger counts as damaged, or is merged wrongly.
    @Test(arguments: [
        ("TRIGGER", "asset_witness_update"), ("TRIGGER", "record_keeps_ancestor"), ("INDEX", "record_by_name"),
        ("VIEW", "records"),
    ])
    func aMissingPart_isNamed_andMadeAgain(type: String, name: String) throws {
        let bench = try bench()
        try bench.shell("sqlite3 store.db 'DROP \(type) \(name)'")
        let check = try bench.tool(exit: 4, "store", "check")
        #expect(check.stderr.contains("the \(type.lowercased()) '\(name)' is missing"), "\(check)")
        let repair = try bench.tool(exit: 0, "store", "repair")
        #expect((repair.stdout + repair.stderr).contains("'\(name)' was made again"), "\(repair)")
        try bench.tool(exit: 0, "store", "check")
        try checkSound(bench.path("store.db"))
    }

    /// The last backup lacks what was written since; the store has it all.
    @Test(arguments: [
        "hub_link", "batch", "batch_record", "batch_asset", "removed", "asset_pending", "counter", "local_key",
        "asset_sync",
    ])
    func aTableThatNoExportNeeds_isNamedWithTheWayThatLosesNothing(table: String) throws {
        let bench = try bench()
        try bench.write("new.bib", "@misc{new, title={Written since}}\n")
        try bench.tool(exit: 0, "import", "new.bib")
        let digest = try bench.digest()
        try bench.shell("sqlite3 store.db 'DROP TABLE \(table)'")
        // Without some a store is not even opened to be mended, and `store check` is named.
        for command in ["removed", "asset_pending", "counter"].contains(table) ? ["check"] : ["check", "repair"] {
            let told = try bench.tool(["store", command]).stderr
            #expect(told.contains("'\(table)' is missing") && told.contains("export -o DIR"), "\(told)")
        }
        try bench.shell("$T -q export -o now || test $? = 3")
        try bench.shell(
            "$T restore now --create --store new.db --only publications,notes,events,records,attachments,settings")
        #expect(try bench.digest("new.db") == digest)
    }

    @Test(arguments: [
        "record", "meta", "counter", "asset", "batch", "local_key", "asset_pending", "removed",
    ])
    func aTableThatNothingReplaces_isNamed_andTheBackupHasIt(table: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try bench.shell("sqlite3 store.db 'DROP TABLE \(table)'")
        let check = try bench.tool(exit: 4, "store", "check")
        #expect(check.stderr.contains(table) && check.stderr.contains("--create --store NEW"), "\(check)")
        let failed = try bench.tool(exit: 1, "restore", "b.zip")
        #expect(failed.stderr.contains("store check"), "\(failed)")
        try bench.tool(
            exit: 0, "restore", "b.zip", "--create", "--store", "new.db", "--only",
            "publications,notes,events,records,attachments,settings")
        #expect(try bench.tool("store", "digest", "--store", "new.db").stdout.contains(digest))
    }

    /// The store is sound, whatever has happened to the hub.
    @Test(arguments: ["record", "push", "meta", "counter"], [true, false])
    func aTableThatTheHubHasLost_isMendedByANewHub(table: String, isDamaged: Bool) throws {
        let bench = try bench()
        try bench.shell("$T -q hub init hub.db; $T -q sync --hub hub.db; $T -q import \"$SAMPLES/refs.bib\" || true")
        if isDamaged {
            try bench.python(
                """
                import sqlite3, sys
                hub = sqlite3.connect('hub.db')
                page = hub.execute('SELECT rootpage FROM sqlite_schema WHERE name = ?', sys.argv[1:]).fetchone()[0]
                size = hub.execute('PRAGMA page_size').fetchone()[0]
                hub.close()
                with open('hub.db', 'r+b') as file:
                    file.seek((page - 1) * size)
                    file.write(b'\\xff' * 16)
                """, table)
        } else {
            try bench.shell("sqlite3 hub.db 'DROP TABLE \(table)'")
        }
        let told = try bench.tool("sync", "--hub", "hub.db")
        #expect(told.status != 0 && told.stderr.contains("'backup-tool hub init PATH'"), "\(told)")
        #expect(!told.stderr.contains("store check"), "\(told)")
        try bench.shell("$T -q hub init new.db; $T -q sync --hub new.db; $T -q store check")
        try bench.shell("$T -q store init --store b.db; $T -q sync --hub new.db --store b.db")
        #expect(try bench.digest("b.db") == bench.digest())
    }

    @Test func aRepairSaysThatTheBackupHasNothing() throws {
        let bench = try bench()
        try bench.write("later.bib", "@article{late,title={Late},author={B}}\n")
        try bench.tool(exit: 0, "import", "later.bib")
        try bench.shell("sqlite3 store.db \"UPDATE record SET fields = replace(fields, 'Late', 'Lade')\"")
        let told = try bench.tool(exit: 4, "store", "repair", "--from", "b.zip")
        let said = told.stdout + told.stderr
        #expect(said.contains("has no sound version of it") && said.contains("--accept"), "\(said)")
        #expect(!said.contains("repair --from"), "\(said)")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "store", "check")
    }

    /// A page of bookkeeping that a disk has lost keeps nobody from his data.
    @Test(arguments: [
        "asset_sync", "witness", "local_key", "removed", "awaited_file", "asset_pending", "damaged", "counter", "held",
        "batch", "batch_asset", "conflict_number", "imported_file", "purged", "ancestor", "listed",
    ])
    func aTableThatCannotBeRead_keepsNoBackupFromBeingMade(table: String) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        try bench.makeCheapVault()
        let digest = try bench.digest()
        try bench.python(
            """
            import sqlite3, sys
            store = sqlite3.connect('store.db')
            store.execute('PRAGMA wal_checkpoint(TRUNCATE)')
            page = store.execute('SELECT rootpage FROM sqlite_schema WHERE name = ?', sys.argv[1:]).fetchone()[0]
            size = store.execute('PRAGMA page_size').fetchone()[0]
            store.close()
            with open('store.db', 'r+b') as file:
                file.seek((page - 1) * size)
                file.write(b'\\xff' * 16)
            """, table)
        for words in [["export", "-o", "c.zip"], ["vault", "backup", "--vault", "v"]] {
            let made = try bench.tool(words, environment: ["BACKUP_TOOL_PASSWORD": "secret"])
            #expect(made.status == 0 || made.status == 3 && made.stderr.contains(table), "\(words): \(made)")
        }
        for (number, backup) in ["c.zip", "vault:v"].enumerated() {
            let new = ["--create", "--store", "n\(number).db", "--only", Workbench.allKinds]
            let back = try bench.tool(["restore", backup] + new, environment: ["BACKUP_TOOL_PASSWORD": "secret"])
            #expect(try back.status == 0 && bench.digest("n\(number).db") == digest, "\(backup): \(back)")
        }
        let check = try bench.tool("store", "check")
        #expect(check.status == 4 && check.stderr.contains("restore BACKUP"), "\(check)")
    }
}
