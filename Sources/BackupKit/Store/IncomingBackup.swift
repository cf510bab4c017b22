/// What a backup that comes in holds, for who has to tell its records from those that only the store has.
final class IncomingBackup {
    private let read: () throws -> [RecordID: Bool]
    private var isDeleted: [RecordID: Bool]?
    private var taken: Set<RecordID> = []

    /// `read` gives the publications of the backup, and whether each is deleted there. It is asked once, and only when
    /// somebody wants to know.
    init(_ read: @escaping () throws -> [RecordID: Bool]) { self.read = read }

    private func known(_ id: RecordID) throws -> Bool? {
        let isDeleted = try self.isDeleted ?? read()
        self.isDeleted = isDeleted
        return isDeleted[id]
    }

    /// Whether the backup has the tombstone of a publication beside its other records, so that it deletes none of these.
    func hasTombstone(of id: RecordID) throws -> Bool { try known(id) == true }

    /// Whether a publication of the store may be the same record as one of the backup: the backup does not know that name,
    /// and no other record of the backup is it already.
    func leavesFree(_ id: RecordID) throws -> Bool {
        try known(id) == nil && taken.insert(id).inserted
    }
}
