/// Entries of publications that were deleted here: the file goes on to hold them, and they are nobody else's.
extension BibliographyIntake {
    /// Whether an entry is one that was deleted here, and not the living publication of its key that may be the same work: of
    /// two such entries one may be deleted. What was merged into the living one goes on to be that.
    func isOfDeleted(
        _ work: WorkID, besides match: Match, _ record: Record, _ state: inout FileState
    ) throws -> Bool {
        guard bibTeX(match.fields) != work.fields else { return false }
        let knowsFile = !state.saidBefore.isEmpty
        if knowsFile && hasHeld(match.localID, state) && distance(to: match, work.fields, state) == 0 { return false }
        if try isNearerToDeleted(work, than: match, &state) { return true }
        let merged = mergedInto[match.localID] ?? []
        func isDead(_ id: String) throws -> Bool {
            if isFree(id) || merged.contains(id) { return false }
            // An edit brings it back, and is none of the living one for that.
            let time = intake.isEdit ? .distantPast : try dated(record, as: id, state).modifiedAt
            return try deleted(id).contains { $0.modifiedAt >= time && !merged.contains($0.id.name) }
        }
        if try isDead(work.twin()) { return true }
        let other = WorkID(bibTeX(match.fields), hasher)
        return try (other.listing != work.listing || match.localID == other.twin()) && isDead(work.listing)
    }

    /// Whether the entry at hand is nearer to what the file has said of a publication that was deleted here than to this one.
    func isNearerToDeleted(_ work: WorkID, than match: Match, _ state: inout FileState) throws -> Bool {
        guard !state.saidBefore.isEmpty else { return false }
        let merged = mergedInto[match.localID] ?? []
        let most = distance(to: match, work.fields, state)
        let deleted = try deletedHere(&state).held.filter { said(work.identity.key, of: $0, state) }
        return try (work.made + deleted).contains { id in
            guard !sameBytes(id, match.localID), !merged.contains(id), hasBrought(id, state) else { return false }
            return try unsaid(of: id, state) < most && live(id) == nil
        }
    }

    /// The ids of deleted publications that the file brought: those that an app has made, and those that it still held.
    private func deletedHere(_ state: inout FileState) throws -> (ofApps: [String], held: [String]) {
        if let deleted = state.deleted { return deleted }
        let all = try store.deletedLocalIDs(type: RecordType.publication).filter { hasBrought($0, state) }
        let deleted = (all.filter { !DeterministicID.isMade($0) }, all.filter { hasHeld($0, state) })
        state.deleted = deleted
        return deleted
    }

    /// The tombstones of publications with that local id.
    func deleted(_ localID: String) throws -> [Record] {
        isFree(localID) ? [] : try records(localID).filter { $0.isDeleted && $0.type == RecordType.publication }
    }

    /// The local id of a deleted publication that this entry is, where the id does not tell: an app had given it, or the entry
    /// has been corrected since it got it. Only the file's memory can tell, because a tombstone holds no text: the file must
    /// have said of that publication all that the entry says, or in the same words: a macro may mean something else by now.
    func deletedWork(_ state: inout FileState) throws -> String? {
        guard !state.saidBefore.isEmpty else { return nil }
        let (ofApps, held) = try deletedHere(&state)
        return (ofApps + held).first { hasSaidAll(of: $0, state) || timeOfText(of: $0, state) != nil }
    }
}
