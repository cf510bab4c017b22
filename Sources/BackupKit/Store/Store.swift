import Glibc

/// The sync store: records, assets and settings in one SQLite database with the assets' bytes in a folder beside it.
/// One process writes at a time; readers see the last whole transaction and are never blocked.
public final class Store {
    public enum Access: Sendable { case read, write }

    private(set) var database: SQLite
    let hasher: RecordHasher
    public let path: String
    /// The device's own clock: for what people read. `now()` is for what is written.
    public let clock: Clock
    /// The damaged rows that were met, and left out.
    public var damage = DamageLog()
    var hybridClock: HybridClock
    /// The latest time that the database knows.
    private(set) var savedTime: Timestamp?
    /// Held by a writer as long as it lives: the kernel lets go of it when the process ends, however it ends.
    let writerLock: FileHandle?
    /// The folder that a writer has locked.
    let ownAssets: RootDirectory?
    /// Where the database of a new store lies until its first transaction is done.
    private var unpublished: String?
    /// The keys of records that are gone, where the current transaction has looked for them.
    var goneKeys: Set<Int64>?
    /// The last change number given out in the current transaction.
    var changeCounter: Int64 = 0
    private var isWriting = false
    /// The import or restore that is being recorded, if one is.
    var currentBatch: Batch?
    /// Whether there were publications before that batch.
    var publicationsBefore: (batch: Int64, any: Bool)?
    /// What the current transaction has looked up once.
    struct Seen {
        /// Who has which cite key, from when it first deleted a publication that was edited.
        var citeKeys: CiteKeys?
        /// The living publications by their listings, from when it first deleted one that had been another listing.
        var listings: [String: [RecordID]]?
        var deletedEvents: DeletedEvents?
        var foldedEvents: Set<Int64>?
        /// What imported files have said, and since when.
        var saidByFiles: HeldSince?
    }
    var seen = Seen()
    /// Whether that batch is a dry run: rows come and go, files stay where they are.
    var rehearsal = false
    /// Whether several transactions are a dry run together: see `play`.
    private(set) var isPlaying = false
    /// Whether `.blobs` has names that are not durable yet.
    var hasNewBlobs = false
    /// Whether the running batch has noted what a file holds. That is kept even when no record changes.
    var hasNewMarks = false
    /// What the running batch, or the last one, has to tell of files: versions of apps that it replaced and kept, and files
    /// that wait for room in the folder.
    var fileFindings: [Finding] = []
    /// Tables that cannot be read, and that were replaced by empty ones.
    var tablesLeftOut: [Finding] = []
    /// Where the rows of a type are read; see `leaveOutDamagedTypeIndex`.
    var rowsByType = "record"
    /// Whether incoming keywords are added to the stored ones instead of replacing them.
    var joinsKeywords = false
    /// The stored keywords that newer ones remove; see `MergePolicy`.
    var removableKeywords: [String]?
    /// The local ids of publications that the entry at hand is not, though they have its key.
    var otherEntries: Set<String> = []
    /// Whether records of one backup come in: each is a record of its own, though several have one local id.
    var takesBackup = false
    /// That backup; nil where none comes in.
    var backup: IncomingBackup?
    /// Records of that backup that are alive in it, and not to be taken for others of their local id.
    var aliveInBackup: Set<RecordID> = []
    /// The names of that backup's files, and those that were chosen for some of them.
    var comingNames = EntryNameSet()
    /// The names of the store's files since the batch began, once somebody has asked for them.
    var takenNames: EntryNameSet?
    /// Keeps writers from collecting bytes that this reader may need.
    private let readerLock: FileHandle?

    public static func assetFolder(of path: String) -> String { path + ".assets" }
    public var assetFolder: String { Store.assetFolder(of: path) }
    /// The path of the new store that this scratch store stands for in a dry run: other files may lie there.
    var standsFor: String?
    /// The folder that people and apps put files into.
    var treeFolder: String { Store.assetFolder(of: standsFor ?? path) }

