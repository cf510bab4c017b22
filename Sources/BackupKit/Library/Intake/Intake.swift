/// Takes records, attachments and settings into a store inside one batch, and keeps the books.
final class Intake {
    static let planLimit = 2000

    let store: Store
    var policy = SyncPolicy.honor
    /// Told of every record that was taken, and of what became of it.
    var heard: (Record, Outcome) throws -> Void = { _, _ in }
    /// `--mode replace`: what the backup says wins, whatever the times.
    var overwrite = false
    /// Files of the right size and time are read, too: a restore puts back what has rotted.
    var looksInside = false
    /// Somebody asks for a few things: also files that an app has changed since are put back.
    var isAskedFor = false
    /// Somebody has named the records: the command that brings back those of them that stay deleted.
    var resurrects: String?
    /// What is taken wins as if somebody wrote it now.
    var isEdit = false
    /// The record as one that is kept on one device only, where the backup says that it is.
    var keptHere: ((Record) -> Record?)?
    /// The keys of the records that an overwrite has taken so far; without events, whose latest line counts.
    var overwritten: Set<Int64> = []
    /// Records that were left, or left in part, for the store has them newer or deleted later: how each was counted.
    var passedOver: [ByteName: WritableKeyPath<IntakeResult, Int>] = [:]
    /// What `--mode replace` knows of the records that were judged.
    var replacing = RecordsReplaced()
    /// The fields of the record at hand that somebody reports where the store keeps other values.
    var reported: Set<String> = []
    /// Whether the plan lists what is added, too, record by record.
    var keepsPlan = false
    var result = IntakeResult()
    /// Cite keys of publications that came or changed, and which of these were here before.
    var citeKeys: Set<String> = []
    private var changed: Set<RecordID> = []
    /// The local ids that publications have here, by those that they came with.
    private(set) var newIDs: [String: String] = [:]
    /// Whether whole records come from a backup, where they have been side by side before.
    var takesRecords = false
    /// Identities that the source named; only kept where replace needs them.
    var touched: Set<RecordID> = []
    /// Conflicts of a backup that the store did not have.
    private var conflictsAdded: Set<RecordID> = []
    /// Conflicts that waited before the batch.
    private var waiting: Set<RecordID> = []
    /// Names of the store's files, once somebody has asked for them.
    var assetNames: EntryNameSet?
    /// Records as they were before this batch changed their links.
    var relinked: [RecordID: Store.StoredRecord] = [:]
    /// Files of a backup that get other names in the store.
    var moved: [ByteName: String] = [:]
    /// Files that records name which `--mode replace` leaves.
    var remaining = RemainingLinks()
    /// What the records of a backup link; nil where they come from elsewhere.
    var backupLinks: BackupLinks?
    struct AssetVersion: Hashable {
        let path: ByteName
        let digest: SHA256Digest
    }
    /// Whether files come from a backup of imbib, which has one folder for all of them.
    var isFromImbib = false
    /// Files of a backup that its records name which stay deleted here.
    var namedByDeleted: Set<ByteName> = []
    /// Files of a backup that were purged here.
    var purgedFiles: PurgedFiles?
    /// Cite keys of publications that were purged here.
    var purgedKeys: Set<String> = []
    /// Cite keys of publications that were kept on this device before a backup came, once somebody has asked.
    var keysKeptBefore: Set<String>?
    /// Orders of files that a backup has, and that were not taken yet.
    var orders: [Record] = []
    /// What living records name, once somebody has asked.
    var namedByLiving: LivingLinks?
    /// The same of publications, by name.
    var linkedNames: LinkedFileNames?
    /// Where files lie, or will lie.
    var places: [AssetVersion: String?] = [:]
    /// What `writeSettings` writes.
    var newSettings: [ByteName: NewSetting] = [:]
    var touchedSettings: Set<ByteName> = []
    /// The store's damaged records, where a backup may have what they were, and those that were named.
    var unsoundRows: UnsoundRows?
    var toldUnsound: Set<Int64> = []
    /// Gives records the defaults that they lack.
    var schema: DataSchema?
    /// How many records got the default of each field, or lack what has none.
    private var defaults: [String: Int] = [:]
    private var lacking: [String: Int] = [:]

    init(_ store: Store) { self.store = store }

