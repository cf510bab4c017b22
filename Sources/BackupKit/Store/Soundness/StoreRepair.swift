/// What a repair did, or would do.
public struct StoreRepairResult: Sendable {
    public struct Step: Sendable, Equatable {
        public enum Action: String, Sendable {
            /// The row is again what the store had written; its hash proves it.
            case exact
            /// The backup's version, which may be older.
            case older
            /// Taken as it is now.
            case accept
            /// Data of a deleted record.
            case clear
            case index, queue, counter, setting
            /// An attachment has another name.
            case name
        }

        public let action: Action
        public let subject: String
        public let message: String
    }

    public internal(set) var steps: [Step] = []
    /// What is still wrong afterwards.
    public internal(set) var left: [Finding] = []
    /// Where the values are that were replaced by others.
    public internal(set) var keptIn: String?
}

/// Mends what `StoreCheck` finds, from a backup where one is given. All of it in one transaction.
struct StoreRepair {
    /// The backup that a repair takes sound rows from.
    struct Source {
        /// The backup, as a store.
        let store: Store
        /// What the backup says was changed when it was made: it proves nothing.
        var suspects: Set<String> = []
        /// Where the backup lies, when something of itself is damaged.
        var damagedAt: String?
    }

    let store: Store
    private let backup: Source?
    var source: Store? { backup?.store }
    private var suspects: Set<String> { backup?.suspects ?? [] }
    let accepts: Bool
    private var result = StoreRepairResult()
    var replaced: [String] = []
    private var hasStaleIndex = false

    /// Must run inside `store.write`. Returns what was done, and the lines of the rows that other values took the place of.
    static func run(
        on store: Store, from backup: Source?, accepts: Bool
    ) throws -> (result: StoreRepairResult, replaced: [String]) {
        var repair = StoreRepair(store, backup, accepts)
        try repair.mend()
        return (repair.result, repair.replaced)
    }

    private init(_ store: Store, _ backup: Source?, _ accepts: Bool) {
        (self.store, self.backup, self.accepts) = (store, backup, accepts)
    }

    private mutating func mend() throws {
        try makeMissingTables()
        let before = try StoreCheck.inTransaction(store, files: .none).findings
        let conflicts = try store.oddConflicts()
        if conflicts.contains(where: { $0.defect == .hasSeveralNumbers }) { try store.removeSurplusNumbers() }
        if before.contains(where: { $0.code == .storeDamaged }) { try mendDatabase() }
        hasStaleIndex = before.contains { $0.code == .indexMismatch }
        try mendHubMemory()
        for row in try badRows() { try mend(row) }
        try mendSetAside()
        try mendSmallRows()
        try mendPurges()
        try mendMemory()
        let gone = try mendGone()
        if hasStaleIndex {
            try store.database.execute("DELETE FROM local_key")
            try store.hasher.fillKeys(store.database)
            try store.putKeys(gone)
            note(.index, store.path, "the index by local id was made again")
        }
        // The index finds them.
        for twin in try store.twinRows() {
            replaced.append(twin.damage.line)
            try store.removeTwin(twin)
            note(.index, twin.damage.subject, "has one row again, the newer one")
        }
        try mendQueues()
        // A backup may have brought back the works of one.
        for conflict in try store.oddConflicts() { try mend(conflict) }
        try mendBatches()
        try mendVersions()
        // What counts the changes of this transaction is written at its end, and is looked at before.
        try store.saveCounter()
        result.left = try StoreCheck.inTransaction(store, files: .digests).findings.map(afterBackup)
    }

    /// What a backup was asked for and does not have, no second repair from it mends.
    private func afterBackup(_ finding: Finding) -> Finding {
        let ofBackups = [StoreRemedy.repairFrom, StoreRemedy.repairOrGiveUp]
        guard let backup, [.recordDamaged, .recordChanged].contains(finding.code), let remedy = finding.remedy,
            ofBackups.contains(remedy)
        else { return finding }
        let giveUp = finding.code == .recordChanged ? "keeps it as it is" : "goes on without it"
        let first = backup.damagedAt.map { "\(TypedCommand.quoted("verify", [$0])) says what is wrong with it; " } ?? ""
        let which = first.isEmpty ? "this backup has" : "this backup is damaged itself, and has"
        let message = "\(finding.message); \(which) no sound version of it"
        return Finding(
            finding.code, finding.severity, finding.subject, message,
            remedy: "\(first)name another backup with --from, or 'backup-tool store repair --accept' \(giveUp)")
    }

