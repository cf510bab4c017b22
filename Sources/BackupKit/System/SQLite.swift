import CSQLite
import Glibc

/// A connection to an SQLite database. All pointers of the library stay in this file.
/// https://www.sqlite.org/c3ref/intro.html
public final class SQLite {
    public static var libraryVersion: String { String(cString: sqlite3_libversion()) }

    private let handle: OpaquePointer
    private var cache: [String: Statement] = [:]
    private var queries: [ObjectIdentifier: Statement] = [:]
    public let path: String
    var replacement: String?  // What to do about damage, where 'store check' is of no use.
    /// Comes before every step of every statement: where a test ends a run between any two of them. What it throws is
    /// thrown from there. There is no other way in to that place, and nil costs a comparison.
    var beforeStep: (() throws -> Void)?
    /// Told of each statement at its end, and how many steps of SQLite's virtual machine it took: where a test finds
    /// those whose work grows with the square of a store.
    var afterStatement: ((_ sql: String, _ steps: Int) -> Void)?

    public enum Mode {
        case readOnly, readWrite, create
        /// Reads the file as it lies there, without locks and without a log beside it: for a first look at a file that
        /// may not be ours, and for media that cannot be written.
        case immutable
    }

    /// `name` is what errors call the database, where that is not its path.
    public init(_ path: String, _ mode: Mode, name: String? = nil) throws {
        self.path = name ?? path
        var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        switch mode {
        case .readOnly: flags |= SQLITE_OPEN_READONLY
        case .readWrite: flags |= SQLITE_OPEN_READWRITE
        case .create: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        case .immutable: flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
        }
        let file = mode == .immutable ? "file:\(Self.uriEscaped(path))?immutable=1" : path
        var opened: OpaquePointer?
        let status = sqlite3_open_v2(file, &opened, flags, nil)
        guard status == SQLITE_OK, let opened else {
            let reason = String(cString: sqlite3_errstr(status))
            let lacksHandles = Self.lacksHandles(opened)
            sqlite3_close_v2(opened)
            if lacksHandles { throw Self.tooManyFiles(name ?? path) }
            let isRefused = [SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_READONLY].contains(status & 0xFF)
            throw BackupError(
                .failed, "cannot be opened: \(reason)", at: name ?? path,
                remedy: isRefused ? "look whether its folder is there, and whether you may write in it" : nil)
        }
        handle = opened
        sqlite3_busy_timeout(handle, 10_000)
        // A database from outside must not run code of its own while we read it.
        _ = csqlite_config_switch(handle, SQLITE_DBCONFIG_DEFENSIVE, 1)
        _ = csqlite_config_switch(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        // However long a statement takes, a signal ends it. Short ones, such as a ROLLBACK, are never asked.
        sqlite3_progress_handler(handle, 100_000, { _ in Interrupt.signal == nil ? 0 : 1 }, nil)
    }

    /// Lets definitions of tables be written, and be read where SQLite does not understand them.
    func openDefinitions() throws {
        _ = csqlite_config_switch(handle, SQLITE_DBCONFIG_DEFENSIVE, 0)
        try execute("PRAGMA writable_schema = ON")
    }

    deinit {
        cache.removeAll()
        queries.removeAll()
        sqlite3_close_v2(handle)
    }

    /// No value of more bytes is read or written: whoever meets one gets an error that `isTooLarge`.
    /// https://www.sqlite.org/c3ref/c_limit_attached.html
    func limitValues(to bytes: Int) {
        sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Int32(clamping: bytes))
    }

    static let tooLarge = "holds a value that is too large to be read"

    /// Runs statements that return nothing of interest.
    public func execute(_ sql: String) throws {
        try checkStep()
        let status = sqlite3_exec(handle, sql, nil, nil, nil)
        if status != SQLITE_OK { throw error(status) }
    }

    /// A prepared statement, kept for the next time. It must not be in use already.
    public func statement(_ sql: String) throws -> Statement {
        if let known = cache[sql] {
            known.reset()
            return known
        }
        let new = try prepare(sql)
        cache[sql] = new
        return new
    }

    /// The same for statements that run once a record: found without looking at their text.
    func statement(_ query: Query) throws -> Statement {
        if let known = queries[ObjectIdentifier(query)] {
            known.reset()
            return known
        }
        let new = try prepare(query.sql)
        queries[ObjectIdentifier(query)] = new
        return new
    }

    /// A prepared statement of the caller's own.
    public func prepare(_ sql: String) throws -> Statement {
        var prepared: OpaquePointer?
        let status = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        guard status == SQLITE_OK, let prepared else { throw error(status) }
        return Statement(prepared, self, atEnd: afterStatement.map { tell in { tell(sql, $0) } })
    }

    /// Runs `body` in one write transaction: all of it or nothing.
    public func write<Result>(_ body: () throws -> Result) throws -> Result {
        try transaction("BEGIN IMMEDIATE", body)
    }

    /// Runs `body` on one consistent snapshot, whatever others write meanwhile.
    public func read<Result>(_ body: () throws -> Result) throws -> Result {
        try transaction("BEGIN", body)
    }

