/// What to type next for a store that is not as it was written.
public enum StoreRemedy {
    public static let repair = "'backup-tool store repair' mends it"
    static let repairFrom =
        "'backup-tool store repair --from BACKUP' mends it; if another program wrote it on purpose, 'backup-tool store repair --accept' "
        + "keeps it"

    /// For rows of `meta`, which no backup has.
    static let repairOrKeep =
        "'backup-tool store repair' mends what the records prove; 'backup-tool store repair --accept' keeps the rest as it is"

    /// For rows that cannot be read.
    static let repairOrGiveUp =
        "'backup-tool store repair --from BACKUP' mends it; where no backup has it, 'backup-tool store repair --accept' gives it "
        + "up and keeps its values in a file"

    /// For what no repair can mend. Without --only settings would be left out.
    static let intoNewStore =
        "'backup-tool restore BACKUP --create --store NEW --only publications,notes,events,records,attachments,settings' "
        + "brings the last backup into a new store"

    /// For a damaged page, which may be of an index.
    static let repairOrNewStore =
        "'backup-tool store repair' mends it where only indexes are damaged; else keep the file: \(intoNewStore)"

    /// For an attachment.
    static let repairFile = "'backup-tool store repair --from BACKUP' brings it back"

    /// The way into a new store for one of which an export still gives all.
    static let exportIntoNewStore =
        "'backup-tool export -o DIR' still gives you everything in it; "
        + "'backup-tool restore DIR --create --store NEW --only publications,notes,events,records,attachments,settings' "
        + "makes a new store of that"
}
