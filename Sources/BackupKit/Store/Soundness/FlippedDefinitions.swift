/// A table, index, view or trigger of the store of whose definition one bit has flipped. What it was is known.
struct FlippedDefinition {
    fileprivate let row: Int64
    fileprivate let part: ForeignSchema.Part

    var subject: String { "\(part.type) \(part.name)" }
    private static let reason = "its definition has a flipped bit"

    var finding: Finding { Finding(.storeDamaged, .damage, subject, Self.reason, remedy: StoreRemedy.repair) }

    fileprivate var step: StoreRepairResult.Step {
        StoreRepairResult.Step(action: .exact, subject: subject, message: "its definition was restored")
    }

    func error(at path: String) -> BackupError {
        BackupError(.damaged, "\(subject): \(Self.reason)", at: path, remedy: StoreRemedy.repair)
    }
}

extension StoreSchema {
    /// One bit is a disk's doing: another program changes more.
    static func flippedDefinitions(in database: SQLite) throws -> [FlippedDefinition] {
        let found = try database.integer("PRAGMA user_version")
        guard 1...version ~= found, try !isAsMade(database) else { return [] }
        let query = try database.prepare(
            "SELECT rowid, type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        var rows: [[UInt8]: Int64] = [:]
        while try query.step() {
            rows[Array((1...4).map { query.bytes($0) }.joined(separator: [0]))] = query.integer(0)
        }
        let own = try found == version ? parts() : parts(ofVersion: found)
        let wanted = own.map { part in
            (part, Array([part.type, part.name, part.table, part.sql].map(\.utf8).joined(separator: [0])))
        }
        for (_, bytes) in wanted { rows[bytes] = nil }
        return wanted.compactMap { part, bytes in
            rows.first { differsInOneBit($0.key, bytes) }.map { FlippedDefinition(row: $0.value, part: part) }
        }
    }

    private static func differsInOneBit(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return zip(left, right).reduce(0) { $0 + ($1.0 ^ $1.1).nonzeroBitCount } == 1
    }
}

extension Store {
    /// The same of a store that may be one that cannot be opened for it. Where not even its definitions can be read, whoever
    /// opens it says so.
    static func flippedDefinitions(of path: String) -> [FlippedDefinition] {
        do {
            try mustBeStore(path)
            let database = try SQLite(path, .readOnly)
            try database.openDefinitions()
            return try StoreSchema.flippedDefinitions(in: database)
        } catch { return [] }
    }

    /// Makes definitions what they were. Comes before the store is opened, which may need them.
    static func mendDefinitions(of path: String, dryRun: Bool) throws -> [StoreRepairResult.Step] {
        try mustBeStore(path)
        let path = try OutputPlace.behindLinks(path)
        let flipped = flippedDefinitions(of: path)
        if flipped.isEmpty || dryRun { return flipped.map(\.step) }
        try mustBeWritable(path)
        return try withExtendedLifetime(lock(path, 100)) {
            let database = try SQLite(path, .readWrite)
            try database.openDefinitions()
            try database.write {
                for definition in try StoreSchema.flippedDefinitions(in: database) {
                    let part = definition.part
                    try database.prepare(
                        "UPDATE sqlite_schema SET type = ?, name = ?, tbl_name = ?, sql = ? WHERE rowid = ?"
                    ).bind(1, part.type).bind(2, part.name).bind(3, part.table).bind(4, part.sql)
                        .bind(5, definition.row).run()
                }
                // Others who have the store open read it anew.
                try database.execute("PRAGMA schema_version = \(database.integer("PRAGMA schema_version") + 1)")
            }
            return flipped.map(\.step)
        }
    }
}