    /// Whether nothing has come so far, neither new nor known.
    var hasTakenNothing: Bool { taken == 0 }

    /// How much has come so far, new or known.
    var taken: Int {
        let files = result.attachmentsAdded + result.attachmentsUnchanged + result.attachmentsMended
        return result.read + result.attachmentsLeftDeleted + files + touchedSettings.count
    }

    func note(_ finding: Finding) { result.findings.append(finding) }

    func reject(_ subject: String, _ message: String, remedy: String? = nil) {
        reject(Finding(.malformed, .warning, subject, message, remedy: remedy))
    }

    func reject(_ finding: Finding) {
        result.rejected += 1
        if result.rejected <= Finding.toldOneByOne { note(finding) }
    }

    /// Counts something that the store has already, under another identity.
    func passKnown() {
        result.read += 1
        result.unchanged += 1
    }

    /// Whether records may be taken in batches, which say how many were added and not which.
    var takesBatches: Bool {
        policy == .honor && !overwrite && !isEdit && !keepsPlan && schema == nil && keptHere == nil
    }

    func count(added: Int, unchanged: Int) {
        result.read += added + unchanged
        result.added += added
        result.unchanged += unchanged
    }

    /// `keepsID`: somebody knows already which record of the store it is. `adopt` may take it as one that the store has
    /// under another id; where it gives nil the record goes the usual way.
    @discardableResult func take(
        _ record: Record, keepsID: Bool = false, adopt: (Record) throws -> Outcome? = { _ in nil }
    ) throws -> Outcome {
        try Interrupt.check()
        if RecordType.conflict != record.type { result.read += 1 }
        if let finding = SchemaVersion.finding(about: record) { return try refuse(record, finding) }
        if policy != .quarantine, let outcome = try takeOverDamage(record) { return outcome }
        let filled = try schema.map { try fill(record, $0) } ?? record
        let linked = try policy == .quarantine ? filled : linkingOwnFiles(filled)
        let record = keptHere?(linked) ?? linked
        if record.type == RecordType.conflict { return try takeConflict(record) }
        if policy == .quarantine, record.type != Quarantine.type { return try putAside(record) }
        let outcome: Outcome
        do { outcome = try adopt(record) ?? put(record, keepsID: keepsID) } catch let row as DamagedRow {
            return try refuse(record, row.inTheWay)
        }
        if overwrite { touched.insert(outcome.id) }
        if overwrite, outcome.decision == .protect(.hasTakenIn) {
            replacing.postponed.append(record)
        } else {
            try noteOutcome(record, outcome)
        }
        return outcome
    }

    func noteOutcome(_ record: Record, _ outcome: Outcome) throws {
        if outcome.clamped, !isPlanned(record) {
            note(Finding(.clockSkew, .warning, "\(outcome.id)", "was dated in the future; its time was set to now"))
        }
        if record.hubBytes > CloudLimits.recordBytes { noteOversize(RecordLabel.ofLarge(record, outcome.id)) }
        // Equal in words, it may still mean other files.
        if outcome.holdsAlone { replacing.left.insert(outcome.id) }
        if policy == .honor, !overwrite, !isEdit { try noteLostTies(record, outcome) }
        if isEdit { try noteOverwritten(record, outcome) }
        try noteKeptHere(record, outcome)
        try count(record, outcome)
        if record.type == RecordType.publication {
            try noteNewID(of: record, outcome)
            try notePublication(record, outcome)
        }
        try heard(record, outcome)
    }

    /// The store may have the publication under another id, or have given it another one.
    private func noteNewID(of record: Record, _ outcome: Outcome) throws {
        if outcome.id == record.id, record.isDeleted || sameBytes(outcome.localID, record.localID) { return }
        // The deleted record is here under another name, and the tombstone under its own.
        if record.isDeleted, try store.record(record.id)?.record.localID == record.localID { return }
        let known = try store.record(outcome.id)?.record
        // Another work of the backup takes the place of that tombstone.
        if overwrite, known?.isDeleted == true, try store.backup?.hasLiving(outcome.id) == true { return }
        let (old, id) = (record.idInLinks, known?.idInLinks ?? outcome.localID)
        // A copy that is kept on this device has the same old id as its tombstone; where the copy went counts.
        if !sameBytes(id, old), !record.isDeleted || newIDs[old] == nil { newIDs[old] = id }
    }

