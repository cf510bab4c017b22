/// The files that records of a backup link whose manifest is gone, as at the end of an archive that was cut off. Nothing else
/// says that these files were in it.
struct LinksOfCutBackup {
    let areDoubtful: Bool
    /// The records that were taken and link files, as the store calls them.
    private var owners: [RecordID] = []

    init(_ prepared: Restorer.Prepared, _ options: RestoreOptions) {
        let hasManifest = if case .none = prepared.layout.manifest { false } else { true }
        areDoubtful = !hasManifest && options.kinds.contains(.attachments) && options.policy != .quarantine
    }

    mutating func note(_ record: Record, _ outcome: Outcome) {
        guard !record.isDeleted, (try? Store.links(of: record).isEmpty) == false else { return }
        owners.append(outcome.id)
    }

    /// Names the files that neither the backup nor the store has. Must run when all files are in the store.
    func report(to intake: Intake) throws {
        let store = intake.store
        for id in owners {
            guard let record = try store.ifSound({ try store.record(id) })??.record, !record.isDeleted else { continue }
            for link in try Store.links(of: record) {
                let isKnown = try store.ifSound { try store.asset(link) != nil || store.awaitedFile(link) != nil }
                guard isKnown == false else { continue }
                intake.note(
                    Finding(
                        .linkMissing, .warning, link,
                        "is named by \(RecordLabel.text(of: record)), but is not in the backup",
                        remedy: "restore a backup that has it, or import it with --attachments DIR"))
            }
        }
    }
}
