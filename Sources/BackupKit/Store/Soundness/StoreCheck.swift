import Glibc

/// What `store check` found, and how much it looked at.
public struct StoreCheckResult: Sendable {
    public var records = 0
    public var assets = 0
    public var findings: [Finding] = []

    public var isSound: Bool { !findings.contains { $0.severity == .damage || $0.severity == .error } }
}

/// Looks whether a store is what the tool has written: the database, every row, every file, every queue.
public struct StoreCheck {
    public enum Files: Sendable { case none, sizes, digests }

    /// Whether a fault that SQLite's integrity check has found is one of an index, or of an index and its row.
    static func isOfIndex(_ fault: String) -> Bool { fault.contains(" index ") }

    /// Whether it is of one value, which has the wrong type. An export reads past it.
    static func isOfValue(_ fault: String) -> Bool { fault.contains("value in ") }

    let store: Store
    private var result = StoreCheckResult()
    /// What to do with a store that `store repair` refuses: one of which nobody knows the schema, for example.
    private var instead: String?

    private init(_ store: Store) { self.store = store }

    /// Checks the store at `path`. What keeps it from being read is a finding, too. `indexes` also compares the index by
    /// local id with all records, which takes longer, and looks at conflicts.
    public static func run(
        _ path: String, files: Files = .digests, indexes: Bool = true
    ) throws -> StoreCheckResult {
        do { return try run(try Store(path, .read), files: files, indexes: indexes) } catch {
            let flipped = Store.flippedDefinitions(of: path)
            if !flipped.isEmpty { return StoreCheckResult(findings: flipped.map(\.finding)) }
            guard let error = error as? BackupError else { throw error }
            if error.code == .damaged { return StoreCheckResult(findings: [unreadable(path, error)]) }
            // Without some tables or columns it cannot even be opened.
            guard error.remedy == SQLite.checkTables else { throw error }
            return StoreCheckResult(findings: [
                Finding(
                    .storeDamaged, .error, path, error.message, remedy: "keep the file; \(StoreRemedy.intoNewStore)")
            ])
        }
    }

    /// The same of an open store; its damage log is told nothing.
    public static func run(
        _ store: Store, files: Files = .digests, indexes: Bool = true
    ) throws -> StoreCheckResult {
        try store.read { try inTransaction(store, files: files, indexes: indexes) }
    }

    /// The same inside a transaction that is running.
    static func inTransaction(_ store: Store, files: Files, indexes: Bool = true) throws -> StoreCheckResult {
        var check = StoreCheck(store)
        do {
            let missing = try StoreSchema.missingTables(store.database).map { $0.finding(store.path) }
            let flipped = try StoreSchema.flippedDefinitions(in: store.database).map(\.finding)
            let lacking = try flipped.isEmpty ? StoreSchema.missingColumns(store.database, at: store.path) : []
            check.result.findings = missing + lacking
            // Nothing else can be looked at without them.
            if !check.result.findings.isEmpty { return check.result }
            check.result.findings += try StoreSchema.missingParts(store.database)
                .filter { indexes || $0.isTrigger }.map { $0.finding(store.path) }
            check.result.findings += flipped
            try check.checkDatabase()
            try check.checkRecords(indexes)
            try check.checkWitnesses()
            try check.checkSettings()
            try check.checkQueues()
            // Nothing that a nightly backup has to distrust the store for.
            if indexes {
                check.result.findings += try store.oddConflicts().map(\.finding)
                check.result.findings += try store.batchDamage().map { batch in
                    Finding(.recordChanged, .error, "batch \(batch.id)", batch.message, remedy: Batch.giveUp)
                }
                check.result.findings += try store.memoryDamage()
                let files = try store.filesOnTheWay()
                if let finding = Finding.filesOnTheWay(files, to: store.path) { check.result.findings.append(finding) }
                if try !StoreSchema.isOld(store.database) {
                    check.result.findings += try store.oddVersions().map(\.finding)
                    check.result.findings += try store.brokenAncestors().map { OddHubState(id: $0).ancestorFinding }
                }
            }
            check.result.findings += try store.purgeFindings()
            try check.checkAssets(files)
        } catch let error as BackupError where error.code == .damaged {
            check.result.findings.append(unreadable(store.path, error))
        }
        if let way = check.instead { check.result.findings = check.result.findings.map { withoutRepair($0, way) } }
        return check.result
    }

