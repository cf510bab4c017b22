/// What another program has put into a database of ours that acts where we read or write a table: a trigger, a view in the
/// place of a table, a unique index or a clause that lets rows vanish. Nothing is read or written through it.
struct ForeignSchema {
    struct Part: Sendable {
        let type: String
        let name: String
        let table: String
        let sql: String
    }

    /// What belongs into the database.
    private let own: [String: Part]
    private let tables: Set<String>
    private let remedy: String

    init(own: [Part], remedy: String) {
        self.own = Dictionary(own.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        tables = Set(own.filter { $0.type == "table" }.map(\.name))
        self.remedy = remedy
    }

    /// Everything that a database holds, tables first.
    static func parts(of database: SQLite) throws -> [Part] {
        let query = try database.prepare(
            """
            SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL
            ORDER BY type = 'table' DESC, rowid
            """)
        var found: [Part] = []
        while try query.step() {
            found.append(
                Part(type: query.text(0), name: query.text(1), table: query.text(2), sql: query.text(3)))
        }
        return found
    }

    /// Of all that is in a database. Whoever has the digest of what belongs there need not make another to compare it with,
    /// which takes longer than a command that finds nothing to do.
    static func digest(of database: SQLite) throws -> SHA256Digest {
        let hasher = SHA256Hasher()
        for part in try parts(of: database) {
            for var text in [part.type, part.name, part.table, part.sql] {
                text.withUTF8 { hasher.update(UnsafeRawBufferPointer($0)) }
                withUnsafeBytes(of: UInt8(0)) { hasher.update($0) }
            }
        }
        return hasher.finish()
    }

    /// Throws where something acts on a table of ours that we have not put there.
    func refuse(in database: SQLite) throws {
        for part in try Self.parts(of: database) {
            guard let reason = reason(to: part) else { continue }
            throw BackupError(
                .damaged, "another program has changed the tables, so nothing was read or written: \(reason)",
                at: database.path, remedy: remedy)
        }
    }

    /// Names mean the same in SQLite whatever their case.
    private func reason(to part: Part) -> String? {
        guard tables.contains(part.table.lowercased()) else { return nil }
        let known = own[part.name]
        if let known, sameBytes(known.type, part.type), sameBytes(known.sql, part.sql) { return nil }
        let isOurs =
            known.map { $0.sql.split(whereSeparator: \.isWhitespace) } == part.sql.split(whereSeparator: \.isWhitespace)
        switch part.type {
        case "table":
            let words = Self.words(of: part.sql)
            if !words.starts(with: ["create", "table"]) { return "'\(part.table)' is no ordinary table" }
            // Which rows go when two have one key is for the tool to say.
            let conflicts = words.count { $0 == "conflict" }
            let own = known.map { Self.words(of: $0.sql).count { $0 == "conflict" } } ?? 0
            return conflicts > own ? "the table '\(part.table)' drops rows by itself (ON CONFLICT)" : nil
        case "index":
            let isUnique = Self.words(of: part.sql).starts(with: ["create", "unique"])
            return isUnique && !isOurs ? "the index '\(part.name)' on '\(part.table)' allows each value once" : nil
        case "view": return "'\(part.table)' is a view and no table"
        default: return isOurs ? nil : "there is a trigger '\(part.name)' on the table '\(part.table)'"
        }
    }

    private static func words(of sql: String) -> [Substring] {
        sql.lowercased().split { !($0.isLetter || $0.isNumber || $0 == "_") }
    }
}

extension StoreSchema {
    private static let current = Result { try parts(ofVersion: version) }
    private static let digest = SHA256Digest(
        hex: "17e306179ddefc18e556532899be61b9738a7b41f42fcd566478b4cdc4c93ead")

    /// Whether a store has all that a store of today has, and nothing else.
    static func isAsMade(_ database: SQLite) throws -> Bool { try ForeignSchema.digest(of: database) == digest }

    /// Everything that a store of a version has.
    static func parts(ofVersion version: Int64) throws -> [ForeignSchema.Part] {
        try ForeignSchema.parts(of: model(ofVersion: version))
    }

    /// A new store without rows, in memory.
    static func model(ofVersion version: Int64 = version) throws -> SQLite {
        let database = try SQLite(":memory:", .create)
        try migrate(database, to: version)
        return database
    }

    /// Everything that a store of today has.
    static func parts() throws -> [ForeignSchema.Part] { try current.get() }

    /// Throws where another program's trigger, view or index acts on a table of the store, and for writers also where a
    /// definition has a flipped bit.
    static func refuseForeign(in database: SQLite, forWriting: Bool) throws {
        let found = try database.integer("PRAGMA user_version")
        // What is no version of ours is refused as that.
        guard 0...version ~= found, try !isAsMade(database) else { return }
        let flipped = try flippedDefinitions(in: database).first?.error(at: database.path)
        if let flipped, forWriting { throw flipped }
        // What an older version had under a name counts: a later one may have made that anew.
        let older = try found == version ? [] : parts(ofVersion: found)
        do {
            try ForeignSchema(
                own: older + parts(),
                remedy: "remove it with sqlite3, then run 'backup-tool store check'; or keep the file: "
                    + StoreRemedy.intoNewStore
            ).refuse(in: database)
        } catch let error as BackupError {
            throw flipped ?? error
        }
    }
}