    mutating func note(_ action: StoreRepairResult.Step.Action, _ subject: String, _ message: String) {
        result.steps.append(.init(action: action, subject: subject, message: message))
    }

    /// Indexes cannot be made when two rows of a table have one key, or a page of a table is lost.
    private static func succeeds(_ body: () throws -> Void) throws -> Bool {
        do { try body() } catch let error as BackupError where [.failed, .damaged].contains(error.code) { return false }
        return true
    }

    private mutating func mendDatabase() throws {
        // A value of the wrong type is not found in the indexes that it had.
        _ = try Self.succeeds { try store.database.execute("REINDEX") }
        let isIndexed = try Self.succeeds {
            try mendTypes()
            try store.database.execute("REINDEX")
        }
        let faults = try store.database.integrityFaults()
        if !isIndexed || !faults.isEmpty {
            let isOfValues = !faults.isEmpty && faults.allSatisfy { StoreCheck.isOfValue($0) }
            throw BackupError(
                .damaged, "nothing was repaired: the tables themselves are damaged, not only their indexes",
                at: store.path,
                remedy: "keep the file; \(isOfValues ? StoreRemedy.exportIntoNewStore : StoreRemedy.intoNewStore)")
        }
        note(.index, store.path, "SQLite's indexes were made again")
        if try store.storedCounter() != store.changeCounter {
            try store.saveCounter()
            note(.counter, store.path, "the change counter was set to \(store.changeCounter)")
        }
    }

    // MARK: Records

    struct BadRow {
        let change: Int64
        let hash: Int64?
        let damage: DamagedRow?
        /// Where the row can be read.
        let record: Record?
        let isTombstone: Bool
    }

    private func badRows() throws -> [BadRow] {
        let query = try store.database.prepare("SELECT \(Store.recordColumns), row_hash FROM record ORDER BY change")
        var bad: [BadRow] = []
        while try query.step() {
            let (change, hash) = (query.integer(0), query.optionalInteger(13))
            do {
                let stored = try RowReader.unchangedRecord(query, store.hasher, hash: hash)
                if hash == nil {
                    bad.append(
                        BadRow(change: change, hash: nil, damage: nil, record: stored.record, isTombstone: false))
                }
            } catch let row as DamagedRow {
                let record = try? RowReader.record(query, anyChange: true).record
                let isIntact = hash == nil || hash == store.hasher.row(of: query)
                bad.append(
                    BadRow(
                        change: change, hash: hash, damage: row, record: record,
                        isTombstone: row.isTombstoneWithData && isIntact))
            }
        }
        return bad
    }

    private mutating func mend(_ row: BadRow) throws {
        guard let damage = row.damage else {
            guard let record = row.record else { return }
            note(.accept, "\(record.id)", "has a hash now")
            return try write(record, over: row.change, as: row.change)
        }
        if row.isTombstone { return try clear(row, damage) }
        if let record = row.record, let change = try numberBefore(record, row) {
            note(.exact, damage.subject, "has its change number again")
            return try write(record, over: row.change, as: change)
        }
        if let tombstone = try tombstoneBefore(row, damage) {
            note(.exact, damage.subject, "is the tombstone again that it was")
            return try write(tombstone, over: row.change, as: row.change)
        }
        let candidate = try candidate(for: row, damage)
        if let candidate, candidate.isExact {
            note(.exact, "\(candidate.record.id)", "was restored")
            return try write(candidate.record, over: row.change, as: row.change)
        }
        let isSane = row.change > 0 && row.change <= store.changeCounter
        if let record = row.record, isSane, try isInBackup(record) {
            note(.exact, damage.subject, "is what the backup has: its hash was damaged, and was made again")
            return try write(record, over: row.change, as: row.change)
        }
        if damage.isDeleted, candidate?.record.isDeleted != true, let version = candidate?.record ?? row.record {
            return accepts ? try keepDeleted(row, damage, version) : ()
        }
        if accepts, let record = row.record {
            note(.accept, damage.subject, "was taken as it is")
            return try write(record, over: row.change, as: isSane ? row.change : store.nextChange())
        }
        guard let candidate else { return accepts ? try giveUp(row, damage) : () }
        if !candidate.record.isDeleted, try store.isPurged(candidate.record) {
            let tombstone = try store.tombstone(of: candidate.record, at: store.timeAfter(candidate.record))
            note(.clear, damage.subject, Protection.purged.rawValue)
            try write(tombstone, over: row.change, as: store.nextChange())
            return try forgetHub(tombstone.id)
        }
        replaced.append(damage.line)
        note(
            .older, "\(candidate.record.id)", "has the version of the backup, of \(candidate.record.modifiedAt.iso8601)"
        )
        try write(candidate.record, over: row.change, as: store.nextChange())
        try forgetHub(candidate.record.id)
    }

