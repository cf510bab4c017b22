/// A version that no hub has seen, of a record that another device has merged into another one. Without a base nobody can tell
/// what of it is newer than what was merged.
extension Synchronizer {
    /// The record that stays gets what it lacks, and joins lists; none of its values is replaced. Returns whether it says by
    /// then all that the version says.
    func fill(_ survivor: Store.StoredRecord, from version: Record) throws -> Bool {
        let (mine, theirs) = (try Fields.parse(version.fields), try Fields.parse(survivor.record.fields))
        let values = Fields.values(theirs)
        let isSameWork = WorkIdentity(theirs).mayBeFilled(from: WorkIdentity(mine))
        let known = try fieldsOfListing(version)
        var (taken, isWhole) = ([Field](), true)
        for field in mine where !Self.isName(field.name) {
            let their = values[ByteName(field.name)]
            if let their, try Fields.same(their, field.value) { continue }
            if WorkIdentity.isOfWork(field.name), their != nil || !isSameWork {
                isWhole = isWhole && known.contains(field.name)
            } else if try their.map({ try MergePolicy.areLists(field.name, $0, field.value) }) ?? true {
                taken.append(field)
            } else {
                isWhole = false
            }
        }
        guard !taken.isEmpty else { return isWhole }
        var part = version
        part.fields = Fields.text(taken)
        let names = Set(taken.map(\.name))
        part.fieldTimes = version.fieldTimes.filter { names.contains($0.key) }
        let policy = MergePolicy(now: store.timeAfter(survivor.record, version))
        let union = try policy.union(part, into: survivor.record) { try derive(version.type, $0, $1, $2) }
        if !union.isSame(as: survivor.record) { try store.put(union, replacing: survivor) }
        return isWhole
    }

    /// What says which work it is, and was the same where it was merged: its tombstone says which listing that was.
    private func fieldsOfListing(_ version: Record) throws -> Set<String> {
        let work = try WorkID(version)
        guard let tombstone = try store.record(version.id)?.record, tombstone.isDeleted,
            work.identity.identifierCount == 0, work.listings.contains(tombstone.localID)
        else { return [] }
        return [
            "entryType", "title", "author", "authors", "editor", "year", "journal", "journaltitle", "booktitle",
            "volume", "number", "pages",
        ]
    }
}
