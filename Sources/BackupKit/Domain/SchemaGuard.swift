/// Data that this tool does not fully understand is never written back: what it would not understand, it would lose.
extension SchemaVersion {
    /// Why data of `version` must not be written by this tool, or nil. `instead` says what can be done without
    /// understanding it. Import, restore, sync and every writer of a store ask here.
    public static func refusal(
        of version: Int, at subject: String?,
        instead: String = "'backup-tool restore BACKUP --to DIR' gives you the plain files"
    ) -> BackupError? {
        switch check(version) {
        case .current, .needsMigration: nil
        case .newerThanApp(let version):
            BackupError(
                .refused, "holds data of schema \(version), this backup-tool knows \(current)", at: subject,
                remedy: "use a newer backup-tool; \(instead)")
        case .incompatible(let version):
            BackupError(
                .refused, "holds data of schema \(version), which was never one", at: subject, remedy: instead)
        }
    }

    /// The same for one record, as a finding: the others can still be taken. A tombstone is understood whatever its
    /// schema, and a delete that is not heard of brings the dead back.
    public static func finding(about record: Record) -> Finding? {
        guard !record.isDeleted, let refusal = refusal(of: record.schemaVersion, at: nil) else { return nil }
        return Finding(
            .newerSchema, .warning, "\(record.id)", "was left out: it \(refusal.message)", remedy: refusal.remedy)
    }
}
