/// What a nightly run needs of a vault and of what is backed up into it. Every call may fail with a `BackupError`, and
/// does its own locking.
public protocol NightlyVault: AnyObject {
    /// Every snapshot, in any order, with the tags that it has now.
    func snapshots() throws -> [RetentionItem]
    /// Whether a snapshot is there, under the name that it has or had; of what store it is does not matter.
    func holds(_ snapshot: String) throws -> Bool
    /// Throws when what is backed up is not there.
    func findSource() throws
    /// Throws when nothing can be written into the vault.
    func checkCanWrite() throws
    /// Takes a snapshot. A source that is not there throws.
    func takeSnapshot() throws -> NightlySnapshot
    /// What a snapshot holds.
    func census(of snapshot: String) throws -> LibraryCensus
    /// Replaces a snapshot by one with one more tag, and gives its new id.
    func addTag(_ tag: String, to snapshot: String) throws -> String
    func forget(_ snapshots: [String]) throws
    /// Reads a part of the vault, or all of it, and says what is wrong.
    func check(_ subset: CheckSubset?) throws -> [Finding]
    func drill(_ snapshot: String) throws -> DrillEntry
    /// Removes what no snapshot needs when that is more than so many percent; gives the bytes that became free, or nil when
    /// it was not worth the work, and what could not be done.
    func prune(ifUnusedOver percent: Double) throws -> (freed: Int64?, findings: [Finding])
    func size() throws -> Int64
}

public struct NightlySnapshot: Sendable, Equatable {
    public var id: String
    /// What could not be read, and what else is worth knowing.
    public var findings: [Finding]
    public var isPartial: Bool

    public init(id: String, findings: [Finding] = [], isPartial: Bool = false) {
        (self.id, self.findings, self.isPartial) = (id, findings, isPartial)
    }
}