    /// A row that nobody can read and no backup has: its values are kept in the file, and the record is gone.
    private mutating func giveUp(_ row: BadRow, _ damage: DamagedRow) throws {
        note(.accept, damage.subject, "cannot be read, and was given up")
        replaced.append(damage.line)
        try store.database.statement("DELETE FROM record WHERE change = ?").bind(1, row.change).run()
        try store.database.statement("DELETE FROM local_key WHERE change = ?").bind(1, row.change).run()
        try store.noteRemoved(damage.id, type: damage.work.type, localID: damage.work.localID)
        try store.dropAncestor(damage.id)
        hasStaleIndex = true
    }

    /// The change number that a row had when its hash was made, where the index still knows it.
    private func numberBefore(_ record: Record, _ row: BadRow) throws -> Int64? {
        guard let hash = row.hash else { return nil }
        let keys = try store.database.prepare("SELECT change FROM local_key WHERE key = ?")
            .bind(1, store.hasher.key(record.localID))
        while try keys.step() {
            let change = keys.integer(0)
            let taken = try store.database.prepare("SELECT 1 FROM record WHERE change = ?").bind(1, change)
            if store.hasher.row(record, change) == hash, try !taken.step() { return change }
        }
        return nil
    }

    /// The backup's version: the very row, which its hash tells, or the record of its name.
    func candidate(for row: BadRow, _ damage: DamagedRow) throws -> (record: Record, isExact: Bool)? {
        guard let source else { return nil }
        func isExact(_ record: Record) -> Bool { row.hash == store.hasher.row(record, row.change) }
        let named = try source.ifSound { try source.record(damage.id)?.record } ?? nil
        if let named, isExact(named) { return (named, true) }
        var found: Record?
        if row.hash != nil { try source.forEachRecord { if found == nil, isExact($0) { found = $0 } } }
        if let found, try isFree(found.id, besides: row.change) { return (found, true) }
        // A backup of the damage mends nothing.
        guard let named, named != row.record, try isFree(named.id, besides: row.change) else { return nil }
        return (named, false)
    }

    /// Whether the backup has the very same, and does not say itself that it was changed.
    private func isInBackup(_ record: Record) throws -> Bool {
        guard let source, !suspects.contains(record.id.description), try source.isAsWritten(record.id),
            let known = try source.ifSound({ try source.record(record.id)?.record }) ?? nil
        else { return false }
        return known == record && sameBytes(known.fields, record.fields)
    }

    func isInBackup(setting key: String, _ value: String) throws -> Bool {
        guard let source, !suspects.contains("setting \(key)") else { return false }
        return try !source.changedSmallRows().contains { $0.subject == "setting \(key)" }
            && source.settings().contains { sameBytes($0.name, key) && sameBytes($0.value, value) }
    }

    func isFree(_ id: RecordID, besides change: Int64) throws -> Bool {
        let query = try store.database.prepare(
            "SELECT 1 FROM record WHERE zone = ? AND ifnull(name, local_id) = ? AND change <> ?"
        ).bind(1, id.zone).bind(2, id.name).bind(3, change)
        return try !query.step()
    }

    private mutating func clear(_ row: BadRow, _ damage: DamagedRow) throws {
        guard var bare = try bareTombstone(of: row, at: "deleted_at") else { return }
        bare.deviceID = nil
        note(.clear, damage.subject, "holds no data of the deleted record any more")
        try write(bare, over: row.change, as: row.change)
    }