    /// Makes a new, empty store: its folder for assets first, the database last, in one rename.
    public static func create(_ path: String, clock: Clock = .system) throws -> Store {
        if try FileStatus.ofName(path) != nil {
            do { try mustBeStore(path) } catch let error as BackupError where error.code == .notFound {
                throw BackupError(.exists, error.message, at: path, remedy: error.remedy)
            }
            throw BackupError(
                .exists, "already exists", at: path, remedy: "choose another path, or use this store")
        }
        let store = try createAside(path, clock: clock)
        do { try store.publish() } catch {
            removeEmptyAssetFolder(of: path)
            throw error
        }
        return store
    }

    /// A new store that appears with what its first transaction writes, or not at all. Nobody can read it before, so that
    /// transaction needs no log.
    static func createAside(_ path: String, clock: Clock = .system) throws -> Store {
        try LocalPath.check(path)
        try Directory.createAll(parent(of: path))
        AtomicFile.removeLeftovers(of: path)
        let lock = try lock(path, 10)
        // Somebody else was faster.
        if try FileStatus.ofName(path) != nil {
            try makeBlobFolder(in: RootDirectory(lock))
            return try Store(path, lock, clock)
        }
        let temporary = AtomicFile.temporaryName(for: path)
        do {
            try makeBlobFolder(in: RootDirectory(lock))
            try fill(temporary, name: path, clock)
            guard chmod(temporary, 0o600) == 0 else {
                throw BackupError.fromErrno("cannot be made private", at: temporary)
            }
            let store = try Store(path, at: temporary, lock, clock)
            store.unpublished = temporary
            return store
        } catch {
            unlink(temporary)
            removeEmptyAssetFolder(of: path)
            throw error
        }
    }

    /// Gives a new store its name.
    func publish() throws {
        guard let temporary = unpublished else { return }
        try FileHandle.openForReading(temporary).sync()
        try AtomicFile.publish(temporary, as: path, replace: false)
        unpublished = nil
        do { database = try Store.connect(path, .write) } catch {
            // A full disk has no room for the log: who is told that it failed finds no store.
            for file in [path, path + "-wal", path + "-shm"] { unlink(file) }
            throw error
        }
    }

    deinit { if let unpublished { unlink(unpublished) } }

    /// Writes the tables of a new store; the connection is closed when this returns.
    private static func fill(_ place: String, name: String, _ clock: Clock) throws {
        let new = try SQLite(place, .create, name: name)
        try new.execute(
            """
            PRAGMA page_size = \(StoreSchema.pageSize); PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;
            PRAGMA application_id = \(StoreSchema.applicationID)
            """)
        try StoreSchema.migrate(new)
        try new.write {
            let insert = try new.statement("INSERT INTO meta VALUES (?, ?)")
            for (key, value) in [
                ("store_id", RandomID.make()), ("created_at", clock.now().iso8601),
                ("schema_version", String(SchemaVersion.current)),
            ] {
                try insert.bind(1, key).bind(2, value).run()
            }
        }
    }

    /// Opens a store. A writer waits for another one, up to so many seconds.
    public convenience init(_ path: String, _ access: Access, clock: Clock = .system, waitSeconds: Double = 10) throws {
        try Store.mustBeStore(path)
        // Its files and its locks lie beside the store itself, by whatever link it is named.
        let path = try OutputPlace.behindLinks(path)
        if access == .write { try Store.mustBeWritable(path) }
        try self.init(path, access == .write ? Store.lock(path, waitSeconds) : nil, clock)
    }

    /// With the lock it is opened for writing; `place` is where the database lies now.
    private init(_ path: String, at place: String? = nil, _ lock: FileHandle?, _ clock: Clock) throws {
        self.path = path
        self.clock = clock
        hybridClock = HybridClock(clock)
        writerLock = lock
        ownAssets = lock.map { RootDirectory($0) }
        let access: Access = lock == nil ? .read : .write
        var readerLock = try access == .read ? Store.lockBlobs(of: path) : nil
        var database = try place.map { try Store.connectAside($0, name: path) } ?? Store.connect(path, access)
        if access == .read, try StoreSchema.isOld(database) {
            // Readers know the newest tables only, so a store of an older version is brought up to date first.
            _ = try Store(path, .write, clock: clock)
            readerLock = try Store.lockBlobs(of: path)
            database = try Store.connect(path, access)
        }
        self.readerLock = readerLock
        self.database = database
        if access == .write, place == nil { try Store.refuseNewerData(database) }
        try StoreSchema.migrate(database)
        hasher = try RecordHasher(database, forReading: access == .read)
        if access == .write {
            savedTime = try latestTimeSeen()
            hybridClock = HybridClock(clock, seen: savedTime)
            try hasher.mendKeys(database)
            try removeLeftovers()
        }
    }

