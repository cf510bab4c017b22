/// The ids of a publication that arrived without one. The cite key is not in the first of them: it is a label, and strangers
/// share it.
///
/// Each id is made when somebody asks for it, and once.
final class WorkID {
    let identity: WorkIdentity
    /// The ids that the work may have, the best first: by each of its identifiers, by title, authors and year, by its text.
    private(set) lazy var all =
        identity.evidence.map { DeterministicID.make(hasher, RecordType.publication, "work", $0) }
        + [DeterministicID.make(hasher, RecordType.publication, "text", identity.text)]
    let fields: [Field]
    private let hasher: SHA256Hasher

    init(_ fields: [Field], _ hasher: SHA256Hasher = SHA256Hasher()) {
        (identity, self.fields, self.hasher) = (WorkIdentity(fields), fields, hasher)
    }

    convenience init(_ record: Record) throws { self.init(try Fields.parse(record.fields)) }

    /// The id of a publication like which none is known.
    var first: String { all[0] }

    /// The first id of the entry that a pen has written; nil where only its whole text says what it is.
    static func first(_ pen: borrowing JSONPen, _ hasher: SHA256Hasher) -> String? {
        WorkIdentity(pen).firstEvidence.map {
            DeterministicID.make(hasher, RecordType.publication, "work", $0)
        }
    }

    /// Of a work that is listed under a second key: each listing is a publication of its own.
    var listing: String { listings[0] }

    /// What the listing may be called, whichever identifier was known when it got its id.
    /// Where no identifier says which work it is, its place does: of two editorials one may be deleted. An ISBN may be that
    /// of a set, and the volume says which book it is.
    private(set) lazy var listings = {
        let (identifiers, place) = (identity.identifierCount, identity.place)
        let (isbns, volume) = (identity.identifiers(.isbn).count, identity.volume)
        return all.enumerated().map { number, id in
            let more = number >= identifiers ? place : number >= identifiers - isbns ? volume : ""
            return more.isEmpty
                ? DeterministicID.make(hasher, RecordType.publication, "listing", id, identity.key)
                : DeterministicID.make(hasher, RecordType.publication, "listing", id, identity.key, more)
        }
    }()

    /// What version 0.1.0 made of the cite key alone.
    private(set) lazy var legacy = Self.legacy(key: identity.key)

    /// Of one more entry of that key, by its text and its number among equal ones.
    func twin(_ number: Int = 1) -> String {
        DeterministicID.make(hasher, RecordType.publication, identity.key, digest, String(number))
    }

    private lazy var digest = SHA256Digest.of(Fields.text(fields.filter { $0.name != "linkedFiles" })).hex

    /// What a publication may be called, the best first: its text comes after its listing, which others may have in other words.
    var ranked: [String] { all.count > 1 ? all.dropLast() + [listing, all[all.count - 1]] : all + [listing] }

    /// The ids that the publication may have where `other` has the one that it would have: its own listing of the same work,
    /// or another id of another work.
    func ids(beside other: Record) throws -> [String] {
        let isSame = try !other.isDeleted && identity.verdict(WorkIdentity(Fields.parse(other.fields))) == .same
        return (isSame ? [listing] : ranked) + [twin()]
    }

    /// Whether a living record is the same work under another key.
    func isListed(as other: Record) throws -> Bool {
        guard !other.isDeleted else { return false }
        let other = try WorkIdentity(Fields.parse(other.fields))
        return other.key != identity.key && other.verdict(identity) == .same
    }

    static func legacy(key: String) -> String { DeterministicID.make(RecordType.publication, key) }

    /// All ids that an import may have made of what the entry says now, but for a further entry that is equal to it.
    var made: [String] { all + listings + [legacy, twin()] }

    /// Whether an import made the id of what the entry says now, and for no second entry that is equal to it.
    func made(_ id: String) -> Bool { all.contains(id) || id == legacy || listings.contains(id) || id == twin() }

    /// The same, or of what it said once: an edit changes the texts that some ids are made of. Of equal entries no file is
    /// known to have more than a few.
    func mayHaveMade(_ id: String) -> Bool {
        made(id) || DeterministicID.isMade(id) && !(2...8).contains { sameBytes(id, twin($0)) }
    }
}

/// Whether two records under one id are versions of one record.
enum WorkLineage {
    static func isOneRecord(_ known: Record, _ incoming: Record) throws -> Bool {
        guard known.type == RecordType.publication, incoming.type == known.type else { return true }
        switch (known.isDeleted, incoming.isDeleted) {
        case (true, true): return known.localID == incoming.localID || !saysListing(known) || !saysListing(incoming)
        case (true, false): return try isTombstone(known, of: incoming)
        case (false, true): return try isTombstone(incoming, of: known)
        case (false, false): return try isOneWork(known, incoming)
        }
    }

