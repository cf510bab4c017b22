/// What a restore does with records that were deleted since, and how it stands to the hub.
public enum SyncPolicy: String, Sendable, CaseIterable {
    /// Tombstones that are newer than the backup win.
    case honor
    /// Everything that the backup has alive is alive everywhere afterwards.
    case resurrect
    /// What the store does not have just so is put aside on this device, for somebody to look at.
    case quarantine
}

/// A record that somebody wants alive whatever was deleted has a time of its own that is later than that of every field.
/// So it outlives every tombstone from before that moment, also those that nobody here has heard of, and yet loses no
/// field to it that others have written later.
extension Record {
    /// Alive for sure, with the fields as old as they are. `known` is the latest time that is known of it anywhere.
    func keptAlive(at now: Timestamp, known: Timestamp = .distantPast) throws -> Record {
        var record = self
        for field in try Fields.parse(fields) { record.fieldTimes[field.name] = fieldTimes[field.name] ?? modifiedAt }
        record.modifiedAt = max(now, max(latestTime, known).next)
        return record
    }

    /// How the names begin under which a record notes when it took in which others, by their local ids; its tombstone
    /// keeps them. Times only: no record has a field of such a name.
    static let takenInMark = "(merged) "

    /// Notes that the record took in `other` at `time`, which was deleted then, with all that `other` had taken in.
    mutating func noteTakenIn(_ other: Record, at time: Timestamp) {
        fieldTimes.merge(other.takenIn) { max($0, $1) }
        fieldTimes.merge(other.fieldTimes.filter { $0.key.hasPrefix(Self.correctedMark) }) { max($0, $1) }
        fieldTimes[Self.takenInMark + other.localID] = time
    }

    private static let correctedMark = "(corrected) "

    /// Notes that the record took in `other` at `time` because it is the same entry of a file, with a correction. No two
    /// entries were merged.
    mutating func noteCorrection(of other: Record, at time: Timestamp) {
        noteTakenIn(other, at: time)
        fieldTimes[Self.correctedMark + other.localID] = time
        for mark in [Self.takenInMark, Self.correctedMark] { fieldTimes[mark + localID] = nil }
    }

    /// The local ids of what the record was before corrections.
    var idsCorrected: Set<String> {
        Set(marked(Self.correctedMark).filter { $0.time == fieldTimes[Self.takenInMark + $0.id] }.map(\.id))
    }

    /// The local ids of what the record has taken in.
    var idsTakenIn: [String] { marked(Self.takenInMark).map(\.id) }

    /// What is noted about other records under a mark, with their local ids.
    private func marked(_ mark: String) -> [(id: String, name: String, time: Timestamp)] {
        fieldTimes.filter { isAboutAnother($0.key, mark) }
            .map { (String($0.key.dropFirst(mark.count)), $0.key, $0.value) }
    }

    /// When it took each of them in, by its mark and their local id.
    var takenIn: [String: Timestamp] { fieldTimes.filter { isAboutAnother($0.key, Self.takenInMark) } }

    /// What a record took in may once have taken in that very record, which is alive again since. It is no other record.
    private func isAboutAnother(_ name: String, _ mark: String) -> Bool {
        name.hasPrefix(mark) && !sameBytes(name, mark) && !sameBytes(name, mark + localID)
    }

    /// Which of two versions is deleted; nil where both are, or none.
    static func livingAndDead(_ one: Record, _ other: Record) -> (living: Record, dead: Record)? {
        guard one.isDeleted != other.isDeleted else { return nil }
        return one.isDeleted ? (other, one) : (one, other)
    }

    static let keptMark = "(kept) "

    /// Notes that a decision at `time` deleted `other` because this record stays, also instead of all that `other` stood for.
    /// Times only, as above.
    mutating func noteKept(insteadOf other: Record, at time: Timestamp) {
        for (id, _, earlier) in other.marked(Self.keptMark) + other.marked(Self.takenInMark) {
            noteKept(insteadOf: id, at: earlier)
        }
        fieldTimes[Self.keptMark + other.localID] = time
    }

    /// The same of one local id. A later time that is noted already stays.
    mutating func noteKept(insteadOf id: String, at time: Timestamp) {
        fieldTimes.merge([Self.keptMark + id: time]) { max($0, $1) }
    }