    /// Under the writer's lock: whoever left these things is gone.
    private func removeLeftovers() throws {
        try Directory.removeTree("\(assetFolder)/\(Self.incomingFolder)")
        try Store.makeBlobFolder(in: assets)
        try bringKeptFilesForward()
        try settleFiles()
    }

    /// Removes the folder of assets where nothing is in it.
    static func removeEmptyAssetFolder(of path: String) {
        rmdir("\(assetFolder(of: path))/\(blobFolder)")
        rmdir(assetFolder(of: path))
    }

    private static func refuseNewerData(_ database: SQLite) throws {
        let query = try database.prepare("SELECT value FROM meta WHERE key = 'schema_version'")
        guard try query.step(), let version = Int(query.text(0)) else {
            throw BackupError(
                .damaged, "the table 'meta' does not say which schema this is", at: database.path,
                remedy: SQLite.checkFirst)
        }
        if let refusal = SchemaVersion.refusal(
            of: version, at: database.path, instead: "'backup-tool export -o DIR' still gives you everything in it"
        ) {
            throw refusal
        }
    }

    /// What the database takes, however much of it is in use.
    var fileSize: Int64 {
        get throws { try database.integer("PRAGMA page_count") * database.integer("PRAGMA page_size") }
    }

    private static func connect(_ path: String, _ access: Access) throws -> SQLite {
        if access == .write {
            let database = try SQLite(path, .readWrite)
            try StoreSchema.refuseForeign(in: database, forWriting: true)
            // FULL: a transaction that was reported as done survives a power cut.
            try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32768")
            return database
        }
        let database = try connectReader(path)
        try StoreSchema.refuseForeign(in: database, forWriting: false)
        try database.execute("PRAGMA query_only = ON; PRAGMA cache_size = -4096")
        return database
    }

    private static func connectAside(_ place: String, name: String) throws -> SQLite {
        let database = try SQLite(place, .readWrite, name: name)
        // What fails halfway is thrown away, and what is done is made durable before it gets its name. The small cache lets
        // pages be written while the next records are read, and not all at the end.
        try database.execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA cache_size = -4096")
        return database
    }

    static func connectReader(_ path: String) throws -> SQLite {
        do {
            let database = try SQLite(path, .readOnly)
            _ = try database.integer("SELECT count(*) FROM sqlite_schema")
            return database
        } catch {
            // On a medium that cannot be written SQLite cannot make its shared memory; without a log beside the
            // database there is nobody to share with.
            guard try FileStatus.ofName(path + "-wal") == nil else { throw error }
            return try SQLite(path, .immutable)
        }
    }

