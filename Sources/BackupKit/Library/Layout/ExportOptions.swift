/// What an export shall do.
public struct ExportOptions: Sendable {
    public enum Oversize: String, Sendable, CaseIterable { case include, skip, fail }
    public enum Form: Sendable, Equatable {
        case layout(CarrierFormat)
        /// imbib's own backup, as a folder or as a zip.
        case imbib(CarrierFormat)

        public var isCompressed: Bool {
            switch self {
            case .layout(let format), .imbib(let format): format != .directory && format != .tar
            }
        }

        var holdsRecords: Bool { if case .layout = self { true } else { false } }
    }

    /// How `library.bib` is put in order.
    public enum EntryOrder: String, Sendable, CaseIterable {
        case key
        /// As the files had it that were imported.
        case source
    }

    public var form: Form
    public var order = EntryOrder.key
    public var kinds: Set<Kind> = Set(Kind.allCases)
    public var level: Int?
    /// What to do with assets that the cloud would not take.
    public var oversize = Oversize.include
    /// Read back what was written.
    public var verify = true
    public var replace = false
    public var clock = Clock.system
    public var tool = "backup-tool \(BackupKitVersion.current)"
    /// The same for the same store: `SOURCE_DATE_EPOCH` was set.
    public var reproducible = false
    public var progress = Progress.none

    public init(form: Form) { self.form = form }
}

public enum BackupKitVersion {
    public static let current = "0.1.0"
}

/// What an export did.
public struct ExportResult: Sendable {
    public var path = ""
    public var bytes: Int64 = 0
    public var files = 0
    public var records: [Kind: Int] = [:]
    public var tombstones = 0
    public var contentDigest = SHA256Digest.of("")
    public var omitted: [Omission] = []
    public var warnings: [Finding] = []
    /// Files that records link, and that only other devices have.
    public var elsewhere: [Asset] = []

    public init() {}

    /// The file of an attachment is damaged in the store, or an index of the store's database.
    public var isOfDamagedStore: Bool {
        warnings.contains { $0.isDamagedAttachment || $0.code == .indexMismatch }
    }

    public var isComplete: Bool { omitted.isEmpty && !warnings.contains { $0.severity != .note } }
}

extension Finding {
    /// Whether an export found an attachment's file damaged in the store.
    var isDamagedAttachment: Bool { code == .digestMismatch && severity == .damage }
}
