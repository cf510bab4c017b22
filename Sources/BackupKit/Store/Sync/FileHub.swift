import Glibc

/// A hub in a file: one SQLite database, used by any number of processes on one machine or on a disk that they share,
/// with the assets' bytes in `<hub>.assets/`. Its table of records has the columns of a store's.
///
/// The database keeps a rollback journal and not a write-ahead log: SQLite before 3.51.3 can corrupt a database when two
/// connections write and checkpoint a log at once.
public final class FileHub {
    /// "BkHb"
    static let applicationID: Int64 = 0x426B_4862
    static let schemaVersion: Int64 = 1

    let database: SQLite
    public let path: String
    let id: String
    let hasher: RecordHasher
    /// What the file says, and what of it can be worked with.
    private let declared: HubLimits
    let limits: HubLimits

    static let schema = """
        CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
        -- The last number that was given out, to a version or to a place in the order of changes.
        CREATE TABLE counter (value INTEGER NOT NULL) STRICT;
        INSERT INTO counter VALUES (0);
        -- change: the record's place in the order of changes. version: the number it got when it was written.
        CREATE TABLE record (
            change INTEGER PRIMARY KEY, zone TEXT NOT NULL, name TEXT, type TEXT NOT NULL, local_id TEXT NOT NULL,
            fields TEXT NOT NULL, field_times TEXT, created_at INTEGER NOT NULL, modified_at INTEGER NOT NULL,
            device_id TEXT, schema_version INTEGER NOT NULL, local_only INTEGER NOT NULL, deleted_at INTEGER,
            version INTEGER NOT NULL) STRICT;
        -- Where a record is, by a hash of its zone and name. Each new key touches a page of its own, and a push is one
        -- transaction: so keys gather in `recent`, which is small, and are brought over by the thousand. An entry
        -- without a record is one that has moved on.
        CREATE TABLE identity (key INTEGER NOT NULL, change INTEGER NOT NULL, PRIMARY KEY (key, change))
            STRICT, WITHOUT ROWID;
        CREATE TABLE recent (key INTEGER NOT NULL, change INTEGER NOT NULL, PRIMARY KEY (key, change))
            STRICT, WITHOUT ROWID;
        -- Every push: what tells a history from another one, and a repeated push from a new one.
        CREATE TABLE push (last INTEGER PRIMARY KEY, first INTEGER NOT NULL, id TEXT NOT NULL UNIQUE) STRICT;
        \(proofTable)
        """

    /// Makes a new, empty hub; what is there already is never touched.
    public static func create(
        _ path: String, limits: HubLimits = .file, allowingNetwork: Bool = false
    ) throws -> FileHub {
        if try FileStatus.ofName(path) != nil {
            if try FileStatus.ofTarget(path) == nil { try DatabasePlace.refuseLostLink(path) }
            throw isHub(path)
                ? BackupError(.exists, "is a hub already", at: path, remedy: "use it, or choose another path")
                : BackupError(.exists, "already exists, and is not a hub", at: path, remedy: "choose another path")
        }
        try LocalPath.check(path)
        try Directory.createAll(parent(of: path))
        try BackupError.mustBeWritable(parent(of: path))
        if !allowingNetwork { try refuseNetwork(parent(of: path), for: path) }
        AtomicFile.removeLeftovers(of: path)
        let temporary = AtomicFile.temporaryName(for: path)
        do {
            try fill(temporary, name: path, limits)
            guard chmod(temporary, 0o600) == 0 else {
                throw BackupError.fromErrno("cannot be made private", at: temporary)
            }
            try AtomicFile.publish(temporary, as: path, replace: false)
        } catch {
            for ending in ["", "-journal"] { unlink(temporary + ending) }
            throw error
        }
        return try FileHub(path, allowingNetwork: allowingNetwork)
    }

    /// SQLite relies on locks that every machine sees at once, which these file systems do not promise: two machines that
    /// write at the same time would damage the hub. https://www.sqlite.org/howtocorrupt.html
    private static func refuseNetwork(_ place: String, for path: String) throws {
        guard let name = try FileSystem.networkName(of: place) else { return }
        throw BackupError(
            .refused, "lies on a network file system (\(name)), whose locks cannot be relied on", at: path,
            remedy: "keep the hub on a local disk, or add --allow-network if only one machine at a time uses it")
    }

    private static func fill(_ path: String, name: String, _ limits: HubLimits) throws {
        let new = try SQLite(path, .create, name: name)
        try new.execute("PRAGMA application_id = \(applicationID); PRAGMA user_version = \(schemaVersion)")
        try new.write {
            try new.execute(schema)
            let insert = try new.statement("INSERT INTO meta VALUES (?, ?)")
            for (key, value) in [("hub_id", RandomID.make())] + limits.texts {
                try insert.bind(1, key).bind(2, value).run()
            }
        }
        try FileHandle.openForReading(path).sync()
    }