    /// The local ids of records that a decision deleted because this one stays, and when: those decisions that another version
    /// of this record knows nothing of.
    func keptInstead(unknownTo version: Record? = nil) -> [String: Timestamp] {
        guard !isDeleted else { return [:] }
        let unknown = marked(Self.keptMark).filter { $0.time > version?.fieldTimes[$0.name] ?? .distantPast }
        return Dictionary(unknown.map { ($0.id, $0.time) }, uniquingKeysWith: max)
    }

    /// The local ids of records that a decision put into this one, or deleted because this one stays, while `other`, a version
    /// of this record, was decided on later without a word of that.
    func takenOver(beforeDecisionOf other: Record) -> [String: Timestamp] {
        guard !isDeleted, !other.isDeleted, let decidedAt = other.decidedAt else { return [:] }
        let taken = (marked(Self.takenInMark) + marked(Self.keptMark)).filter {
            $0.time < decidedAt && $0.time > other.fieldTimes[$0.name] ?? .distantPast
        }
        return Dictionary(taken.map { ($0.id, $0.time) }, uniquingKeysWith: max)
    }

    /// When a decision put a record of that local id into this one, or kept this one instead.
    func succeeded(_ localID: String) -> Timestamp? {
        [Self.takenInMark, Self.keptMark].compactMap { fieldTimes[$0 + localID] }.max()
    }

    /// What a tombstone keeps: the times of merges and of decisions that kept the record, under the bare mark the latest time
    /// of the version that was deleted, which listings the record was before, and what stood beside it.
    var knownTimes: [String: Timestamp] {
        let marks = [Self.takenInMark, Self.keptMark] + (isDeleted ? [Self.listedMark, Self.besideMark] : [])
        return fieldTimes.filter { time in marks.contains { time.key.hasPrefix($0) } }
    }

    /// The latest time of the version that this tombstone deletes, where it says that.
    private var timeDeleted: Timestamp? { isDeleted ? fieldTimes[Self.takenInMark] : nil }

    /// Whether this tombstone says which version was deleted, and that one was older than `version`: whoever deleted it had
    /// not heard of all that `version` says.
    func hadNotHeard(of version: Record) -> Bool { timeDeleted.map { version.latestTime > $0 } ?? false }

    /// Whether this tombstone says which version was deleted, and that one was not older than `version`.
    func hadHeard(of version: Record) -> Bool { timeDeleted.map { version.latestTime <= $0 } ?? false }

    /// Whether the record took in another one that `version` knows nothing of: with the older version, or with the delete
    /// of one, the other record would be lost.
    func hasTakenIn(unknownTo version: Record) -> Bool {
        !isDeleted && takenIn.contains { $0.value > version.fieldTimes[$0.key] ?? .distantPast }
    }

    static let renamedMark = "(renamed) "

    /// The cite keys that decisions have taken from the publication.
    var keysBefore: [String] { marked(Self.renamedMark).map(\.id) }

    /// Notes that a decision about a conflict gave the publication another cite key at `time`. Times only, as above.
    mutating func noteRenamed(from key: String, at time: Timestamp) { fieldTimes[Self.renamedMark + key] = time }

    func wasRenamed(from key: String) -> Bool { fieldTimes[Self.renamedMark + key] != nil }

    private static let decidedMark = "(decided)"

    /// When a decision was the last to keep the record.
    var decidedAt: Timestamp? { fieldTimes[Self.decidedMark] }

    /// The record with a cite key that is as old as a decision, also where it stays as it was: a decision of another device
    /// about the same two works gives it another key only when it is later.
    func decided(at time: Timestamp) -> Record {
        var record = self
        let time = max(time, fieldTimes[WorkIdentity.keyField] ?? time)
        record.fieldTimes[WorkIdentity.keyField] = time
        record.fieldTimes[Self.decidedMark] = time
        return record
    }

    /// Whether its cite key is as old as it says because of a decision, which may have left it as it was.
    var isKeyDecided: Bool { fieldTimes[WorkIdentity.keyField].map { $0 == fieldTimes[Self.decidedMark] } ?? false }

    /// Whether the cite key was set at another time than all that the entry says; an import sets them together.
    func isKeySetAlone(_ fields: [Field]) -> Bool {
        func time(_ name: String) -> Timestamp { fieldTimes[name] ?? modifiedAt }
        let set = time(WorkIdentity.keyField)
        return set > createdAt && !fields.contains { !WorkIdentity.isNoText($0.name) && time($0.name) == set }
    }