    private var isRehearsing = false
    private var isInTransaction = false
    /// Something that should be taken back was not.
    private var isSpoiled = false

    /// Some errors (no memory, a full disk) take back the whole transaction. What comes then would be committed by itself.
    fileprivate func checkStep() throws {
        try beforeStep?()
        guard isInTransaction, isSpoiled || sqlite3_get_autocommit(handle) != 0 else { return }
        throw BackupError(
            .failed, "an error made SQLite take back all that was written; nothing was changed", at: path,
            remedy: "run the command again")
    }

    /// Takes back what was written since a savepoint, or all. What went wrong first is what the caller must hear of.
    private func rollBack(to savepoint: String? = nil) {
        guard sqlite3_get_autocommit(handle) == 0 else { return }
        let sql = savepoint.map { "ROLLBACK TO \($0); RELEASE \($0)" } ?? "ROLLBACK"
        if sqlite3_exec(handle, sql, nil, nil, nil) != SQLITE_OK { isSpoiled = true }
    }

    private func begin(_ sql: String) throws {
        try execute(sql)
        (isInTransaction, isSpoiled) = (true, false)
    }

    /// Runs `body` as if each transaction in it were committed when it ends, and takes all of them back at the end.
    func rehearse<Result>(_ body: () throws -> Result) throws -> Result {
        try begin("BEGIN IMMEDIATE")
        isRehearsing = true
        defer {
            rollBack()
            (isRehearsing, isInTransaction) = (false, false)
        }
        return try body()
    }

    /// Runs `body` inside the running transaction and takes back what it wrote.
    func takeBack<Result>(_ body: () throws -> Result) throws -> Result {
        try execute("SAVEPOINT trial")
        defer { rollBack(to: "trial") }
        return try body()
    }

    private func transaction<Result>(_ opening: String, _ body: () throws -> Result) throws -> Result {
        let savepoint = isRehearsing ? "rehearsal" : nil
        if let savepoint { try execute("SAVEPOINT \(savepoint)") } else { try begin(opening) }
        defer { if savepoint == nil { isInTransaction = false } }
        do {
            let result = try body()
            try execute(savepoint.map { "RELEASE \($0)" } ?? "COMMIT")
            return result
        } catch {
            rollBack(to: savepoint)
            throw error
        }
    }

    public func integer(_ sql: String) throws -> Int64 {
        let query = try statement(sql)
        defer { query.reset() }
        return try query.step() ? query.integer(0) : 0
    }

    public var changes: Int { Int(sqlite3_changes(handle)) }

    /// Whether the last call failed for want of a file handle: SQLite says only that it cannot open a file.
    private static func lacksHandles(_ handle: OpaquePointer?) -> Bool {
        [EMFILE, ENFILE].contains(sqlite3_system_errno(handle))
    }

    private static func tooManyFiles(_ path: String) -> BackupError {
        .exhausted("cannot be opened: Too many open files", ulimit: "-n", at: path)
    }

    func error(_ status: Int32) -> BackupError {
        let text = String(
            cString: sqlite3_errcode(handle) == SQLITE_OK ? sqlite3_errstr(status) : sqlite3_errmsg(handle))
        switch status & 0xFF {
        case SQLITE_BUSY, SQLITE_LOCKED:
            return BackupError(
                .locked, "is being written by another program", at: path, remedy: "try again when it has finished")
        // The file of shared memory that a reader needs, too, could not grow.
        case SQLITE_IOERR where status == SQLITE_IOERR | (19 << 8):
            return BackupError(
                .destinationFull, "No space left on device: reading a store needs a few KiB beside it", at: path,
                remedy: "free some space and run the command again")
        case SQLITE_FULL:
            return BackupError(
                .destinationFull, "No space left on device", at: path,
                remedy: "free some space and run the command again")
        case SQLITE_INTERRUPT: return BackupError(.interrupted, "interrupted")
        case SQLITE_NOMEM: return .exhausted(text, at: path)
        case SQLITE_TOOBIG:
            return BackupError(.damaged, Self.tooLarge, at: path)
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            return BackupError(.damaged, text, at: path, remedy: replacement ?? Self.checkFirst)
        case SQLITE_CANTOPEN where Self.lacksHandles(handle): return Self.tooManyFiles(path)
        case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM:
            return BackupError(.failed, "cannot be written: \(text)", at: path, remedy: BackupError.whoMayWrite)
        // A write: SQLite does not always tell why it failed.
        case SQLITE_IOERR where status == SQLITE_IOERR | (3 << 8):
            return BackupError(
                .failed, "\(text): the file could not be written", at: path,
                remedy: "free some space, lift the limit on file sizes ('ulimit -f' shows it) or check the disk")
        // All statements are ours: what SQLite does not know in one is gone, or has another name.
        case SQLITE_ERROR: return BackupError(.failed, text, at: path, remedy: replacement ?? Self.checkTables)
        default: return BackupError(.failed, text, at: path)
        }
    }
}

