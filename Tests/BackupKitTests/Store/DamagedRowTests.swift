import BackupKit
import TestSupport
import Testing

/// One row of a store holds what no row should; everything else must not notice.
struct DamagedRowTests {
    /// A store with some of everything, in which any column may hold anything: records that name others, too, files that
    /// records name, and conflicts that wait.
    private func fill(_ path: String) throws {
        let store = try Store.create(path)
        try store.write {
            for number in 0..<4 {
                let photo = number == 0 ? ",\"photo\":\"1.pdf\"" : ""
                let event =
                    "{\"id\":\"E\(number)\",\"time\":\"2026-02-14T1\(number):00:00+01:00\",\"type\":\"eten\"\(photo)}"
                let key = "k\(min(number, 2))"
                let bib =
                    "{\"citeKey\":\"\(key)\",\"entryType\":\"book\",\"linkedFiles\":[\"Attachments/\(number).pdf\"],"
                    + "\"rawBibTeX\":\"@book{\(key), title={T}}\"}"
                let note = "{\"citeKey\":\"k\(number)\",\"note\":\"n\",\"publication\":\"P\(number)\"}"
                for record in [
                    record("E\(number)", event, type: RecordType.event, zone: RecordType.eventZone),
                    record("P\(number)", bib, type: RecordType.publication, zone: RecordType.libraryZone),
                    record("N\(number)", note, type: RecordType.note),
                    record("R\(number)", "{\"n\":\(number)}", times: ["n": 0], device: "d"),
                    record("T\(number)", "{}", deleted: true),
                ] { _ = try store.ingest(record) }
            }
        }
        _ = try store.batch(kind: "import", source: "test") {
            for number in 0..<2 { try place("Attachments/\(number).pdf", "file \(number)", in: store) }
            try place("Attachments/0.pdf", "another file", in: store)
            try store.noteConflict(kind: "publication", subject: "k2", existing: "P2", incoming: "P3")
            for number in 0..<2 { _ = try store.putSetting("s\(number)", "\(number)", at: time(0)) }
            return ((), summary: "{}")
        }
    }

    private func lines(_ path: String) throws -> Set<String> {
        Set(String(decoding: try readFile(path), as: UTF8.self).split(separator: "\n").map(String.init))
    }

    private func export(_ path: String, to target: String) throws -> ExportResult {
        try Exporter.export(Store(path, .read), to: target, ExportOptions(form: .layout(.directory)))
    }

