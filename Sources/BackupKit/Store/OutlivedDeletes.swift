/// Deletes that an undo has taken back before any hub heard of them. The record is as old as before, so its time does not say
/// that it lives on, and a backup that was made between the two would delete it again.
extension Store {
    func noteOutlived(_ tombstone: Record) throws {
        try database.statement("INSERT OR REPLACE INTO outlived VALUES (?, ?, ?)")
            .bind(1, tombstone.id.zone).bind(2, tombstone.id.name).bind(3, tombstone.modifiedAt.milliseconds).run()
    }

    /// Whether a living record outlives the tombstone of a backup.
    func hasOutlived(_ known: Record, _ tombstone: Record) throws -> Bool {
        guard tombstone.isDeleted, !known.isDeleted else { return false }
        let query = try database.statement("SELECT 1 FROM outlived WHERE zone = ? AND name = ? AND deleted_at >= ?")
            .bind(1, known.id.zone).bind(2, known.id.name).bind(3, tombstone.modifiedAt.milliseconds)
        defer { query.reset() }
        return try query.step()
    }
}
