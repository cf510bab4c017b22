/// What ties each row of the large tables of the undo history to its batch: a number that each bit of these columns changes,
/// also where they hold any number. The other columns of `batch_record` have a hash.
enum HistorySeal {
    static func version(batch: String = "batch", after: String = "after") -> String {
        number(batch, rest(after: after))
    }

    static func added(batch: String = "batch", change: String = "change", edited: String = "edited") -> String {
        number(batch, rest(change: change, edited: edited))
    }

    /// Of a row that gets another number. What was wrong with it before stays to be seen.
    static func version(movedTo after: String) -> String { "seal + \(rest(after: after)) - \(rest(after: "after"))" }

    static func added(movedTo change: String, edited: String = "edited") -> String {
        "seal + \(rest(change: change, edited: edited)) - \(rest(change: "change", edited: "edited"))"
    }

    private static let primeBelow2to40 = 1_099_511_627_689

    private static func number(_ batch: String, _ rest: String) -> String { "(\(batch) % 1048573 << 41) + \(rest)" }

    private static func rest(after: String) -> String { "ifnull(\(after) % \(primeBelow2to40), -1)" }

    private static func rest(change: String, edited: String) -> String {
        "(\(change) % \(primeBelow2to40) + 1) * CASE \(edited) WHEN 0 THEN 1 WHEN 1 THEN -1 ELSE 0 END"
    }

    static func sealAll(_ database: SQLite) throws {
        try database.execute(
            """
            ALTER TABLE batch_record ADD COLUMN seal INTEGER;
            UPDATE batch_record SET seal = \(version());
            ALTER TABLE batch_added ADD COLUMN seal INTEGER;
            UPDATE batch_added SET seal = \(added());
            """)
    }
}

extension Store {
    /// The batches of rows that are not sealed as they are now, and those that they were sealed for.
    func batchesWithBrokenSeals() throws -> Set<Int64> {
        var found: Set<Int64> = []
        for (table, seal) in [("batch_record", HistorySeal.version()), ("batch_added", HistorySeal.added())] {
            let query = try database.prepare(
                "SELECT batch, (seal + (1 << 40)) >> 41 FROM \(table) WHERE seal IS NOT \(seal)")
            while try query.step() {
                found.formUnion([query.integer(0), query.optionalInteger(1) ?? query.integer(0)])
            }
        }
        return found
    }
}
