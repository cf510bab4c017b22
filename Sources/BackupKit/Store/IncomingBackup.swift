/// What a backup that comes in holds, for who has to tell its records from those that only the store has.
final class IncomingBackup {
    private let forEachPublication: ((Record) throws -> Void) throws -> Void
    private var isDeleted: [RecordID: Bool]?
    private var taken: Set<RecordID> = []

    /// All publications of the backup are visited, deleted ones too, each time that somebody wants to know.
    init(_ forEachPublication: @escaping ((Record) throws -> Void) throws -> Void) {
        self.forEachPublication = forEachPublication
    }

    private func known(_ id: RecordID) throws -> Bool? {
        if let isDeleted { return isDeleted[id] }
        var found: [RecordID: Bool] = [:]
        try forEachPublication { found[$0.id] = $0.isDeleted }
        isDeleted = found
        return found[id]
    }

    /// Whether the backup has the tombstone of a publication beside its other records, so that it deletes none of these.
    func hasTombstone(of id: RecordID) throws -> Bool { try known(id) == true }

    /// Whether the backup has a version of a publication under its name. What a name says may be another work's in the backup.
    func has(_ publication: Record) throws -> Bool {
        guard try known(publication.id) != nil else { return false }
        var isThere = false
        try forEachPublication { theirs in
            if theirs.id == publication.id { isThere = try WorkLineage.isOneRecord(publication, theirs) }
        }
        return isThere
    }

    /// Whether a publication of the store may be the same record as one of the backup: the backup does not know that name,
    /// and no other record of the backup is it already.
    func leavesFree(_ id: RecordID) throws -> Bool {
        try known(id) == nil && taken.insert(id).inserted
    }
}