    /// Notes the id that a publication which is not taken would get.
    func noteNewID(of record: Record) throws {
        guard let outcome = try store.ifSound({ try store.decision(on: record) }) else { return }
        try noteNewID(of: record, outcome)
    }

    /// A conflict belongs to its works and is not counted. What is in quarantine conflicts with nothing.
    private func takeConflict(_ record: Record) throws -> Outcome {
        guard policy != .quarantine else {
            return Outcome(id: record.id, localID: record.localID, decision: .unchanged)
        }
        let outcome = try put(record)
        touched.insert(outcome.id)
        if case .add = outcome.decision { conflictsAdded.insert(outcome.id) }
        return outcome
    }

    /// Remembers which conflicts wait. Must run inside the batch, first.
    func noteWaiting() throws { waiting = Set(try store.conflicts().map(\.recordID)) }

    /// Counts the conflicts that wait now and did not before, and names those that had been settled. Must run inside the
    /// batch, last.
    func countConflicts() throws {
        guard let batch = store.currentBatch else { return }
        for conflict in try store.conflicts() where !waiting.contains(conflict.recordID) {
            let isReopened = try store.record(conflict.recordID).map { stored in
                stored.change < batch.firstChange && !conflictsAdded.contains(stored.record.id)
            }
            result.conflicts += 1
            guard isReopened == true else { continue }
            note(
                Finding(
                    .conflict, .warning, conflict.subject, "is a conflict again: both sides of it are here again",
                    remedy: "'backup-tool conflicts list' lists the conflicts"))
        }
    }

    private func notePublication(_ record: Record, _ outcome: Outcome) throws {
        let taken: Record
        switch outcome.decision {
        case .add(let new): taken = new
        case .update(let new, _):
            taken = new
            changed.insert(new.id)
        case .unchanged, .protect: return
        }
        guard !taken.isDeleted, let key = CiteKeys.key(of: taken) else { return }
        citeKeys.insert(key)
        // Of one key a conflict is queued.
        guard let other = outcome.otherWork, let known = try store.record(other)?.record, !known.isDeleted,
            CiteKeys.key(of: known) != key
        else { return }
        let advice = [outcome.id, other].map { TypedCommand.quoted("store delete", ["\($0)"]) }
        note(
            Finding(
                .conflict, .warning, RecordLabel.text(of: taken),
                "has the id that '\(RecordLabel.text(of: known))' has here; both are kept",
                remedy: "if they are one work, \(advice[0]) removes the new one, \(advice[1]) the other"))
    }

    /// Queues a conflict for each cite key that two publications have since this batch. Comes last in it.
    func noteCiteKeys() throws {
        guard let batch = store.currentBatch, !citeKeys.isEmpty else { return }
        result.findings += try CiteKeys(store).report(on: citeKeys, amongNew: !takesRecords) { stored in
            stored.change < batch.firstChange ? .known : changed.contains(stored.record.id) ? .changed : .new
        }
    }

    func put(_ record: Record, keepsID: Bool = false) throws -> Outcome {
        if overwrite { return try postponed(record) ?? store.overwrite(with: record, resurrect: policy == .resurrect) }
        if isEdit {
            let record = isOverwritten(record) ? try completing(record) : record
            return try store.edit(with: record, keepsID: keepsID, derive: Intake.derive)
        }
        return try store.ingest(
            record, resurrect: policy == .resurrect, keepsID: keepsID, derive: Intake.derive)
    }

