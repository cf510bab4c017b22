import Glibc

/// The sync store: records, assets and settings in one SQLite database with the assets' bytes in a folder beside it.
/// One process writes at a time; readers see the last whole transaction and are never blocked.
public final class Store {
    public enum Access { case read, write }

    let database: SQLite
    public let path: String
    public let clock: Clock
    /// Held by a writer as long as it lives: the kernel lets go of it when the process ends, however it ends.
    private let writerLock: FileHandle?
    /// The last change number given out in the current transaction.
    var changeCounter: Int64 = 0
    /// The import or restore that is being recorded, if one is.
    var currentBatch: Batch?
    /// Whether that batch is a dry run: rows come and go, files stay where they are.
    var rehearsal = false
    /// The list of the files that the batch has put in place so far.
    var placedFiles: FileHandle?

    public static func assetFolder(of path: String) -> String { path + ".assets" }
    public var assetFolder: String { Store.assetFolder(of: path) }

    /// Makes a new, empty store: its folder for assets first, the database last, in one rename.
    public static func create(_ path: String, clock: Clock = .system) throws -> Store {
        if try FileStatus.ofName(path) != nil {
            throw BackupError(.exists, "already exists", at: path, remedy: "choose another path, or use this store")
        }
        try Directory.createAll(parent(of: path))
        AtomicFile.removeLeftovers(of: path)
        if try FileStatus.ofTarget(assetFolder(of: path)) == nil { try Directory.create(assetFolder(of: path)) }
        let temporary = AtomicFile.temporaryName(for: path)
        do {
            try fill(temporary, clock)
            try FileHandle.openForReading(temporary).sync()
            guard chmod(temporary, 0o600) == 0 else {
                throw BackupError.fromErrno("cannot be made private", at: temporary)
            }
            try AtomicFile.publish(temporary, as: path, replace: false)
        } catch {
            for ending in ["", "-journal", "-wal", "-shm"] { unlink(temporary + ending) }
            throw error
        }
        return try Store(path, .write, clock: clock)
    }

    /// Writes the tables of a new store; the connection is closed when this returns.
    private static func fill(_ path: String, _ clock: Clock) throws {
        let new = try SQLite(path, .create)
        try new.execute("PRAGMA application_id = \(StoreSchema.applicationID)")
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
        try new.execute("PRAGMA journal_mode = WAL")
    }

    /// Opens a store. A writer waits for another one, up to `patience` tenths of a second.
    public init(_ path: String, _ access: Access, clock: Clock = .system, patience: Int = 100) throws {
        try Store.mustBeStore(path)
        self.path = path
        self.clock = clock
        writerLock = access == .write ? try Store.lock(path, patience) : nil
        database = try Store.connect(path, access)
        if access == .write {
            if let refusal = SchemaVersion.refusal(
                of: try dataSchemaVersion, at: path, instead: "'export' still gives you everything in it")
            {
                throw refusal
            }
            // FULL: a transaction that was reported as done survives a power cut.
            try database.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -65536")
            try StoreSchema.migrate(database)
            try removeLeftovers()
        } else {
            try database.execute("PRAGMA query_only = ON; PRAGMA cache_size = -16384")
            let found = try database.integer("PRAGMA user_version")
            guard found <= StoreSchema.version else {
                throw BackupError(
                    .refused, "was written by a newer backup-tool (store version \(found))", at: path,
                    remedy: "use the newer version")
            }
        }
    }

    /// Opens the store, making it first where there is none.
    public static func openOrCreate(_ path: String, clock: Clock = .system) throws -> Store {
        try FileStatus.ofTarget(path) == nil ? create(path, clock: clock) : Store(path, .write, clock: clock)
    }

    /// Whether `path` is a store of ours; never changes the file.
    public static func isStore(_ path: String) -> Bool {
        guard let status = try? FileStatus.ofTarget(path), status.isRegular, status.size >= 512,
            let database = try? SQLite(path, .immutable), let id = try? database.integer("PRAGMA application_id")
        else { return false }
        return id == StoreSchema.applicationID
    }

    private static func mustBeStore(_ path: String) throws {
        guard try FileStatus.ofTarget(path) != nil else {
            throw BackupError(
                .notFound, "there is no store here", at: path, remedy: "make one with 'backup-tool store init'")
        }
        guard isStore(path) else {
            throw BackupError(.notFound, "is not a store of backup-tool and was not touched", at: path)
        }
    }

    private static func connect(_ path: String, _ access: Access) throws -> SQLite {
        if access == .write { return try SQLite(path, .readWrite) }
        do {
            let database = try SQLite(path, .readOnly)
            _ = try database.integer("SELECT value FROM counter")
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
    private static func lock(_ path: String, _ patience: Int) throws -> FileHandle {
        let folder = assetFolder(of: path)
        if try FileStatus.ofTarget(folder) == nil { try Directory.create(folder) }
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw BackupError.fromErrno("cannot be opened", at: folder) }
        let handle = FileHandle(owning: descriptor, path: folder)
        for attempt in 0...max(0, patience) {
            if attempt > 0 { usleep(100_000) }
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return handle }
            guard errno == EWOULDBLOCK || errno == EINTR else {
                throw BackupError.fromErrno("cannot be locked", at: folder)
            }
            try Interrupt.check()
        }
        throw BackupError(
            .locked, "is being written by another backup-tool", at: path, remedy: "try again when it has finished")
    }

    /// Runs `body` in one write transaction; all changes get numbers of their own.
    public func write<Result>(_ body: () throws -> Result) throws -> Result {
        try database.write {
            changeCounter = try database.integer("SELECT value FROM counter")
            let before = changeCounter
            let result = try body()
            if changeCounter != before {
                try database.statement("UPDATE counter SET value = ?").bind(1, changeCounter).run()
            }
            return result
        }
    }

    /// Runs `body` on one consistent snapshot.
    public func read<Result>(_ body: () throws -> Result) throws -> Result { try database.read(body) }

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
