/// What an export says of rows that are not what they should be.
extension StoreLayout {
    /// Rows of other tables than `record`; theirs come along with the records.
    func gatherOtherDamage() throws {
        if options.kinds.contains(.attachments) { try store.forEachAsset(damaged: damaged.add) { _ in } }
        if options.kinds.contains(.settings) { _ = try store.settings(damaged: damaged.add) }
    }

    /// The same for the tables of attachments, settings, and what a backup says of the store itself. Those that cannot be
    /// read are named as that.
    mutating func noteChangedSmallRows() throws {
        let rows = try store.changedSmallRows().filter { row in
            switch row.table {
            case "asset": options.kinds.contains(.attachments)
            case "setting": options.kinds.contains(.settings)
            default: ["store_id", "schema_version"].contains(row.key)
            }
        }
        guard !rows.isEmpty else { return }
        var unreadable: Set<String> = []
        func note(_ row: DamagedRow) { unreadable.insert("\(row.table.rawValue) \(row.subject)") }
        try store.forEachAsset(damaged: note) { _ in }
        _ = try store.settings(damaged: note)
        for row in rows where !unreadable.contains(row.subject) {
            if row.isGone { omit(row.subject, row.reason) } else { noteChanged(row.subject) }
        }
    }

    /// Where the last sync was killed or failed, files of records that it brought may still be on the hub.
    mutating func noteFilesOnTheWay() throws {
        guard options.kinds.contains(.attachments) else { return }
        result.elsewhere = try store.awaitedFiles()
        let paths = try store.filesOnTheWay()
        if let finding = Finding.filesOnTheWay(paths, to: store.path, missingInBackup: true) {
            result.warnings.append(finding)
        }
    }

    /// Records that only the index still knows, of whatever kind they were.
    mutating func noteGone(besides met: RowTally) throws {
        let gone = try store.goneRecords(besides: met).count
        if gone > 0 { note(Omission(path: Layout.records, reason: GoneRecord.message(gone)), as: .recordDamaged) }
    }

    /// A row that a disk or another program has changed is exported as it is now: there may be no other. The backup says so.
    mutating func noteChanged(_ subject: String) {
        note(Omission(path: subject, reason: Omission.changedRow), as: .recordChanged)
    }

    /// What is wrong with an attachment. Damaged bytes are exported as they are now, and the backup says so.
    mutating func note(_ finding: Finding) {
        result.warnings.append(finding)
        guard finding.isDamagedAttachment else { return }
        changed.append(Omission(path: finding.subject, reason: Omission.rottenFile))
    }

    private mutating func note(_ omission: Omission, as code: Finding.Code) {
        changed.append(omission)
        result.warnings.append(
            Finding(code, .warning, omission.path, omission.reason, remedy: Omission.changedRowRemedy))
    }

    /// What the manifest says of such rows.
    var damagedOmissions: [Omission] {
        damaged.all.map { Omission(path: $0.subject, reason: "\($0.reason); its values are in \(Layout.damaged)") }
            + changed
    }
}

extension Omission {
    fileprivate static let changedRow = "\(DamagedRow.changed); it was exported as it is now"

    static let noPlaceInImbib = "an imbib backup holds publications, notes, settings and attachments"

    /// How the reason begins; the text follows.
    static let noBibTeX = "text that is not BibTeX: "

    /// How the reason begins; the cite key follows.
    static let noteOfGoneWork = "a note on a publication that is gone; another one has its cite key, "

    static let oversize = "larger than 250 MB (--oversize skip)"

    static let neverCame = "is not in the store; an event names it"

    /// What to do about a file that its store could not give.
    public var remedy: String? {
        if sameBytes(reason, Self.oversize) || reason.hasSuffix(Self.noPlaceInImbib) { return nil }
        if sameBytes(reason, Self.neverCame) { return EventMedia.howItComes }
        if [Self.noBibTeX, Self.noteOfGoneWork].contains(where: reason.hasPrefix) {
            return "an export in any other format keeps it"
        }
        return "'backup-tool store check' says how to mend it"
    }

    static let rottenFile = "is damaged: its bytes changed and its time did not; it was exported as it is now"

    /// Of what the backup holds all the same; nil where it was left out.
    var findingOfHeld: Finding? {
        if sameBytes(reason, Self.changedRow) {
            return Finding(
                .recordChanged, .warning, path, reason,
                remedy: "look for the record in a backup that is older than the damage")
        }
        guard sameBytes(reason, Self.rottenFile) else { return nil }
        return Finding(
            .digestMismatch, .warning, path, reason,
            remedy: "look for the file in a backup that is older than the damage")
    }

    fileprivate static let changedRowRemedy =
        "'backup-tool store check' says how it is mended; then make another backup"
}
