/// What a backup that comes in holds, for who has to tell its records from those that only the store has.
final class IncomingBackup {
    /// A line of the backup's records.
    typealias Line = Int

    private let forEachPublication: ((Record, Line) throws -> Void) throws -> Void
    private let publication: (Line) throws -> Record?
    private var publications: [RecordID: (isDeleted: Bool, line: Line)]?
    private var taken: Set<RecordID> = []

    /// All publications of the backup are visited once, deleted ones too, when somebody wants to know.
    init(
        _ forEachPublication: @escaping ((Record, Line) throws -> Void) throws -> Void,
        publication: @escaping (Line) throws -> Record?
    ) {
        (self.forEachPublication, self.publication) = (forEachPublication, publication)
    }

    private func known(_ id: RecordID) throws -> (isDeleted: Bool, line: Line)? {
        if let publications { return publications[id] }
        var found: [RecordID: (isDeleted: Bool, line: Line)] = [:]
        try forEachPublication { found[$0.id] = ($0.isDeleted, $1) }
        publications = found
        return found[id]
    }

    /// Whether the backup has the tombstone of a publication beside its other records, so that it deletes none of these.
    func hasTombstone(of id: RecordID) throws -> Bool { try known(id)?.isDeleted == true }

    /// Whether a living publication of the backup has that name.
    func hasLiving(_ id: RecordID) throws -> Bool { try known(id)?.isDeleted == false }

    /// Whether the backup has a version of a publication under its name. What a name says may be another work's in the backup.
    func has(_ ours: Record) throws -> Bool {
        guard let line = try known(ours.id)?.line, let theirs = try publication(line) else { return false }
        return try WorkLineage.isOneRecord(ours, theirs)
    }

    /// Whether a publication of the store may be the same record as one of the backup: the backup does not know that name,
    /// and no other record of the backup is it already.
    func leavesFree(_ id: RecordID) throws -> Bool {
        try known(id) == nil && taken.insert(id).inserted
    }
}