    /// `allowingNetwork`: whoever calls knows that nobody else uses the hub at the same time.
    public init(_ path: String, allowingNetwork: Bool = false) throws {
        guard try FileStatus.ofTarget(path) != nil else {
            try DatabasePlace.refuseLostLink(path)
            let folder = parent(of: path)
            guard try FileStatus.ofTarget(folder) != nil else {
                throw BackupError(
                    .notFound, "there is no hub here: there is no folder '\(folder)'", at: path,
                    remedy: "check the name, and connect the disk if it lies on one")
            }
            throw BackupError(
                .notFound, "there is no hub here", at: path,
                remedy: "check the name, and connect the disk if it lies on one; "
                    + "\(TypedCommand.quoted("hub init", [path])) makes a new hub")
        }
        // Its files lie beside the hub itself, by whatever link it is named.
        let path = try OutputPlace.behindLinks(path)
        try FileHandle.checkReadable(path)
        guard Self.isHub(path) else {
            throw BackupError(
                .notFound, "is not a hub of backup-tool and was not touched", at: path,
                remedy: "name the file that 'backup-tool hub init PATH' made")
        }
        try DatabasePlace.checkCompanions(of: path)
        if !allowingNetwork { try Self.refuseNetwork(path, for: path) }
        self.path = path
        database = try SQLite(path, .readWrite)
        database.replacement = Self.makeNew
        // Whatever somebody wrote into a row, no more of it is read into memory.
        database.limitValues(to: HubLimits.largestRecord)
        let found = try database.integer("PRAGMA user_version")
        guard found <= Self.schemaVersion else {
            throw BackupError(
                .refused, "was written by a newer backup-tool (hub version \(found))", at: path,
                remedy: "use the newer version")
        }
        try Self.refuseForeign(in: database)
        // FULL: what was answered survives a power cut. What was deleted is not to be found in the file any more.
        try database.execute(
            """
            PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
            PRAGMA secure_delete = ON
            """)
        var meta: [String: String] = [:]
        var tables: Set<String> = []
        let names = try database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
        while try names.step() { tables.insert(names.text(0)) }
        let missing = ["meta", "counter", "record", "identity", "recent", "push"].filter { !tables.contains($0) }
        if let first = missing.first { throw Self.damaged("its table '\(first)' is missing", at: path) }
        if !tables.contains("proof") { try database.execute(Self.proofTable) }
        let query = try database.prepare("SELECT key, value FROM meta")
        while try query.step() { meta[query.text(0)] = query.text(1) }
        id = meta["hub_id"] ?? ""
        // Its tokens are parted by colons.
        guard !id.isEmpty, !id.contains(":") else { throw Self.damaged("it has no id", at: path) }
        // The same for every hub: with one of its id, a damaged id would damage all rows.
        hasher = RecordHasher(seed: 0x4855_4220_524F_5753)
        declared = HubLimits(meta)
        limits = declared.usable().limits
    }

    /// What to do about a damaged hub: every store has what it sent and got, so a new one fills again.
    static let makeNew = "make a new hub with 'backup-tool hub init PATH' and sync every store with it"

    static func damaged(_ what: String, at location: String) -> BackupError {
        BackupError(.damaged, "the hub is damaged: \(what)", at: location, remedy: makeNew)
    }

    /// Whether `path` is a hub; never changes the file.
    static func isHub(_ path: String) -> Bool { SQLite.applicationID(of: path) == applicationID }

    public func identity() throws -> HubIdentity {
        // Absolute: a store remembers it, and is not always used from the same folder.
        HubIdentity(id: id, location: Directory.real(path) ?? path, limits: declared)
    }

    /// A copy of its records, for a dry run.
    func copy(to path: String) throws -> FileHub {
        try Store.copyDatabase(self.path, to: path)
        let copy = try FileHub(path, allowingNetwork: true)
        try copy.database.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
        return copy
    }

    /// Somebody else at work is nothing to give up for.
    func busyIsTemporary<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch let error as BackupError where error.code == .locked {
            throw HubError.busy(retryAfter: 1)
        }
    }
}

extension HubLimits {
    /// A file takes whatever the cloud takes, as fast as it comes.
    public static let file: HubLimits = {
        var limits = HubLimits()
        limits.recordsPerPage = 4000
        return limits
    }()

    fileprivate var texts: [(String, String)] {
        var texts = [
            ("records_per_push", String(recordsPerPush)), ("records_per_page", String(recordsPerPage)),
            ("record_bytes", String(recordBytes)), ("asset_bytes", String(assetBytes)),
        ]
        if let requestsPerSecond { texts.append(("requests_per_second", String(requestsPerSecond))) }
        return texts
    }

    fileprivate init(_ meta: [String: String]) {
        self = .file
        // What is no number is no limit: `usable` names it.
        recordsPerPush = meta["records_per_push"].map { Int($0) ?? 0 } ?? recordsPerPush
        recordsPerPage = meta["records_per_page"].map { Int($0) ?? 0 } ?? recordsPerPage
        recordBytes = meta["record_bytes"].map { Int($0) ?? 0 } ?? recordBytes
        assetBytes = meta["asset_bytes"].map { Int64($0) ?? 0 } ?? assetBytes
        requestsPerSecond = meta["requests_per_second"].map { Int($0) ?? 0 }
    }
}

extension Record {
    /// What a record counts for against a hub's limit.
    var hubBytes: Int {
        fields.utf8.count + id.zone.utf8.count + id.name.utf8.count + type.utf8.count + localID.utf8.count
            + fieldTimes.keys.reduce(0) { $0 + $1.utf8.count + 16 }
    }
}