    @Test func everyColumnMayHoldAnything_andOnlyItsOwnRowIsLeftOut() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        let all = BrokenValue.all
        let chosen = isTorture ? all : all.filter { _ in random.chance(60) }
        try withTemporaryFolder { folder in
            let sound = "\(folder)/sound.db"
            try fill(sound)
            _ = try export(sound, to: "\(folder)/before")
            try SQLite.loosen(sound)
            for (number, broken) in chosen.enumerated() {
                countRounds()
                let place = "\(folder)/\(number)"
                try Directory.create(place)
                try readFile(sound).withUnsafeBytes { try FileHandle.create("\(place)/store.db").write($0) }
                try copyTree(Store.assetFolder(of: sound), to: Store.assetFolder(of: "\(place)/store.db"))
                let pick = random.below(["record": 22, "asset": 3][broken.table] ?? 2)
                do {
                    try tryOut(broken, row: pick, in: place, before: "\(folder)/before")
                } catch {
                    Issue.record("seed \(seed): \(broken) in row \(pick): \(error)")
                }
                try Directory.removeTree(place)
            }
        }
    }

    private func tryOut(
        _ broken: (table: String, column: String, value: String), row: Int, in place: String, before: String
    ) throws {
        let path = "\(place)/store.db"
        let key = ["record": "rowid", "asset": "path", "setting": "key"][broken.table] ?? ""
        let database = try SQLite(path, .readWrite)
        try database.execute(
            """
            UPDATE \(broken.table) SET \(broken.column) = \(broken.value)
            WHERE \(key) = (SELECT \(key) FROM \(broken.table) ORDER BY \(key) LIMIT 1 OFFSET \(row))
            """)
        let what = Comment(rawValue: "\(broken) in row \(row)")
        let result = try export(path, to: "\(place)/export")
        let (old, new) = (try lines("\(before)/records.jsonl"), try lines("\(place)/export/records.jsonl"))
        #expect(new.subtracting(old).count <= 1 && old.subtracting(new).count <= 1, what)
        for line in new { _ = try Array(line.utf8).withUnsafeBytes { try Record(parsing: $0) } }
        let damaged = result.warnings.filter { $0.code == .recordDamaged }
        #expect(damaged.allSatisfy { !$0.message.isEmpty && $0.remedy != nil }, what)
        let hasFile = try Directory.names(in: "\(place)/export").contains("damaged.jsonl")
        #expect(hasFile == !damaged.isEmpty, what)
        if new.count < old.count { #expect(hasFile && !result.isComplete, what) }
        // What it was comes back as it was.
        let copy = try Store.create("\(place)/copy.db")
        var options = RestoreOptions()
        options.kinds = Set(Kind.allCases)
        _ = try Restorer.restore("\(place)/export", into: copy, options)
        let isRefused = broken.column == "schema_version" && !hasFile
        // A conflict under a name that is not that of its works gets theirs.
        let isRenamed = try ["local_id", "name"].contains(broken.column) && database.isConflict(row)
        if !isRefused, !isRenamed { #expect(try copy.digest() == result.contentDigest.hex, what) }
        // An export tells the size that the file has.
        if broken.column != "size" { #expect(try Store(path, .read).digest() == result.contentDigest.hex, what) }
        try readAll(path, place)
        try sync(path, place, broken, what)
    }

    /// Whatever else reads a store.
    private func readAll(_ path: String, _ place: String) throws {
        let store = try Store(path, .read)
        _ = try store.changes(since: nil) { _ in }
        _ = try store.info()
        _ = try store.syncState()
        _ = try store.find("E1")
        _ = try store.batches()
        _ = try ConflictDesk.all(in: store)
        _ = try StoreCheck.run(path)
        _ = try EventExporter.write(store, toFolder: "\(place)/events", EventExportOptions())
        _ = try Differ.diff(path, "\(place)/export") { _ in }
        let writer = try Store(path, .write)
        _ = try Deduplicator.run(on: writer, dryRun: true)
        // It may be of the batch itself.
        do { _ = try writer.undoLast(dryRun: true) } catch is DamagedRow {}
        for key in ["k1", "k2"] { _ = try Importer.run([try bibliography(key, place)], into: writer, ImportOptions()) }
        try writeFile("\(place)/pdfs/0.pdf", "yet another file")
        var options = ImportOptions()
        options.attachments = "\(place)/pdfs"
        _ = try Importer.run([], into: writer, options)
    }

    private func bibliography(_ key: String, _ place: String) throws -> String {
        let path = "\(place)/\(key).bib"
        try writeFile(path, "@book{\(key)x, title={Of \(key)}}\n")
        return path
    }

    private func sync(
        _ path: String, _ place: String, _ broken: (table: String, column: String, value: String), _ what: Comment
    ) throws {
        let hub = try FileHub.create("\(place)/hub.db")
        let store = try Store(path, .write)
        var options = SyncOptions()
        options.sleep = { _ in }
        let result = try Synchronizer(store, hub, options).run()
        guard broken.table == "record", !["hub_version", "clean_at", "local_only"].contains(broken.column) else {
            return
        }
        let onHub = try SQLite("\(place)/hub.db", .readOnly).integer(
            "SELECT count(*) FROM record WHERE zone NOT IN ('Assets', 'Share')")
        let kept = result.held.filter { $0.kind == .broken }
        // 22 records, and what the imports brought; the damaged one, and it alone, stays here and is named.
        let all = try SQLite(path, .readOnly).integer("SELECT count(*) FROM record WHERE local_only IS NOT 1")
        #expect(onHub + Int64(kept.count) >= all && kept.count <= 1, what)
        let hasChanged = try SQLite(path, .readOnly).integer("SELECT count(*) FROM held") > 0
        #expect(onHub == all || hasChanged, what)
    }

    /// Files of apps with `count` of everything, of which the second is linked by its entry.
    private func writeFiles(_ count: Int, in folder: String) throws {
        var (entries, events, notes): ([String], [String], [String]) = ([], [], [])
        for number in 0..<count {
            entries.append(
                "@article{k\(number), title={Title \(number)}, author={Author\(number), A.}, year={2020}, "
                    + "file={\(number).pdf}}\n@comment{c\(number)}\n")
            events.append("{\"time\":\"2026-02-14T1\(number):00:00+01:00\",\"type\":\"eten\",\"note\":\"\(number)\"}\n")
            notes.append("{\"citeKey\":\"k\(number)\",\"note\":\"note \(number)\"}")
            try writeFile("\(folder)/\(number).pdf", "file \(number)")
        }
        try writeFile("\(folder)/library.bib", entries.joined())
        try writeFile("\(folder)/2026-02-14.jsonl", events.joined())
        try writeFile("\(folder)/notes.json", "[\(notes.joined(separator: ","))]")
    }

    /// The files are imported again, with more in them.
    @Test func whatADamagedRowHasNothingToDoWith_isImported() throws {
        var random = SeededGenerator(seed: testSeed())
        let all = BrokenValue.all.filter { $0.table == "record" }
        try withTemporaryFolder { folder in
            try Directory.create("\(folder)/files")
            try writeFiles(2, in: "\(folder)/files")
            let sound = "\(folder)/sound.db"
            _ = try Importer.run(["\(folder)/files"], into: Store.create(sound), ImportOptions())
            try SQLite.loosen(sound)
            try writeFiles(3, in: "\(folder)/files")
            let rows = Int(try SQLite(sound, .readOnly).integer("SELECT count(*) FROM record"))
            for (number, broken) in all.filter({ _ in isTorture || random.chance(12) }).enumerated() {
                countRounds()
                let row = random.below(rows)
                let path = "\(folder)/\(number).db"
                try readFile(sound).withUnsafeBytes { try FileHandle.create(path).write($0) }
                try copyTree(Store.assetFolder(of: sound), to: Store.assetFolder(of: path))
                try SQLite(path, .readWrite).execute(
                    """
                    UPDATE record SET \(broken.column) = \(broken.value)
                    WHERE change = (SELECT change FROM record ORDER BY change LIMIT 1 OFFSET \(row))
                    """)
                let what = Comment(rawValue: "\(broken) in row \(row)")
                do {
                    let result = try Importer.run(["\(folder)/files"], into: Store(path, .write), ImportOptions())
                    let records = try Store(path, .read).all().map(\.fields).joined()
                    for new in ["Title 2", "@comment{c2}", "14T12:00:00", "note 2"] {
                        #expect(records.contains(new), "\(what): \(new), \(result.findings)")
                    }
                    #expect(try Store(path, .read).asset("Attachments/2.pdf") != nil, what)
                } catch { Issue.record("\(what): \(error)") }
            }
        }
    }

    @Test func aDamagedRowIsNamedAndKept_andComesBackAsItWas() throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/store.db"
            try fill(path)
            try SQLite(path, .readWrite).execute("UPDATE record SET fields = '{\"n\":' WHERE local_id = 'R1'")
            let result = try export(path, to: "\(folder)/export")
            let finding = try #require(result.warnings.first)
            #expect(result.warnings.count == 1 && finding.subject == "Z/R1" && !result.isComplete)
            #expect(
                finding.message.contains("'fields' is not JSON") && finding.remedy?.contains("store repair") == true)
            let kept = try lines("\(folder)/export/damaged.jsonl")
            #expect(kept.count == 1 && kept.first?.contains("\"fields\":\"{\\\"n\\\":\"") == true)
            #expect(try Verifier.verify("\(folder)/export", level: .deep).isOK)
            let store = try Store.create("\(folder)/copy.db")
            let taken = try Restorer.restore("\(folder)/export", into: store, RestoreOptions())
            #expect(taken.findings.contains { $0.code == .recordDamaged && $0.subject == "Z/R1" })
            #expect(try Restorer.restore("\(folder)/export", into: store, RestoreOptions()).writes == 0)
            _ = try export("\(folder)/copy.db", to: "\(folder)/again")
            #expect(try lines("\(folder)/again/damaged.jsonl") == kept)
            _ = try store.undoLast(try #require(try store.undoable()).id)
            #expect(try store.all().isEmpty)
        }
    }

    @Test func aDamagedRowIsNotSent_andComesAfterItIsMended() throws {
        try withDevices("a", "b") { devices in
            for id in ["1", "2", "3"] { try devices.edit("a", id, "{\"n\":\(id)}") }
            try SQLite(devices.path("a"), .readWrite).execute("UPDATE record SET fields = '{' WHERE local_id = '2'")
            let result = try devices.sync("a")
            #expect(result.held.map(\.id.name) == ["2"] && result.held.first?.kind == .broken)
            #expect(result.needsAttention)
            try devices.sync("b")
            #expect(try devices["b"].all().map(\.localID) == ["1", "3"])
            // What is JSON, and not what the store wrote, is as damaged.
            try devices.edit("a", "4", "{\"n\":4}")
            try SQLite(devices.path("a"), .readWrite).execute(
                "UPDATE record SET fields = '{\"n\":5}' WHERE local_id = '4'; UPDATE record SET fields = '{\"n\":2}' WHERE local_id = '2'"
            )
            #expect(try devices.sync("a").held.map(\.id.name) == ["4"])
            try devices.sync("b")
            #expect(try devices["b"].all().map(\.localID) == ["1", "2", "3"])
            try SQLite(devices.path("a"), .readWrite).execute(
                "UPDATE record SET fields = '{\"n\":4}' WHERE local_id = '4'")
            #expect(try devices.sync("a").held.isEmpty)
            try devices.sync("b")
            #expect(try devices["b"].all().map(\.localID) == ["1", "2", "3", "4"])
        }
    }

    @Test func aRecordOfANewerSchemaWaits_andComesAfterTheUpgrade() throws {
        try withDevices("a", "b") { devices in
            for id in ["1", "2", "3"] { try devices.edit("a", id, "{\"n\":\(id)}") }
            try devices.sync("a")
            let hub = try SQLite(devices.hubPath, .readWrite)
            try hub.execute("DELETE FROM proof; UPDATE record SET schema_version = 130 WHERE local_id = '2'")
            try devices.edit("b", "4", "{\"n\":4}")
            let result = try devices.sync("b")
            #expect(result.held.map(\.id.name) == ["2"] && result.held.first?.kind == .newer && result.needsAttention)
            try devices.sync("a")
            #expect(try devices["b"].all().map(\.localID) == ["1", "3", "4"])
            #expect(try devices["a"].all().map(\.localID) == ["1", "2", "3", "4"])
            #expect(try devices.sync("b").held.count == 1)
            // Now this tool knows the schema; the hub shows nothing new.
            try hub.execute("UPDATE record SET schema_version = 120 WHERE local_id = '2'")
            try SQLite(devices.path("b"), .readWrite).execute("UPDATE held SET size = 120")
            #expect(try devices.sync("b").held.isEmpty)
            #expect(try devices["b"].all().map(\.localID) == ["1", "2", "3", "4"])
        }
    }
}

extension SQLite {
    fileprivate func isConflict(_ row: Int) throws -> Bool {
        let query = try prepare("SELECT type FROM record ORDER BY rowid LIMIT 1 OFFSET ?").bind(1, Int64(row))
        return try query.step() && query.text(0) == "Conflict"
    }
}