    func count(_ record: Record, _ outcome: Outcome) throws {
        switch outcome.decision {
        case .add:
            result.added += 1
            plan(.add, record, id: outcome.id)
        case .update(let new, let changes)
        where !overwrite && policy == .resurrect && changes.isEmpty && !new.isDeleted:
            result.kept += 1
            plan(.keep, record, id: outcome.id, reason: "outlives deletes that this device has not heard of")
        case .update(let new, _) where new.isDeleted && outcome.wasAlive:
            result.removed += 1
            plan(.remove, record, id: outcome.id, reason: "the backup has it as deleted, later than it was written")
        case .update(let new, let changes):
            result.updated += 1
            if !outcome.wasAlive, !new.isDeleted { result.broughtBack += 1 }
            let isBack = policy == .resurrect && changes.allSatisfy { $0.before == nil } && !new.isDeleted && !overwrite
            let newer = outcome.wasAlive ? namesOfNewer(in: new, than: record) : []
            result.keptNewer += newer.isEmpty ? 0 : 1
            if !newer.isEmpty { passedOver[ByteName(outcome.localID)] = \.keptNewer }
            let keeps = newer.isEmpty ? nil : "the store keeps its newer \(newer.joined(separator: ", "))"
            plan(.update, record, id: outcome.id, changes: changes, reason: isBack ? "comes back" : keeps)
        case .unchanged: result.unchanged += 1
        case .protect(let reason):
            result.protected += 1
            if overwrite { replacing.left.insert(outcome.id) }
            if reason == .newer || reason == .newerTombstone { passedOver[ByteName(outcome.localID)] = \.protected }
            plan(.protect, record, id: outcome.id, reason: reason.rawValue)
            if reason == .purged || reason == .newerTombstone { try countDeleted(record, outcome, reason) }
        }
    }

    /// Leaves a record as it is in the store, if it is there; `--mode replace` does not take it out.
    func refuse(_ record: Record, _ finding: Finding) throws -> Outcome {
        reject(finding)
        for known in try store.records(localID: record.localID).map(\.record.id) + [record.id] {
            if overwrite { replacing.left.insert(known) }
            if overwrite || known == record.id { touched.insert(known) }
        }
        return Outcome(id: record.id, localID: record.localID, decision: .protect(.newerSchema))
    }

    private func fill(_ record: Record, _ schema: DataSchema) throws -> Record {
        let filled = try schema.fill(record)
        for field in filled.fields { defaults["\(record.type).\(field)", default: 0] += 1 }
        for field in filled.missing { lacking["\(record.type).\(field)", default: 0] += 1 }
        return filled.record
    }

    static func derive(
        _ type: String, _ merged: [Field], _ local: [Field], _ other: [Field]
    ) throws -> [Field] {
        guard type == RecordType.publication else { return merged }
        return try Publication.derive(merged: merged, local: local, other: other)
    }

    func plan(
        _ action: PlanItem.Action, _ record: Record, id: RecordID, changes: [FieldChange] = [], reason: String? = nil
    ) {
        guard keepsPlan || action != .add && action != .keep && action != .quarantine,
            result.plan.count < Intake.planLimit
        else { return }
        result.plan.append(
            PlanItem(
                action: action, subject: id.description, label: RecordLabel.text(of: record), changes: changes,
                reason: reason))
    }

    /// Of an attachment by its path, or a setting by its key.
    func plan(_ action: PlanItem.Action, _ name: String, changes: [FieldChange] = [], reason: String? = nil) {
        guard keepsPlan || action != .add, result.plan.count < Intake.planLimit else { return }
        result.plan.append(PlanItem(action: action, subject: name, label: name, changes: changes, reason: reason))
    }

    /// The result with what the batch itself knows.
    func finished(_ batch: Batch?) -> IntakeResult {
        var result = self.result
        if result.rejected > Finding.toldOneByOne {
            let more = result.rejected - Finding.toldOneByOne
            result.findings.append(Finding(.malformed, .warning, "rejected", "\(more) more were rejected"))
        }
        for (field, count) in defaults.sorted(by: { $0.key < $1.key }) {
            result.findings.append(
                Finding(.defaultFilled, .note, field, "was missing in \(count) records, which got its default"))
        }
        for (field, count) in lacking.sorted(by: { $0.key < $1.key }) {
            result.findings.append(
                Finding(.schemaNoDefault, .warning, field, "is missing in \(count) records and has no default"))
        }
        result.findings = (result.findings + store.fileFindings).withoutRepeats
        result.batch = batch?.id
        result.writes = batch.map { Int($0.lastChange - $0.firstChange + 1) } ?? 0
        return result
    }

    var summary: String {
        JSON.object([
            JSON.Member("added", JSON(result.added)), JSON.Member("updated", JSON(result.updated)),
            JSON.Member("removed", JSON(result.removed)), JSON.Member("attachments", JSON(result.attachmentsAdded)),
            JSON.Member("settings", JSON(result.settingsChanged)),
        ]).compact
    }
}
