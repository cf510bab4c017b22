/// Something that verify, restore or doctor noticed. Findings are data: one renderer prints them, one writes JSON, and
/// counts and exit codes derive from the list.
public struct Finding: Sendable, Equatable, Hashable {
    public enum Severity: String, Sendable, CaseIterable {
        /// Worth knowing: what was asked for was done, and will be as expected. Exit code 0. Only `Code.notes` may be.
        case note
        /// Needs attention; nothing is lost.
        case warning
        /// A rule is broken that must be kept.
        case error
        /// Damage: bytes are missing or are not what they should be.
        case damage
    }

    /// How many of one kind are told one by one: a file of nothing but bad lines must not fill the memory.
    static let toldOneByOne = 1000

    public let code: Code
    public let severity: Severity
    /// The entry, file or record it is about.
    public let subject: String
    public let message: String
    public let remedy: String?

    public init(_ code: Code, _ severity: Severity, _ subject: String, _ message: String, remedy: String? = nil) {
        self.code = code
        self.severity = severity == .note && !Code.notes.contains(code) ? .warning : severity
        self.subject = subject
        self.message = message
        self.remedy = remedy
    }

    func advising(_ remedy: String) -> Finding { Finding(code, severity, subject, message, remedy: remedy) }

    /// What mends it, and what else can be done.
    func advice(_ other: String) -> String { remedy.map { "\($0); \(other)" } ?? other }

    /// What is wrong with what, where there is one line for it.
    public var sentence: String { "\(subject): \(message)" }

    /// The same with what to do next.
    public var advisedSentence: String { ([sentence] + remedyLines).joined(separator: "; ") }

    /// The remedy of a suspicious loss has a line for each thing to do. A line break in any other came from a name.
    public var remedyLines: [String] {
        guard let remedy else { return [] }
        return code == .suspiciousLoss ? remedy.split(separator: "\n").map(String.init) : [remedy]
    }

    /// Stable names for scripts; listed in `docs/formats.md`.
    public enum Code: String, Sendable, CaseIterable {
        case entryDamaged = "entry-damaged"
        case entryMissing = "entry-missing"
        case entryUnexpected = "entry-unexpected"
        case entryRefused = "entry-refused"
        case digestMismatch = "digest-mismatch"
        case sizeMismatch = "size-mismatch"
        case countMismatch = "count-mismatch"
        case contentMismatch = "content-mismatch"
        case archiveDamaged = "archive-damaged"
        case trailingData = "trailing-data"
        case manifestMissing = "manifest-missing"
        case manifestInvalid = "manifest-invalid"
        case unreadable = "unreadable"
        case malformed = "malformed"
        case weakChecksum = "weak-checksum"
        case oversize = "oversize"
        case willNotSync = "will-not-sync"
        case unlinked = "unlinked"
        case linkMissing = "link-missing"
        case leftOut = "left-out"
        case notAskedFor = "not-asked-for"
        case keptAsWritten = "kept-as-written"
        case untidy = "untidy"
        case skipped = "skipped"
        case conflict = "conflict"
        case clockSkew = "clock-skew"
        case protected = "protected"
        case newerSchema = "newer-schema"
        case defaultFilled = "default-filled"
        case schemaInvalid = "schema-invalid"
        case schemaUnique = "schema-unique"
        case schemaNoDefault = "schema-no-default"
        case schemaNoInverse = "schema-no-inverse"
        case schemaCloudKit = "schema-cloudkit"
        case schemaRemoved = "schema-removed"
        case schemaRenamed = "schema-renamed"
        case schemaTypeChanged = "schema-type-changed"
        case schemaNotAdditive = "schema-not-additive"
        case schemaVersion = "schema-version"
        case futureSnapshot = "future-snapshot"
        case snapshotOutOfOrder = "snapshot-out-of-order"
        case suspiciousLoss = "suspicious-loss"
        case recordDamaged = "record-damaged"
        case recordChanged = "record-changed"
        case storeDamaged = "store-damaged"
        case indexMismatch = "index-mismatch"
        case tombstoneData = "tombstone-data"
        case queueStuck = "queue-stuck"

        /// The codes that may be a note. All others tell of something that was asked for and not done, or that will not be
        /// as expected: they are warnings at least, and the command ends with 3.
        static let notes: Set<Code> = [
            // An export holds it; only a hub refuses it.
            .willNotSync,
            // The documented default of --only leaves it out of a folder.
            .notAskedFor,
            // The bytes are all there, mistakes included.
            .keptAsWritten, .entryUnexpected, .untidy,
            // --schema asks for it.
            .defaultFilled,
            // A sync keeps a time that is ahead of this device's clock.
            .clockSkew,
            // What a comparison of schemas found to be in order.
            .schemaInvalid, .schemaVersion,
        ]
    }
}

extension [Finding] {
    /// One of those that say the same of the same: two steps may meet one thing.
    var withoutRepeats: [Finding] {
        var seen: Set<[String]> = []
        return filter { seen.insert([$0.severity.rawValue, $0.subject, $0.message]).inserted }
    }
}