    private static func unreadable(_ path: String, _ error: BackupError) -> Finding {
        Finding(
            .storeDamaged, .damage, path, "the database cannot be read to its end: \(error.message)",
            remedy: "keep the file; \(StoreRemedy.intoNewStore)")
    }

    private mutating func add(
        _ code: Finding.Code, _ severity: Finding.Severity, _ subject: String, _ message: String, _ remedy: String
    ) {
        result.findings.append(Finding(code, severity, subject, message, remedy: remedy))
    }

    // MARK: The database

    private mutating func checkDatabase() throws {
        for fault in try store.database.integrityFaults() {
            // Only indexes and types can be mended where they are.
            if fault.contains("Rowid") { instead = StoreRemedy.intoNewStore }
            let canBeMended = Self.isOfIndex(fault) || Self.isOfValue(fault)
            let remedy = canBeMended ? StoreRemedy.repair : StoreRemedy.repairOrNewStore
            add(.storeDamaged, .damage, store.path, fault, remedy)
        }
        if try store.soundCounter() == nil {
            let said = try store.storedCounter().map { "says \($0)" } ?? "is gone"
            add(
                .storeDamaged, .error, store.path,
                "the change counter \(said), the newest row \(try store.newestChange())", StoreRemedy.repair)
        }
        let schema = try Int(store.meta("schema_version") ?? "") ?? 0
        if try store.storeID.utf8.count < 8 || SchemaVersion.check(schema) != .current {
            // Of a schema that nobody knows nothing can be exported.
            let canExport = schema == 0 || SchemaVersion.check(schema) == .current
            let way = canExport ? StoreRemedy.exportIntoNewStore : StoreRemedy.intoNewStore
            instead = way
            add(
                .storeDamaged, .error, store.path, "the table 'meta' does not say which store and schema this is", way)
        } else if store.hasher.isWithoutSeed {
            instead = StoreRemedy.exportIntoNewStore
            add(.storeDamaged, .error, store.path, RecordHasher.lacksSeed, StoreRemedy.exportIntoNewStore)
        }
    }

    /// Names the way that is left where a repair would be refused.
    private static func withoutRepair(_ finding: Finding, _ way: String) -> Finding {
        guard let remedy = finding.remedy, remedy.contains("'backup-tool store repair") else { return finding }
        return finding.advising(way)
    }

    // MARK: Records

    private mutating func checkRecords(_ indexes: Bool) throws {
        let query = try store.database.prepare(
            "SELECT \(Store.recordColumns), row_hash, \(Store.hasOddHubState) FROM record")
        let index = try indexes ? KeyIndex(store) : nil
        var (stale, keys) = (0, KeyTally())
        let before = result.findings.count
        var tally = RowTally()
        while try query.step() {
            try Interrupt.check()
            result.records += 1
            tally.add(change: query.integer(0))
            if let finding = try judge(query) { result.findings.append(finding) }
            if indexes, query.integer(14) != 0 { result.findings.append(OddHubState(row: query).finding) }
            if let index {
                if try !index.knows(query) { stale += 1 }
            } else {
                keys.add(query, store.hasher)
            }
        }
        let gone = try store.goneRecords(besides: tally).count
        if gone > 0 {
            add(
                .recordDamaged, .damage, store.path, GoneRecord.message(gone),
                "'backup-tool store repair --from BACKUP' brings back what a backup has; 'backup-tool store repair --accept' "
                    + "goes on without")
        }
        guard indexes else {
            // Where a row is damaged, it is named, and nobody knows what the index should say of it.
            if result.findings.count == before, try keys != KeyTally(of: store.database) {
                addMisfit("the records")
            }
            return
        }
        for twin in try store.twinRows() {
            add(.recordDamaged, .damage, twin.damage.subject, twin.damage.reason, StoreRemedy.repair)
        }
        let entries = try store.database.integer("SELECT count(*) FROM local_key") - Int64(gone)
        if stale > 0 || entries != Int64(result.records) { addMisfit("\(max(stale, 1)) of \(result.records) records") }
    }

    private mutating func addMisfit(_ records: String) {
        add(
            .indexMismatch, .error, store.path,
            "the index by local id does not fit \(records), so an import may add some twice", StoreRemedy.repair)
    }

