/// Tables, and what belongs to them, that another program has dropped, or that a disk has lost.
extension StoreSchema {
    /// Those whose rows nothing else tells of. A store without one of them goes on in a new one.
    private static let needed: Set<String> = [
        "meta", "counter", "record", "asset", "setting", "batch", "batch_record", "batch_asset", "local_key",
        "hub_link", "asset_sync", "removed", "asset_pending",
    ]

    /// What a table's rows are for, where an empty one is not as good.
    private static let losses = [
        "witness": "settings, attachments, the undo history and what purges left count as sound as they are now",
        "damaged": "rows that were set aside as damaged are lost",
        "ancestor": "the next sync merges edits of both sides by their times, and keeps in quarantine what loses",
        "batch_added": "what was done before can no longer be undone",
        "batch_setting": "an undo leaves settings as they are",
        "batch_said": "an undo of an import no longer restores what its files held before",
        "held": "the next sync names again what it cannot send",
    ]

    private static func fromWitness(_ table: String) -> String? {
        let isNoted = (Witness.ofMemory + [Witness.purged]).contains { $0.table == table }
        return isNoted ? "its rows come from the copy in the table 'witness'" : nil
    }

    private static func missing(_ database: SQLite) throws -> [ForeignSchema.Part] {
        if try isOld(database) || isAsMade(database) { return [] }
        let query = try database.prepare("SELECT name FROM sqlite_schema")
        var known: Set<String> = []
        while try query.step() { known.insert(query.text(0)) }
        return try parts().filter { !known.contains($0.name) }
    }

    static func missingTables(_ database: SQLite) throws -> [MissingTable] {
        try missing(database).filter { $0.type == "table" }.map {
            let loss = losses[$0.name] ?? fromWitness($0.name)
            return MissingTable(name: $0.name, canBeMade: !needed.contains($0.name), loss: loss)
        }
    }

    /// Columns that another program has dropped or renamed.
    static func missingColumns(_ database: SQLite, at path: String) throws -> [Finding] {
        if try isOld(database) || isAsMade(database) { return [] }
        let model = try model()
        func columns(_ table: String, _ database: SQLite) throws -> [String] {
            let query = try database.prepare("SELECT name FROM pragma_table_info(?)").bind(1, table)
            var found: [String] = []
            while try query.step() { found.append(query.text(0)) }
            return found
        }
        return try parts().filter { $0.type == "table" }.flatMap { part in
            let found = try columns(part.name, database)
            // Of a table that is missing something else is said.
            let lacking = try found.isEmpty ? [] : columns(part.name, model).filter { !found.contains($0) }
            return lacking.map { column in
                Finding(
                    .storeDamaged, .damage, path, "the table '\(part.name)' lacks the column '\(column)'",
                    remedy: "keep the file; \(MissingTable.wayOut(without: part.name))")
            }
        }
    }

    /// Makes missing tables again, empty, with their indexes and triggers. Must run inside `write`.
    static func makeMissing(_ database: SQLite) throws {
        let missing = try missing(database)
        for part in missing { try database.execute(part.sql) }
        if missing.contains(where: { $0.name == "witness" }) {
            try Witness.refresh(Witness.ofData + Witness.ofHistory + Witness.ofMemory + [Witness.purged], database)
        }
    }

    /// Triggers, indexes and views of tables that are there.
    static func missingParts(_ database: SQLite) throws -> [MissingPart] {
        try missing(database).filter { $0.type != "table" }.map {
            MissingPart(type: $0.type, name: $0.name, table: $0.table)
        }
    }
}

// MARK: Tables that cannot be read

extension StoreSchema {
    /// Tables that an export reads and that hold no user data.
    private static let bookkeeping = [
        "counter", "removed", "local_key", "asset_sync", "asset_pending", "witness", "awaited_file",
        "file_elsewhere", "damaged",
    ]

    fileprivate static func unreadableBookkeeping(_ database: SQLite) throws -> [String] {
        let gone = Set(try missingTables(database).map(\.name))
        return try bookkeeping.filter { table in
            if gone.contains(table) { return true }
            do { _ = try database.integer("SELECT count(*) FROM \(table) NOT INDEXED") } catch let error as BackupError
                where error.code == .damaged
            { return true }
            return false
        }
    }

