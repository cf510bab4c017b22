/// What a snapshot remembers of the store that it was made from, so that the next one need not make again what would
/// come out the same. It stands in the snapshot under a name of ours, which restic passes over.
struct BackupMemo: Equatable {
    private static let name = "backup_tool"

    let state: StoreState
    /// The store's change counter.
    let changes: Int64
    /// What else decides what the files look like.
    let terms: String

    init(_ state: StoreState, changes: Int64, _ options: VaultBackupOptions) {
        self.state = state
        self.changes = changes
        terms = Self.terms(options)
    }

    /// Nil when the snapshot has none, or was made on other terms.
    init?(_ snapshot: SnapshotFile?, _ options: VaultBackupOptions) {
        guard let json = snapshot?.others.first(where: { $0.key == Self.name })?.value,
            let terms = json["terms"]?.string, terms == Self.terms(options),
            let bibliography = json["bibliography"]?.string.flatMap({ UInt64($0, radix: 16) }),
            let others = json["others"]?.string.flatMap({ UInt64($0, radix: 16) }),
            let changes = json["changes"]?.integer
        else { return nil }
        state = StoreState(bibliography: bibliography, others: others)
        self.changes = changes
        self.terms = terms
    }

    private static func terms(_ options: VaultBackupOptions) -> String {
        let kinds = Kind.allCases.filter(options.kinds.contains).map(\.rawValue)
        return "1 \(options.tool) \(kinds.joined(separator: ",")) \(options.oversize)"
    }

    var member: JSON.Member {
        JSON.Member(
            Self.name,
            [
                "terms": .string(terms), "bibliography": .string(String(state.bibliography, radix: 16)),
                "others": .string(String(state.others, radix: 16)), "changes": JSON(changes),
            ])
    }
}