    private static func isOneWork(_ known: Record, _ incoming: Record) throws -> Bool {
        if sameBytes(known.fields, incoming.fields) { return true }
        let (mine, theirs) = (try WorkID(known), try WorkID(incoming))
        let (myKey, theirKey) = (mine.identity.key, theirs.identity.key)
        // Archives and Git give all the files that they write one time: two volumes of a set look like one record and its edit.
        let isRelated =
            areRelated(known, incoming)
            && (!mine.identity.isElsewhere(than: theirs.identity)
                || [known, incoming].contains { $0.hasCorrected(mine.identity.otherPlaces(than: theirs.identity)) })
        let ids = [known.localID, incoming.localID]
        switch mine.identity.verdict(theirs.identity, isRelated: isRelated) {
        case .different: return false
        // An app's own id says it. One that an import made does as long as both still say what it was made of, but an id
        // of a cite key proves nothing.
        case .unknown:
            return isRelated || !DeterministicID.isMade(known.localID)
                || !ids.contains { $0 == mine.legacy || $0 == theirs.legacy || !mine.made($0) || !theirs.made($0) }
        // One work that two files list under two keys; nobody renames either of them silently.
        case .same:
            if myKey == theirKey || !ids.contains(where: { mine.all.contains($0) || theirs.all.contains($0) }) {
                return true
            }
            if known.wasRenamed(from: theirKey) || incoming.wasRenamed(from: myKey) { return true }
            // Their files may have the same time. Only a key that was set by itself tells that one of them was renamed.
            return try isRelated
                && [known, incoming].contains { try $0.isKeySetAlone(Fields.parse($0.fields)) }
        }
    }

    /// Two records that were made at the same moment, and at least one of which was edited since. Two that nobody edited and
    /// that differ are no versions of each other: their files just have the same time.
    private static func areRelated(_ known: Record, _ incoming: Record) -> Bool {
        known.createdAt == incoming.createdAt
            && (known.modifiedAt > known.createdAt || incoming.modifiedAt > incoming.createdAt)
    }

    /// A tombstone that has another local id than its name says which work was deleted under that name.
    private static func isTombstone(_ tombstone: Record, of record: Record) throws -> Bool {
        if sameBytes(tombstone.localID, tombstone.id.name) || sameBytes(tombstone.localID, record.localID) {
            return true
        }
        // Of fields that nobody can read nothing is known but the name.
        guard let work = readable(record) else { return true }
        let deleted = [tombstone.localID] + tombstone.earlierListings
        return work.listings.contains { deleted.contains($0) } || !work.made(record.localID)
    }

    /// A tombstone that says which listing was deleted is a record of its own beside a record with that listing's id: another
    /// tombstone, or a publication that is newer. An older publication is what was deleted.
    static func areBesideEachOther(_ one: Record, _ other: Record) -> Bool {
        guard one.type == RecordType.publication, one.id != other.id else { return false }
        if one.isDeleted && other.isDeleted { return saysListing(one) || saysListing(other) }
        guard let (record, tombstone) = Record.livingAndDead(one, other) else { return false }
        return saysListing(tombstone) && record.latestTime > tombstone.latestTime
    }

    /// Whether the tombstone says which listing of its work was deleted.
    static func saysListing(_ tombstone: Record) -> Bool {
        !sameBytes(tombstone.localID, tombstone.id.name)
    }

    private static func readable(_ record: Record) -> WorkID? {
        do { return try WorkID(record) } catch { return nil }
    }

    /// The tombstone of a record. Where an import made the record's id, it says which listing of which work was deleted: by
    /// the name alone it could be a stranger's, with the same key or under another. So it does where the record was edited
    /// since, unless it may be the second of two equal entries (`isOnlyListing`): the other one is not deleted.
    static func tombstone(
        of record: Record, at time: Timestamp, isOnlyListing: (WorkID) throws -> Bool = { _ in false }
    ) rethrows -> Record {
        var tombstone = record.tombstone(at: time)
        // What is kept on one device only has a name of its own; the id is that of the cloud's record, which may be another
        // work by now.
        guard record.type == RecordType.publication, !record.isDeleted,
            record.localID == record.id.name || record.isLocalOnly, let work = readable(record)
        else { return tombstone }
        let saysListing = record.localID == work.legacy || work.all.contains(record.localID)
        let wasEdited = DeterministicID.isMade(record.localID) && !work.made(record.localID)
        if try saysListing || wasEdited && isOnlyListing(work) { tombstone.localID = work.listing }
        return tombstone
    }
}

extension Record {
    /// Whether these fields were set by themselves, after the record was made: an edit says what it has changed, and a whole
    /// entry that came later has set them all.
    fileprivate func hasCorrected(_ names: [String]) -> Bool {
        func time(_ name: String) -> Timestamp { fieldTimes[name] ?? modifiedAt }
        let others = ["title", "author", "editor"].map(time).min() ?? createdAt
        return !names.isEmpty && names.allSatisfy { time($0) > createdAt && time($0) > others }
    }
}
