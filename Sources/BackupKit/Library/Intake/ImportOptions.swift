/// What an import shall do.
public struct ImportOptions: Sendable {
    /// A folder, every file of which becomes an attachment.
    public var attachments: String?
    public var kinds = Self.usualKinds
    /// Whether somebody has named the kinds.
    public var namesKinds = false
    public var dryRun = false
    /// What is imported wins, as an edit of this moment: over what the store has newer, and over deletes.
    public var overwrite = false
    /// The one file that is imported is the library: what it brought before and does not hold any more goes.
    public var mirror = false
    /// List what is added record by record, not only what is changed; a dry run does so anyway.
    public var keepsPlan = false
    /// Where lines of event logs that cannot be taken are kept, byte for byte.
    public var rejected: FileHandle?
    public var limits = ReadLimits()
    public var progress = Progress.none

    /// What is imported where nobody names kinds.
    public static let usualKinds: Set<Kind> = Set(Kind.allCases).subtracting([.settings])

    public init() {}
}