    /// What is wrong with a row of `recordColumns` and its hash.
    private func judge(_ row: Statement) throws -> Finding? {
        let hash = row.optionalInteger(13)
        do {
            let record = try RowReader.unchangedRecord(row, store.hasher, hash: hash).record
            guard hash == nil else { return nil }
            return Finding(
                .recordChanged, .warning, "\(record.id)", "was written by another program: no hash vouches for it",
                remedy: "'backup-tool store repair' takes it as it is")
        } catch let damaged as DamagedRow {
            if damaged.isTombstoneWithData, hash == nil || hash == store.hasher.row(of: row) {
                return Finding(
                    .tombstoneData, .error, damaged.subject, "is deleted and still holds data",
                    remedy: "'backup-tool store repair' removes it")
            }
            return Finding(
                damaged.isChanged ? .recordChanged : .recordDamaged, .damage, damaged.subject, damaged.reason,
                remedy: damaged.isChanged ? StoreRemedy.repairFrom : StoreRemedy.repairOrGiveUp)
        }
    }

    // MARK: Settings, and what is noted of them

    private mutating func checkSettings() throws {
        var damaged: [DamagedRow] = []
        _ = try store.settings { damaged.append($0) }
        for row in damaged {
            add(
                .recordDamaged, .damage, row.subject, "the setting is damaged: \(row.reason)",
                StoreRemedy.repairOrGiveUp)
        }
    }

    private mutating func checkWitnesses() throws {
        for row in try store.changedSmallRows() {
            add(
                .recordChanged, .damage, row.subject, row.reason,
                row.table == "meta" ? StoreRemedy.repairOrKeep : StoreRemedy.repairFrom)
        }
        for table in try StoreSchema.isOld(store.database) ? [] : RowSeal.ofSync {
            // Where the hub lies may be what is damaged.
            let sync = table.name == RowSeal.link.name ? "'backup-tool sync --hub PATH'" : "'backup-tool sync'"
            for row in try table.broken(in: store) {
                add(
                    .recordChanged, .warning, "\(table.name) \(row)", DamagedRow.changed,
                    "the next \(sync) asks the hub again")
            }
        }
        for row in try store.setAside() {
            add(
                .recordDamaged, .warning, row.subject, "was set aside as damaged: \(row.reason)",
                StoreRemedy.repairOrGiveUp)
        }
    }

    // MARK: Queues

    private mutating func checkQueues() throws {
        let held = try store.database.prepare("SELECT zone, name FROM held WHERE \(Self.isHeldInVain)")
        while try held.step() {
            add(
                .queueStuck, .warning, "\(held.text(0))/\(held.text(1))",
                "is held back from the hub, and there is no such record", StoreRemedy.repair)
        }
        let stuck = try store.database.prepare(Self.stuckRows)
        while try stuck.step() {
            add(
                .queueStuck, .error, "\(stuck.text(0))/\(stuck.text(1))",
                "waits for the hub, and no sync would send it", StoreRemedy.repair)
        }
    }

    /// Rows of `held` that name no record.
    static let isHeldInVain =
        """
        kind NOT IN ('size', 'permission', 'local', 'damaged', 'missing', 'newer', 'broken')
        OR kind IN ('size', 'permission') AND zone <> 'Assets' AND NOT EXISTS
        (SELECT 1 FROM record WHERE record.zone = held.zone AND ifnull(record.name, record.local_id) = held.name)
        """

    /// Rows that changed since the hub saw them, and that the next push would pass over.
    static let stuckRows =
        """
        SELECT zone, ifnull(name, local_id), change FROM record
        WHERE \(Store.isPending) AND \(HubSeal.isSound) AND change <= (SELECT pushed_through FROM hub_link) AND NOT EXISTS
        (SELECT 1 FROM held WHERE held.zone = record.zone AND held.name = ifnull(record.name, record.local_id))
        """

    // MARK: Files