    /// Replaces tables by empty ones, for this connection only.
    fileprivate static func standIn(for tables: [String], _ database: SQLite) throws {
        try database.execute("PRAGMA query_only = OFF")
        for part in try parts() where part.name == part.table && tables.contains(part.name) {
            try database.execute("CREATE TEMP TABLE" + part.sql.dropFirst("CREATE TABLE".count))
        }
        if tables.contains("witness") { try Witness.refresh(Witness.ofData, database) }
        try database.execute("PRAGMA query_only = ON")
    }
}

extension Store {
    /// Throws with the first table that is missing.
    func refuseMissingTables() throws {
        guard let missing = try StoreSchema.missingTables(database).first?.finding(path) else { return }
        throw BackupError(.damaged, missing.message, remedy: missing.remedy)
    }

    /// Lets an export go on without bookkeeping tables that are gone or cannot be read. Call it on a reader, before `read`.
    func leaveOutUnreadableTables() throws {
        guard writerLock == nil else { return }
        // After reading a bad page in a transaction a connection cannot create tables.
        let reader = try Store.connectReader(path)
        let unreadable = try StoreSchema.unreadableBookkeeping(reader)
        guard !unreadable.isEmpty else { return }
        let missing = try StoreSchema.missingTables(reader)
        try StoreSchema.standIn(for: unreadable, database)
        tablesLeftOut = unreadable.map { table in
            missing.first { $0.name == table }?.finding(path)
                ?? Finding(
                    .storeDamaged, .damage, path, "the table '\(table)' cannot be read and was left out",
                    remedy: "keep the file; \(StoreRemedy.intoNewStore)")
        }
    }
}

struct MissingTable {
    let name: String
    /// Whether an empty one takes its place.
    let canBeMade: Bool
    fileprivate let loss: String?

    func finding(_ path: String) -> Finding {
        Finding(
            .storeDamaged, .error, path, "the table '\(name)' is missing",
            remedy: canBeMade
                ? "'backup-tool store repair' makes it again, empty" : "keep the file; \(Self.wayOut(without: name))")
    }

    /// An export needs only the tables that hold what people wrote.
    fileprivate static func wayOut(without table: String) -> String {
        let holdsWork = ["record", "asset", "setting", "meta"].contains(table)
        return holdsWork ? StoreRemedy.intoNewStore : StoreRemedy.exportIntoNewStore
    }

    fileprivate var message: String { "the table '\(name)' was made again\(loss.map { ": \($0)" } ?? ", empty")" }
}

/// What a store can do without for a while: nothing of what was written before is lost with it.
struct MissingPart {
    let type: String
    let name: String
    let table: String

    /// Whether what is written without it may be wrong.
    var isTrigger: Bool { type == "trigger" }

    func finding(_ path: String) -> Finding {
        Finding(
            .storeDamaged, .error, path, "the \(type) '\(name)' is missing",
            remedy: "'backup-tool store repair' makes it again")
    }

    fileprivate var message: String { "the \(type) '\(name)' was made again" }
}

extension StoreRepair {
    /// Comes first: nothing else can be looked at before.
    mutating func makeMissingTables() throws {
        let missing = try StoreSchema.missingTables(store.database)
        if let needed = missing.first(where: { !$0.canBeMade }) {
            throw BackupError(
                .damaged, "nothing was repaired: the table '\(needed.name)' is missing", at: store.path,
                remedy: "keep the file; \(MissingTable.wayOut(without: needed.name))")
        }
        let lost = Set(missing.map(\.name))
        let parts = try StoreSchema.missingParts(store.database).filter { !lost.contains($0.table) }
        guard !missing.isEmpty || !parts.isEmpty else { return }
        try StoreSchema.makeMissing(store.database)
        for table in missing { note(.index, store.path, table.message) }
        // Without it an undo does not know which records a batch has added.
        if lost.contains("batch_added") { for batch in try store.batches() { try store.forgetBatch(batch.id) } }
        for part in parts { note(.index, store.path, part.message) }
        _ = store.nextChange()
    }
}
