/// What a backup that comes in holds, for who has to tell its records from those that only the store has.
final class IncomingBackup {
    private let read: () throws -> Set<RecordID>
    private var names: Set<RecordID>?
    private var taken: Set<RecordID> = []

    /// `read` gives the publications of the backup, also deleted ones. It is asked once, and only when somebody wants to know.
    init(_ read: @escaping () throws -> Set<RecordID>) { self.read = read }

    /// Whether a publication of the store may be the same record as one of the backup: the backup does not know that name,
    /// and no other record of the backup is it already.
    func leavesFree(_ id: RecordID) throws -> Bool {
        let names = try self.names ?? read()
        self.names = names
        return !names.contains(id) && taken.insert(id).inserted
    }
}