    private mutating func checkAssets(_ files: Files) throws {
        var damaged: [DamagedRow] = []
        try store.forEachAsset(damaged: { damaged.append($0) }) { asset in
            try Interrupt.check()
            let finding = try Self.judge(asset, in: store, files)
            if let finding { result.findings.append(finding) }
            let isDenied = finding?.code == .unreadable && finding?.severity == .warning
            if !isDenied { result.assets += 1 }
        }
        for row in damaged { add(.recordDamaged, .damage, row.subject, row.reason, StoreRemedy.repairOrGiveUp) }
        guard files != .none else { return }
        let moving = try store.namesApart().moving
        for file in moving {
            add(.entryRefused, .warning, file.asset.path, "\(file.reason): no export can hold both", StoreRemedy.repair)
        }
        result.findings += try store.oddOwnFiles()
        result.findings += try store.strayFiles()
        result.findings += try store.filesInTheWay().filter { found in
            !moving.contains { sameBytes($0.asset.path, found.subject) }
        }
    }

    /// Whether the file is there, with the bytes that the row says.
    static func isFile(of asset: Asset, in store: Store) throws -> Bool { try judge(asset, in: store, .digests) == nil }

    /// What is wrong with an attachment's file; damage is what no app has done.
    static func judge(_ asset: Asset, in store: Store, _ files: Files) throws -> Finding? {
        guard files != .none else { return nil }
        do { return try look(at: asset, in: store, files) } catch let error as BackupError where error.isVerdict {
            if FileHandle.isDenied("\(store.assetFolder)/\(asset.path)") {
                return Finding(
                    .unreadable, .warning, asset.path, "was not checked: \(error.message)",
                    remedy: BackupError.whoMayRead)
            }
            return Finding(
                .unreadable, .damage, asset.path, error.message, remedy: "move the file away; \(StoreRemedy.repairFile)"
            )
        }
    }

    /// Looks at what a reader of this state would open: a writer may be at work.
    private static func look(at asset: Asset, in store: Store, _ files: Files) throws -> Finding? {
        let place = try store.foundPlace(of: asset)
        let isGivenBack = try store.pending(asset.path)?.place != nil
        if files == .sizes, !isGivenBack, let status = try store.assetStatus(place), status.isRegular,
            status.size == asset.size
        {
            return nil
        }
        let opened: AssetFiles.Opened
        do {
            guard let files = try AssetFiles(of: store) else { return try missing(asset, in: store) }
            opened = try files.open(asset)
        } catch let error as BackupError where error.isVerdict {
            if try !isGivenBack && store.assetStatus(place)?.isRegular == true { throw error }
            return try missing(asset, in: store)
        }
        if opened.isRemoved { return try missing(asset, in: store) }
        let status = try opened.file.status()
        let isEdited = !Store.isHarmed(status, asset)
        let severity: Finding.Severity = isEdited ? .warning : .damage
        let old = "'backup-tool restore BACKUP --match NAME' brings back what it was"
        let choice =
            isEdited
            ? "'backup-tool store adopt' keeps it as it is now; \(old)"
            : "\(StoreRemedy.repairFile); where no backup has it, 'backup-tool store repair --accept' takes it as it is"
        let isSame = try files == .digests && opened.file.digest() == asset.digest
        guard status.size == asset.size else {
            if isSame {
                return Finding(
                    .recordChanged, .damage, asset.path,
                    "has \(status.size) bytes, and the right ones; the store says \(asset.size)",
                    remedy: StoreRemedy.repair)
            }
            return Finding(
                .sizeMismatch, severity, asset.path, "its file has \(status.size) bytes instead of \(asset.size)",
                remedy: choice)
        }
        guard files == .digests, !isSame else { return nil }
        return Finding(
            .digestMismatch, severity, asset.path, "its file is not what the store remembers", remedy: choice)
    }

    private static func missing(_ asset: Asset, in store: Store) throws -> Finding {
        let other = try store.obstacle(at: asset.path)
        // An undo may need what the file was.
        let isKept = try store.hasBlob(asset.digest) && store.isAsNoted(asset)
        let remedy =
            isKept
            ? "'backup-tool store adopt' puts it back: the store has kept its bytes"
            : "\(StoreRemedy.repairFile); where no backup has it, 'backup-tool store repair --accept' gives it up"
        return Finding(
            .entryMissing, .damage, asset.path,
            "its file is missing" + (other.map { ": \($0.name) is in its place" } ?? ""),
            remedy: (other == nil ? "" : "move that away; ") + remedy)
    }
}

extension DamagedRow {
    static let changed = "is not what the store has written: a disk error, or another program"
    static let tombstoneWithData = "it is deleted and still holds data"

    var isChanged: Bool { reason == Self.changed }
    var isTombstoneWithData: Bool { reason == Self.tombstoneWithData }
}
