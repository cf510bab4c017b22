/// The files that records of a backup link whose manifest is gone, as at the end of an archive that was cut off. Nothing else
/// says that these files were in it.
struct LinksOfCutBackup {
    /// The records that were taken and link files, as the store calls them.
    private var owners: [RecordID] = []

    mutating func note(_ record: Record, _ outcome: Outcome) throws {
        if try !record.isDeleted && !Store.links(of: record).isEmpty { owners.append(outcome.id) }
    }

    /// Names the files that neither the backup nor the store has. Must run when all files are in the store.
    func report(to intake: Intake) throws {
        let store = intake.store
        for id in owners {
            guard let record = try store.ifSound({ try store.record(id) })??.record, !record.isDeleted else { continue }
            for link in try Store.links(of: record) {
                let isKnown = try store.ifSound { try store.asset(link) != nil || store.awaitedFile(link) != nil }
                if isKnown == false { intake.noteMissing(link, of: record) }
            }
        }
    }
}
