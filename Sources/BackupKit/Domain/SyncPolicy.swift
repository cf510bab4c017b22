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

    /// The name under which a record that took in another one notes when. A time only: no record has a field of this name.
    private static let takenIn = "(merged)"

    /// Notes that the record took in another one at `time`, which was deleted then.
    mutating func noteTakenIn(at time: Timestamp) {
        fieldTimes[Self.takenIn] = max(time, fieldTimes[Self.takenIn] ?? .distantPast)
    }

    /// Whether the record took in another one since both sides knew it as `base`. Who deleted it meanwhile did not know of
    /// the other one, which would be lost with it.
    func hasTakenIn(since base: Ancestor?) -> Bool {
        guard !isDeleted, let time = fieldTimes[Self.takenIn] else { return false }
        return time > base?.fieldTimes[Self.takenIn] ?? .distantPast
    }

    /// The record, alive later than a tombstone of it.
    func outliving(_ tombstone: Record) throws -> Record {
        try latestTime > tombstone.modifiedAt ? self : keptAlive(at: tombstone.modifiedAt.next)
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

extension Timestamp {
    var next: Timestamp { Timestamp(milliseconds: milliseconds + 1) }
}
