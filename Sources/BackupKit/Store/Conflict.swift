/// Two works that wait for a decision of a person: two publications with one cite key, or two versions of one file.
///
/// A conflict is a record in the zone of its works, named after them. So several devices that find the same conflict make
/// the same record, it travels with a sync, is in backups, and an undo treats it like any other record. It is never taken
/// away: it waits as long as both works are there and still clash, and nobody has decided to keep both.
public struct Conflict: Sendable, Equatable {
    /// What people type; each device gives its own numbers.
    public let id: Int64
    public let kind: String
    /// The cite key, or the path.
    public let subject: String
    /// A local id, or a path. The device that found the conflict has said which one was there first.
    public let existing: String
    public let incoming: String
    public let detectedAt: Timestamp
    /// Whether somebody has decided, and both may still be there: to keep both, or which of two files stays. Of two files
    /// it counts as long as they are those (`Store.isSettled`).
    public let isDecided: Bool
    /// What somebody decided about two files, be it carried out on this device or not.
    let fileDecision: FileDecision?
    /// Whether two devices have decided differently about two files, and what counts is not carried out yet.
    let isContested: Bool
    /// Whether two files may be versions of one. Else two devices had nothing in common but the name.
    let isOfOneFile: Bool
    let recordID: RecordID

    public var isAboutAssets: Bool { kind != Self.publication }

    static let publication = "publication"
    static let attachment = "attachment"
    private static let (kindField, worksField, decisionField) = ("kind", "works", RecordType.decisionField)
    /// What stands in the fields of a record that somebody has decided.
    static let decisionMark = "\"\(RecordType.decisionField)\""
    private static let (contestedField, unrelatedField) = ("contested", "unrelated")
    private static let keepBoth = FileDecision.Choice.keepBoth.rawValue
    static let localPrefix = "local:"

    /// Nil for a record that does not say what a conflict says. The number and the subject are for people.
    init?(
        _ record: Record, number: Int64 = 0, subject: (String, [String]) throws -> String = { _, works in works[0] }
    ) throws {
        let fields: [Field]
        do { fields = try Fields.parse(record.fields) } catch is BackupError { return nil }
        let works = Fields.strings(Self.worksField, in: fields)
        guard let kind = Fields.string(Self.kindField, in: fields), works.count == 2 else { return nil }
        (id, self.kind, existing, incoming) = (number, kind, works[0], works[1])
        self.subject = try subject(kind, works)
        detectedAt = record.createdAt
        let decision = fields.first { $0.name == Self.decisionField }?.value
        fileDecision = decision.flatMap { FileDecision($0) }
        isDecided = fileDecision != nil || Fields.string(Self.decisionField, in: fields) == Self.keepBoth
        isContested = fields.contains { $0.name == Self.contestedField }
        isOfOneFile = !fields.contains { $0.name == Self.unrelatedField }
        recordID = record.id
    }

    /// The same record for the same two works, whoever of them was there first.
    static func record(
        kind: String, existing: String, incoming: String, zone: String, isLocalOnly: Bool, ofOneFile: Bool = true,
        at time: Timestamp
    ) -> Record {
        let kind = kind == publication ? kind : attachment
        let name = "conflict-\(DeterministicName.of([kind] + [existing, incoming].sorted(by: precedesBytewise)))"
        // The record of other devices, should there be one, is not ours to stand for.
        let id = RecordID(zone: zone, name: isLocalOnly ? localPrefix + name : name)
        let fields =
            [
                Field(kindField, .string(kind)), Field(worksField, .array([.string(existing), .string(incoming)])),
            ] + (ofOneFile ? [] : [Field(unrelatedField, true)])
        return Record(
            id: id, type: RecordType.conflict, localID: id.name, fields: Fields.text(fields), createdAt: time,
            modifiedAt: time, isLocalOnly: isLocalOnly)
    }

    /// The records that can say it of two works: everybody's, and this device's own.
    static func ids(kind: String, _ first: String, _ second: String, zone: String) -> [RecordID] {
        [false, true].map { isLocalOnly in
            record(
                kind: kind, existing: first, incoming: second, zone: zone, isLocalOnly: isLocalOnly, at: .distantPast
            ).id
        }
    }