    mutating func write(_ record: Record, over old: Int64, as change: Int64) throws {
        let update = try store.database.statement(
            """
            UPDATE record SET (\(Store.recordColumns), row_hash) = (?,?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE change = ?
            """)
        Store.bind(record, change: change, to: update)
        try update.bind(14, store.hasher.row(record, change)).bind(15, old).run()
        hasStaleIndex = true
    }

    /// The hub may have a newer version than the backup: the next sync merges both, as after a full resync.
    func forgetHub(_ id: RecordID) throws {
        try store.database.statement(
            """
            UPDATE record SET hub_version = iif(hub_version IS NULL, NULL, 0), clean_at = NULL,
            hub_seal = iif(hub_version IS NULL, NULL, \(HubSeal.number(version: "0", cleanAt: "NULL"))) WHERE change = ?
            """
        ).bind(1, store.changeCounter).run()
        try store.dropAncestor(id)
    }

    /// Rows that a restore has set aside, and that the backup has whole.
    private mutating func mendSetAside() throws {
        for (line, row) in try store.linesSetAside() {
            let sound = try soundVersion(of: row)
            guard sound != nil || accepts else { continue }
            replaced.append(row.line)
            try store.database.statement("DELETE FROM damaged WHERE line = ?").bind(1, line).run()
            if let sound {
                note(.older, "\(sound.id)", "has the version of the backup, of \(sound.modifiedAt.iso8601)")
                try store.put(sound, replacing: nil)
            } else {
                note(.accept, row.subject, "cannot be read, and was given up")
                _ = store.nextChange()
            }
        }
    }

    private func soundVersion(of row: DamagedRow) throws -> Record? {
        guard row.table == .record, let source,
            let sound = try source.ifSound({ try source.record(row.id)?.record }) ?? nil,
            try isFree(sound.id, besides: .min), try sound.isDeleted || !row.isDeleted && !store.isPurged(sound)
        else { return nil }
        return sound
    }

    // MARK: Queues

    private mutating func mend(_ conflict: OddConflict) throws {
        switch conflict.defect {
        case .hasNoNumber:
            try store.number(conflict.id)
            note(.queue, "\(conflict.id)", "is on the list of conflicts again")
        case .hasSeveralNumbers: note(.queue, "\(conflict.id)", "has one number again")
        case .worksAreUnknown:
            guard let stored = try store.record(conflict.id) else { return }
            // No tombstone: other devices may have the works.
            try store.takeOut(stored.change, stored.record)
            note(.queue, "\(conflict.id)", "was removed from this store: it has neither of its works")
        case .namesNoWorks, .decisionIsUnknown, .worksMayCome: break
        }
    }

    private mutating func mendQueues() throws {
        let stuck = try StoreCheck.inTransaction(store, files: .none).findings.filter { $0.code == .queueStuck }
        guard !stuck.isEmpty else { return }
        let query = try store.database.prepare(StoreCheck.stuckRows)
        var rows: [(subject: String, change: Int64)] = []
        while try query.step() { rows.append(("\(query.text(0))/\(query.text(1))", query.integer(2))) }
        query.reset()
        // A mark beyond all changes would pass over the new numbers, too.
        try RowSeal.link.resealing("1", store) {
            try store.database.statement("UPDATE hub_link SET pushed_through = min(pushed_through, ?)")
                .bind(1, store.changeCounter).run()
        }
        // What is damaged goes to no hub, and a new number would make a new hash of it.
        let damaged = Set(try badRows().map(\.change))
        for row in rows where !damaged.contains(row.change) {
            guard let stored = try store.ifSound({ try store.stored(change: row.change) }) ?? nil else { continue }
            try store.rewrite(stored, as: stored.record)
            note(.queue, row.subject, "will be sent with the next sync")
        }
        let held = try store.database.prepare("SELECT zone, name FROM held WHERE \(StoreCheck.isHeldInVain)")
        while try held.step() { note(.queue, "\(held.text(0))/\(held.text(1))", "is not held back any more") }
        try store.database.execute("DELETE FROM held WHERE \(StoreCheck.isHeldInVain)")
    }
}
