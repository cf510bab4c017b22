/// Entries of publications that were deleted here: the file goes on to hold them, and they are nobody else's.
extension BibliographyIntake {
    /// Whether an entry is one that was deleted here, and not the living publication of its key that may be the same work: of
    /// two such entries one may be deleted. What was merged into the living one goes on to be that.
    func isOfDeleted(_ work: WorkID, besides match: Match, _ record: Record, _ state: FileState) throws -> Bool {
        guard !intake.isEdit, bibTeX(match.fields) != work.fields else { return false }
        let knowsFile = !state.saidBefore.isEmpty
        if knowsFile && hasSaidAll(of: match.localID, state) { return false }
        let merged = mergedInto[match.localID] ?? []
        if knowsFile {
            for id in work.made where !sameBytes(id, match.localID) && !merged.contains(id) {
                if hasBrought(id, state), hasSaidAll(of: id, state), try live(id) == nil { return true }
            }
        }
        func isDead(_ id: String) throws -> Bool {
            if isFree(id) || merged.contains(id) { return false }
            let time = dated(record, as: id, state).modifiedAt
            return try deleted(id).contains { $0.modifiedAt >= time && !merged.contains($0.id.name) }
        }
        if try isDead(work.twin()) { return true }
        let other = WorkID(bibTeX(match.fields), hasher)
        return try (other.listing != work.listing || match.localID == other.twin()) && isDead(work.listing)
    }

    /// The tombstones of publications with that local id.
    func deleted(_ localID: String) throws -> [Record] {
        try records(localID).filter { $0.isDeleted && $0.type == RecordType.publication }
    }

    /// The local id of a deleted publication that this entry is, where an app had given the id. Only the file's memory can
    /// tell, because a tombstone holds no text: the file must have said of that publication all that the entry says.
    func deletedWork(_ state: inout FileState) throws -> String? {
        guard !state.saidBefore.isEmpty else { return nil }
        let deleted =
            try state.deleted
            ?? store.deletedLocalIDs(type: RecordType.publication).filter {
                !DeterministicID.isMade($0) && hasBrought($0, state)
            }
        state.deleted = deleted
        return deleted.first { hasSaidAll(of: $0, state) }
    }
}