    /// The conflict of two files that have other names, or of two works that have other ids; nil where both have one.
    static func following(
        _ record: Record, files: [ByteName: String] = [:], works ids: [String: String] = [:]
    ) throws -> Record? {
        guard !record.isDeleted, let conflict = try Conflict(record) else { return record }
        let works = [conflict.existing, conflict.incoming].map { work in
            (conflict.isAboutAssets ? files[ByteName(work)] : ids[work]) ?? work
        }
        if sameBytes(works[0], works[1]) { return nil }
        let new = Self.record(
            kind: conflict.kind, existing: works[0], incoming: works[1], zone: record.id.zone,
            isLocalOnly: record.isLocalOnly, at: record.createdAt)
        if new.id == record.id { return record }
        var result = record.identified(as: new.id.name)
        let names = Field(worksField, .array(works.map { .string($0) }))
        result.fields = Fields.text(try Fields.parse(record.fields).map { $0.name == worksField ? names : $0 })
        return result
    }

    static func isUndecided(_ record: Record) -> Bool {
        record.type == RecordType.conflict && !record.isDeleted && !record.fields.contains(decisionMark)
    }

    /// The record with a field that is set, or away, since a time; all others are as old as they were.
    private static func setting(_ name: String, _ value: JSON?, in record: Record, at time: Timestamp) throws -> Record
    {
        let others = try Fields.parse(record.fields).filter { $0.name != name }
        var new = try record.edited(others + (value.map { [Field(name, $0)] } ?? []), at: time)
        // Saying the same again is saying it later.
        new.fieldTimes[name] = value == nil ? time : nil
        return new
    }

    /// The record once somebody has decided to keep both publications.
    static func keptBoth(_ record: Record, at time: Timestamp) throws -> Record {
        try setting(decisionField, .string(keepBoth), in: record, at: time)
    }

    /// The record once somebody has decided about its files.
    static func decided(_ record: Record, _ decision: FileDecision, at time: Timestamp) throws -> Record {
        try setting(decisionField, decision.json, in: record, at: time)
    }

    /// The record once a file is back that a decision had removed.
    static func reopened(_ record: Record, at time: Timestamp) throws -> Record {
        try setting(decisionField, nil, in: record, at: time)
    }

    static func fileDecision(in fields: String) throws -> FileDecision? {
        try Fields.parse(fields).first { $0.name == decisionField }.flatMap { FileDecision($0.value) }
    }

    /// Whether two devices have decided differently about the files of a conflict, and the hub had not heard of this one's
    /// decision.
    static func isContested(_ local: Record, _ hub: Record, base: Ancestor?) throws -> Bool {
        guard hub.type == RecordType.conflict, !local.isDeleted, !hub.isDeleted,
            let mine = try fileDecision(in: local.fields), let theirs = try fileDecision(in: hub.fields),
            !mine.agrees(with: theirs)
        else { return false }
        guard let base, try fileDecision(in: base.fields) != nil else { return true }
        let decidedAt = local.fieldTimes[decisionField] ?? local.modifiedAt
        return decidedAt > base.fieldTimes[decisionField] ?? base.modifiedAt
    }

    /// The files and links of both decisions have met, and the one that counts has still to be carried out.
    static func contested(_ record: Record, at time: Timestamp) throws -> Record {
        try setting(contestedField, true, in: record, at: time)
    }

    static func settled(_ record: Record, at time: Timestamp) throws -> Record {
        try setting(contestedField, nil, in: record, at: time)
    }
}

private enum DeterministicName {
    static func of(_ parts: [String]) -> String {
        SHA256Digest.of(parts.map { "\($0.utf8.count):\($0)" }.joined()).hex.prefix(32).description
    }
}

extension Record {
    /// The kind that a record counts as. What waits for a decision about two files goes with the files.
    public var kind: Kind {
        guard type == RecordType.conflict, let conflict = try? Conflict(self) else { return Kind(recordType: type) }
        return conflict.isAboutAssets ? .attachments : .publications
    }
}
