/// Versions of attachments that an app wrote in the store's folder, and that were kept under names of their own when a
/// restore or an undo put other bytes in their place. Nobody has decided about them, so no `--mode replace` removes them.
extension Store {
    private static let keptChangesKey = "kept_changes"

    func keptChanges() throws -> Set<ByteName> {
        guard let text = try meta(Self.keptChangesKey) else { return [] }
        return Set(
            try ifReadable { try JSON(parsing: text).array?.compactMap(\.string) ?? [] }?.map(ByteName.init) ?? [])
    }

    /// Must run inside `batch`.
    func noteKeptChange(_ path: String) throws { try setKeptChanges(keptChanges().union([ByteName(path)])) }

    /// Those that are gone need no word any more. Must run inside `write`.
    func forgetKeptChanges() throws {
        let known = try keptChanges()
        if !known.isEmpty { try setKeptChanges(known) }
    }

    private func setKeptChanges(_ known: Set<ByteName>) throws {
        let paths = try known.map(\.text).filter { try hasAsset($0) }.sorted(by: precedesBytewise)
        try database.statement("INSERT OR REPLACE INTO meta VALUES (?, ?)")
            .bind(1, Self.keptChangesKey).bind(2, JSON.array(paths.map { .string($0) }).compact).run()
    }
}
