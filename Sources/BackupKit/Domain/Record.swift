/// A record's identity in the cloud.
public struct RecordID: Hashable, Sendable {
    public let zone: String
    public let name: String

    public init(zone: String, name: String) {
        self.zone = zone
        self.name = name
    }

    // Bytes decide, as they do in the database: Swift would take two spellings of "é" for one name.
    public static func == (left: Self, right: Self) -> Bool {
        sameBytes(left.zone, right.zone) && sameBytes(left.name, right.name)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(ByteName(zone))
        hasher.combine(ByteName(name))
    }
}

/// Whether two texts are the same bytes. `==` would also accept canonically equivalent ones.
func sameBytes(_ left: String, _ right: String) -> Bool {
    var (left, right) = (left, right)
    return left.withUTF8 { left in
        right.withUTF8 { sameBytes(UnsafeRawBufferPointer(left), UnsafeRawBufferPointer($0)) }
    }
}

func sameBytes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    var index = 0
    while left.count - index >= 8 {
        let word = left.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        if word != right.loadUnaligned(fromByteOffset: index, as: UInt64.self) { return false }
        index += 8
    }
    while index < left.count {
        if left[index] != right[index] { return false }
        index += 1
    }
    return true
}

extension RecordID: Comparable, CustomStringConvertible {
    /// By the bytes of the zone, then of the name: the order of `records.jsonl`.
    public static func < (left: Self, right: Self) -> Bool {
        if !sameBytes(left.zone, right.zone) { return precedesBytewise(left.zone, right.zone) }
        return precedesBytewise(left.name, right.name)
    }

    public var description: String { "\(zone)/\(name)" }
}

/// One record with its sync facts (`docs/domain.md`).
public struct Record: Sendable, Equatable {
    public var id: RecordID
    public var type: String
    /// The id that the creating client gave: the key for deduplication.
    public var localID: String
    /// A JSON object, kept as it was written.
    public var fields: String
    /// When each field was last set, where that is known.
    public var fieldTimes: [String: Timestamp]
    public var createdAt: Timestamp
    public var modifiedAt: Timestamp
    public var deviceID: String?
    public var schemaVersion: Int
    public var isLocalOnly: Bool
    /// Set on a tombstone, which has no fields.
    public var deletedAt: Timestamp?

    public init(
        id: RecordID, type: String, localID: String, fields: String, fieldTimes: [String: Timestamp] = [:],
        createdAt: Timestamp, modifiedAt: Timestamp, deviceID: String? = nil,
        schemaVersion: Int = SchemaVersion.current, isLocalOnly: Bool = false, deletedAt: Timestamp? = nil
    ) {
        self.id = id
        self.type = type
        self.localID = localID
        self.fields = fields
        self.fieldTimes = fieldTimes
        self.createdAt = createdAt
        self.modifiedAt = modifiedAt
        self.deviceID = deviceID
        self.schemaVersion = schemaVersion
        self.isLocalOnly = isLocalOnly
        self.deletedAt = deletedAt
    }

    public var isDeleted: Bool { deletedAt != nil }

    /// The same record under an id: both its local id and its name.
    func identified(as localID: String) -> Record {
        var record = self
        record.localID = localID
        record.id = RecordID(zone: id.zone, name: localID)
        return record
    }

    /// The record, with no time later than that.
    func noNewer(than time: Timestamp) -> Record {
        var record = self
        record.modifiedAt = min(modifiedAt, time)
        record.createdAt = min(createdAt, time)
        record.deletedAt = deletedAt.map { min($0, time) }
        record.fieldTimes = fieldTimes.mapValues { min($0, time) }
        return record
    }

    /// What is left of a deleted record: identity and times, nothing personal. It keeps its creation time out too.
    /// It keeps the times of merges, and that of the version which it deletes: they show what the person knew of who deleted
    /// the record.
    public func tombstone(at time: Timestamp) -> Record {
        var known = knownTimes
        if !isDeleted {
            known[Self.takenInMark] = latestTime
            if let other = EventText.idBeside(self) { known[Self.takenInMark + other] = latestTime }
        }
        return Record(
            id: id, type: type, localID: localID, fields: "{}", fieldTimes: known, createdAt: time, modifiedAt: time,
            schemaVersion: schemaVersion, deletedAt: time)
    }