    /// SQLite up to 3.51.2 can corrupt a database when two connections write and checkpoint at once, so a second writer
    /// waits here and then gives up.
    static func lock(_ path: String, _ waitSeconds: Double) throws -> FileHandle {
        let folder = assetFolder(of: path)
        if try FileStatus.ofTarget(folder) == nil { try Directory.create(folder) }
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw BackupError.fromErrno("cannot be opened", at: folder) }
        let handle = FileHandle(owning: descriptor, path: folder)
        if try handle.lock(waitSeconds: waitSeconds) { return handle }
        throw BackupError(
            .locked, "is being written by another backup-tool", at: path, remedy: "try again when it has finished")
    }

    /// Runs `body` in one write transaction, or in the one that is running; all changes get numbers of their own.
    public func write<Result>(_ body: () throws -> Result) throws -> Result {
        if isWriting { return try body() }
        isWriting = true
        goneKeys = nil
        defer { (isWriting, seen) = (false, Seen()) }
        var isNewer = false
        let result = try database.write {
            // A damaged counter is written in any case.
            let before = try soundCounter()
            changeCounter = try before ?? lastChange()
            let result = try body()
            if changeCounter != before {
                try saveCounter()
                isNewer = hybridClock.latest != savedTime
                if isNewer { try saveLatestTimeSeen() }
            }
            return result
        }
        if isNewer { savedTime = hybridClock.latest }
        try publish()
        return result
    }

    /// Runs `body`, whatever number of transactions it has, and takes all of it back: a dry run by the very code of the run.
    /// Rows come and go; files stay where they are.
    func play<Result>(_ body: () throws -> Result) throws -> Result {
        let before = (hybridClock, savedTime, changeCounter)
        (isPlaying, rehearsal) = (true, true)
        defer {
            (isPlaying, rehearsal) = (false, false)
            (hybridClock, savedTime, changeCounter) = before
        }
        return try database.rehearse(body)
    }

    /// Runs `body` inside the running batch and takes back what it wrote, so that its answer is known. It must not touch files.
    func attempt<Result>(_ body: () throws -> Result) throws -> Result {
        let before = (hybridClock, changeCounter, goneKeys, publicationsBefore, hasNewMarks)
        let seenBefore = seen
        let files = (fileFindings, takenNames, rehearsal)
        rehearsal = true
        defer {
            (hybridClock, changeCounter, goneKeys, publicationsBefore, hasNewMarks) = before
            seen = seenBefore
            (fileFindings, takenNames, rehearsal) = files
        }
        return try database.takeBack(body)
    }

    /// Runs `body` on one consistent snapshot.
    public func read<Result>(_ body: () throws -> Result) throws -> Result { try database.read(body) }

    /// What the table `counter` says; nil where it has no row.
    func storedCounter() throws -> Int64? {
        let query = try database.statement("SELECT value FROM counter")
        defer { query.reset() }
        return try query.step() ? query.integer(0) : nil
    }

    /// Must run inside `write`.
    func saveCounter() throws {
        try database.statement("UPDATE counter SET value = ?").bind(1, changeCounter).run()
        guard database.changes == 0 else { return }
        try database.statement("INSERT INTO counter VALUES (?)").bind(1, changeCounter).run()
    }

    /// The newest number of a row. Too large ones could not be followed by others.
    func newestChange() throws -> Int64 {
        try ["record", "removed"].map { table in
            try database.integer(
                "SELECT ifnull(max(change), 0) FROM \(table) WHERE change BETWEEN 0 AND \(RowReader.changeLimit / 2)")
        }.max() ?? 0
    }

    /// The counter, where it can be right.
    func soundCounter() throws -> Int64? {
        let newest = try newestChange()
        return try storedCounter().flatMap { newest...(RowReader.changeLimit / 2) ~= $0 ? $0 : nil }
    }

    /// The last change number that a finished transaction has given out. Where the counter is damaged, all that tells of
    /// numbers is asked, so that none is given out twice.
    func lastChange() throws -> Int64 {
        if let counter = try soundCounter() { return counter }
        let columns = [("asset", "change"), ("hub_link", "pushed_through"), ("batch", "last_change")]
        let told = try columns.map { table, column in
            try database.integer(
                "SELECT ifnull(max(\(column)), 0) FROM \(table) WHERE \(column) <= \(RowReader.changeLimit / 2)")
        }
        return max(try newestChange(), told.max() ?? 0)
    }

    func nextChange() -> Int64 {
        changeCounter += 1
        return changeCounter
    }

    func meta(_ key: String) throws -> String? {
        let query = try database.statement("SELECT value FROM meta WHERE key = ?").bind(1, key)
        defer { query.reset() }
        return try query.step() ? query.text(0) : nil
    }

    public var storeID: String { get throws { try meta("store_id") ?? "" } }
    public var dataSchemaVersion: Int {
        get throws { Int(try meta("schema_version") ?? "") ?? SchemaVersion.current }
    }
}
