/// What an import or restore did, or would do.
public struct IntakeResult: Sendable {
    public var read = 0
    public var added = 0
    public var updated = 0
    public var unchanged = 0
    public var protected = 0
    /// Of these, what stays deleted because it was deleted later than it was written.
    public var stayedDeleted = 0
    /// Of these, what was purged.
    public var stayedPurged = 0
    /// Of the updated ones, those of which the store keeps some values that are newer.
    public var keptNewer = 0
    /// Of the updated ones, those that were deleted.
    public var broughtBack = 0
    public var conflicts = 0
    public var rejected = 0
    /// Put aside by a quarantine.
    public var quarantined = 0
    /// Alive, and made newer than any tombstone that this device has not heard of.
    public var kept = 0
    /// Removed by `--mode replace`.
    public var removed = 0
    public var attachmentsRemoved = 0
    public var attachmentsAdded = 0
    public var attachmentsUnchanged = 0
    /// Files that the store had lost and that were put back.
    public var attachmentsMended = 0
    /// Files that only records name which stay deleted.
    public var attachmentsLeftDeleted = 0
    /// Records that were neither added nor updated, and link other files now.
    public var linked = 0
    public var settingsChanged = 0
    public var settingsUnchanged = 0
    /// How many changes the store numbered; 0 means that not a byte of it was written.
    public var writes = 0
    public var batch: Int64?
    public var findings: [Finding] = []
    /// The plan, record by record; cut off after `Intake.planLimit` items, which the counts are not.
    public var plan: [PlanItem] = []

    /// Whether something needs attention: exit code 3.
    public var needsAttention: Bool { conflicts > 0 || findings.contains { $0.severity != .note } }
}

/// One line of a plan.
public struct PlanItem: Sendable, Equatable {
    public enum Action: String, Sendable { case add, update, keep, quarantine, protect, remove, conflict }

    public let action: Action
    public let subject: String
    /// What a person calls it: a title, a time.
    public let label: String
    public internal(set) var changes: [FieldChange]
    public let reason: String?
}