extension SQLite {
    static let checkTables = "'backup-tool store check' says what is wrong, and what mends it"

    /// For a store that must not be written any more.
    static let checkFirst =
        "keep it as it is; 'backup-tool store check' says what mends it, or brings a backup into a new store"
}

/// A prepared statement. Columns and parameters are read and bound by position, from 0 and from 1 as in C.
public final class Statement {
    private let handle: OpaquePointer
    private unowned let database: SQLite
    private var bindStatus = SQLITE_OK
    private let atEnd: ((_ steps: Int) -> Void)?

    fileprivate init(_ handle: OpaquePointer, _ database: SQLite, atEnd: ((Int) -> Void)?) {
        self.handle = handle
        self.database = database
        self.atEnd = atEnd
    }

    deinit {
        atEnd?(Int(sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_VM_STEP, 0)))
        sqlite3_finalize(handle)
    }

    public func reset() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        bindStatus = SQLITE_OK
    }

    /// Moves to the next row; false after the last.
    public func step() throws -> Bool {
        // An unbound parameter would be NULL, which is not what the caller said.
        guard bindStatus == SQLITE_OK else { throw database.error(bindStatus) }
        try database.checkStep()
        let status = sqlite3_step(handle)
        switch status {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default:
            let failure = database.error(status)
            sqlite3_reset(handle)
            throw failure
        }
    }

    /// Runs a statement that returns no rows, and makes it ready for the next time.
    public func run() throws {
        while try step() {}
        sqlite3_reset(handle)
    }

    private func note(_ status: Int32) -> Statement {
        if status != SQLITE_OK { bindStatus = status }
        return self
    }

    @discardableResult public func bind(_ index: Int32, _ value: Int64) -> Statement {
        note(sqlite3_bind_int64(handle, index, value))
    }

    @discardableResult public func bind(_ index: Int32, _ value: Int64?) -> Statement {
        note(value.map { sqlite3_bind_int64(handle, index, $0) } ?? sqlite3_bind_null(handle, index))
    }

    @discardableResult public func bind(_ index: Int32, _ text: String?) -> Statement {
        guard var text else { return note(sqlite3_bind_null(handle, index)) }
        return text.withUTF8 { utf8 in
            // No pointer would mean NULL, which an empty text is not.
            guard let start = utf8.baseAddress else {
                return note(sqlite3_bind_text(handle, index, "", 0, csqlite_transient()))
            }
            return start.withMemoryRebound(to: CChar.self, capacity: utf8.count) { chars in
                note(
                    sqlite3_bind_text64(
                        handle, index, chars, UInt64(utf8.count), csqlite_transient(), UInt8(SQLITE_UTF8)))
            }
        }
    }

    /// Binds text that the caller keeps where it is until the statement is reset.
    func bind(_ index: Int32, borrowed text: UnsafeRawBufferPointer) {
        // No pointer would mean NULL, which an empty text is not.
        guard let start = text.baseAddress?.assumingMemoryBound(to: CChar.self), text.count > 0 else {
            bind(index, "")
            return
        }
        _ = note(sqlite3_bind_text64(handle, index, start, UInt64(text.count), nil, UInt8(SQLITE_UTF8)))
    }

    @discardableResult func bind(_ index: Int32, blob: UnsafeRawBufferPointer) -> Statement {
        guard let start = blob.baseAddress, blob.count > 0 else { return note(sqlite3_bind_zeroblob(handle, index, 0)) }
        return note(sqlite3_bind_blob64(handle, index, start, UInt64(blob.count), csqlite_transient()))
    }

    enum Kind { case integer, text, other }

    var columnCount: Int32 { sqlite3_column_count(handle) }

    func kind(_ column: Int32) -> Kind {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: .integer
        case SQLITE_TEXT: .text
        default: .other
        }
    }

    /// The type of the value itself, which in a damaged database need not be the one that the column declares.
    enum ValueType { case integer, real, text, blob, null }

    func type(_ column: Int32) -> ValueType {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .real
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    func real(_ column: Int32) -> Double { sqlite3_column_double(handle, column) }

    /// The text of a column, or nil when its bytes are not UTF-8: `text` would repair them, and say nothing.
    func validText(_ column: Int32) -> String? {
        String(utf8: bytes(column))
    }

    func isInteger(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_INTEGER }
    public func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
    public func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
    public func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    public func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }
    public func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

    /// Whether the column is valid UTF-8: `text` would repair it, and a repaired name is another name.
    func isUTF8(_ column: Int32) -> Bool { isNull(column) || String(utf8: bytes(column)) != nil }

    /// Whether the column holds exactly this text.
    func equals(_ column: Int32, _ text: String) -> Bool {
        var text = text
        let stored = bytes(column)
        return text.withUTF8 { sameBytes(UnsafeRawBufferPointer($0), stored) }
    }

    /// The column's bytes; valid until the statement moves.
    public func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        // The pointer must be asked for before the length: the other order may convert in between.
        guard let start = sqlite3_column_blob(handle, column) else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
    }
}