    /// The tombstone of a name that was folded into another record of the same local id. It has another local id, even where
    /// that is the name itself, in either case: whoever looks for the record must not find it deleted.
    func foldedTombstone(at time: Timestamp) -> Record {
        var tombstone = tombstone(at: time)
        let isNamedByItsID = id.name.utf8.elementsEqual(localID.utf8) { $0 | 0x20 == $1 | 0x20 }
        tombstone.localID = isNamedByItsID ? foldedName : id.name
        return tombstone
    }

    private var foldedName: String { "folded:\(id.name)" }

    /// Whether this is the tombstone of a name that was folded into another record, which goes on to have the local id.
    func isFoldedName(of record: Record) -> Bool {
        isDeleted && !record.isDeleted && id == record.id
            && (sameBytes(localID, foldedName) || sameBytes(localID, record.foldedTombstone(at: modifiedAt).localID))
    }

    /// Whether it is a tombstone in which somebody has left more than a tombstone says.
    var hasRemains: Bool {
        isDeleted && (fields != "{}" || fieldTimes.count > knownTimes.count || deviceID != nil)
    }

    /// The last time that anything about the record was set.
    var latestTime: Timestamp { fieldTimes.values.reduce(modifiedAt, max) }

    /// Throws where a line says that a record is deleted, and goes on to hold it: nobody knows which of both is true.
    func refuseRemains() throws {
        guard isDeleted, !sameBytes(fields, withoutRemains().fields) else { return }
        throw BackupError(.damaged, "\(id) is deleted and still holds data")
    }

    /// A tombstone without whatever somebody left in it; other records as they are.
    func withoutRemains() -> Record {
        guard let deletedAt else { return self }
        var bare = tombstone(at: modifiedAt)
        (bare.createdAt, bare.deletedAt) = (deletedAt, deletedAt)
        return bare
    }
}

/// The types that have a file format of their own, and where their records live.
public enum RecordType {
    public static let publication = "Publication"
    /// What stands between publications in a `.bib` file: macros, preamble, comments, text.
    public static let bibliographyPart = "BibliographyPart"
    static let ofBibliography = [publication, bibliographyPart]
    public static let note = "Note"
    /// Two works that wait for a decision (`Conflict`).
    public static let conflict = "Conflict"
    /// What was decided about a conflict.
    static let decisionField = "decision"
    public static let event = "PuppyEvent"

    public static let libraryZone = "Library"
    public static let eventZone = "OllieEvents"

    /// Whether people count records of this type as their data. The text between the entries of a bibliography and the
    /// conflicts of a library belong to the library.
    static func isCounted(_ type: String) -> Bool { type != bibliographyPart && type != conflict }
}

/// What a person can choose to export or restore.
public enum Kind: String, Sendable, CaseIterable {
    case publications, notes, events, records, attachments, settings

    /// The kind that a record of `type` counts as.
    public init(recordType type: String) {
        switch type {
        case RecordType.publication, RecordType.bibliographyPart, RecordType.conflict: self = .publications
        case RecordType.note: self = .notes
        case RecordType.event: self = .events
        default: self = .records
        }
    }
}

/// Versions of the apps' schemas.
public enum SchemaVersion {
    public static let first = 100
    public static let manuscripts = 110
    public static let annotations = 120
    public static let current = annotations
    static let known = [first, manuscripts, annotations]

    /// How data of `version` stands to this tool.
    public enum Verdict: Sendable, Equatable {
        case current
        case needsMigration(from: Int)
        case newerThanApp(Int)
        case incompatible(Int)
    }

    public static func check(_ version: Int) -> Verdict {
        if version == current { return .current }
        if version > current { return .newerThanApp(version) }
        return known.contains(version) ? .needsMigration(from: version) : .incompatible(version)
    }
}