    /// Whether a decision gave this version its cite key, and the other one still has the key of before, by no decision: then
    /// that is no newer, however late its file was saved.
    func isRenamed(_ fields: [Field], since other: Record, _ otherFields: [Field]) -> Bool {
        guard type == RecordType.publication, let key = Fields.string(WorkIdentity.keyField, in: fields),
            let before = Fields.string(WorkIdentity.keyField, in: otherFields), !sameBytes(key, before)
        else { return false }
        return wasRenamed(from: before) && !other.wasRenamed(from: key) && !other.isKeySetAlone(otherFields)
            && !other.hasTakenIn(unknownTo: self)
    }

    /// Of two tombstones the later one, which knows what either knew.
    func joined(withTombstone other: Record) -> Record {
        var later = other.modifiedAt > modifiedAt ? other : self
        later.fieldTimes = knownTimes.merging(other.knownTimes) { max($0, $1) }
        // Each says which listing it deletes.
        if type == RecordType.publication { later.noteEarlierListings([localID, other.localID]) }
        return later
    }

    /// The record, alive later than a tombstone of it.
    func outliving(_ tombstone: Record) throws -> Record {
        try latestTime > tombstone.modifiedAt ? self : keptAlive(at: tombstone.modifiedAt.next)
    }

    /// This version as one that was written at `time` over another: whatever it says otherwise, or says to be newer, is of then.
    func written(at time: Timestamp, over other: Record) throws -> Record {
        let (mine, theirs) = (try Fields.parse(fields), Fields.values(try Fields.parse(other.fields)))
        var record = self
        for field in mine {
            let (said, known) = (fieldTimes[field.name] ?? modifiedAt, other.fieldTimes[field.name] ?? other.modifiedAt)
            let isSame = try theirs[ByteName(field.name)].map { try Fields.same($0, field.value) } ?? false
            record.fieldTimes[field.name] = isSame && said <= known ? said : time
        }
        let names = Set(mine.map { ByteName($0.name) })
        for name in theirs.keys where !names.contains(name) { record.fieldTimes[name.text] = time }
        // What it notes about other records.
        for (name, said) in fieldTimes
        where !names.contains(ByteName(name)) && said > other.fieldTimes[name] ?? .distantPast {
            record.fieldTimes[name] = time
        }
        record.modifiedAt = time
        return record
    }

    /// Alive for sure, and every field newer than all that is known.
    func restored(at now: Timestamp, known: Timestamp) throws -> Record {
        var record = self
        record.deletedAt = nil
        record.isLocalOnly = false
        record.modifiedAt = max(now, max(latestTime, known).next.next)
        let before = Timestamp(milliseconds: record.modifiedAt.milliseconds - 1)
        record.fieldTimes = [:]
        for field in try Fields.parse(fields) { record.fieldTimes[field.name] = before }
        return record
    }

    /// Whether `keptAlive` has been here, or `restored`, and nobody has written since.
    func isKeptAlive() throws -> Bool {
        let present = try Fields.parse(fields)
        guard !present.isEmpty else {
            return createdAt < modifiedAt && fieldTimes.values.allSatisfy { $0 < modifiedAt }
        }
        return present.allSatisfy { fieldTimes[$0.name].map { $0 < modifiedAt } ?? false }
    }
}

extension Record {
    private static let listedMark = "(listed) "

    /// Notes in a tombstone which listings the record was before the last one.
    mutating func noteEarlierListings(_ listings: [String]) {
        for listing in listings where listing != localID { fieldTimes[Self.listedMark + listing] = modifiedAt }
    }

    var earlierListings: [String] { marked(Self.listedMark).map(\.id) }

    private static let besideMark = "(beside) "

    /// Notes in a tombstone that another record was alive beside the deleted one, which may have the listing that it deletes.
    mutating func noteBeside(_ localID: String) {
        if localID != self.localID { fieldTimes[Self.besideMark + localID] = modifiedAt }
    }

    /// The local ids of what stood beside the deleted record.
    var idsBeside: [String] { marked(Self.besideMark).map(\.id) }

    /// Whether this is the tombstone of another record that stood beside this one: it deletes only the other one.
    func spares(_ record: Record) -> Bool {
        isDeleted && record.id != id && fieldTimes[Self.besideMark + record.localID] != nil
    }
}

extension Timestamp {
    var next: Timestamp { Timestamp(milliseconds: milliseconds + 1) }
    var previous: Timestamp { Timestamp(milliseconds: max(milliseconds, .min + 1) - 1) }
}
