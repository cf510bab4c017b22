import Glibc

/// One line of `drills.jsonl`.
public struct DrillEntry: Sendable, Equatable {
    public let time: Timestamp
    /// What was restored: a file, a folder, or a vault.
    public let path: String
    /// The snapshot, where it was one of a vault.
    public let snapshot: String?
    /// The name that it first had, where that is another one.
    public var original: String?
    /// When what was restored had been made.
    public let madeAt: Timestamp?
    public let isOK: Bool
    /// How long it took until everything was back.
    public let seconds: Double
    public let files: Int
    public let bytes: Int64
    public let contentDigest: String?
    /// What was wrong.
    public let problems: [String]
    /// What is no damage and yet keeps the drill from being a proof, as `verify` says it.
    public let warnings: [String]

    public init(
        time: Timestamp, path: String, snapshot: String? = nil, madeAt: Timestamp?, isOK: Bool, seconds: Double,
        files: Int, bytes: Int64, contentDigest: String?, problems: [String], warnings: [String] = []
    ) {
        (self.time, self.path, self.snapshot, self.madeAt, self.isOK) = (time, path, snapshot, madeAt, isOK)
        (self.seconds, self.files, self.bytes) = (seconds, files, bytes)
        (self.contentDigest, self.problems, self.warnings) = (contentDigest, problems, warnings)
    }

    /// What came of it, in a word.
    public var verdict: String { isOK ? warnings.isEmpty ? "passed" : "passed with warnings" : "failed" }

    fileprivate var names: [String] { [snapshot, original].compactMap(\.self) }

    public var members: [JSON.Member] {
        func text(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }
        return [
            .init("time", .string(time.iso8601)), .init("path", .string(path)), .init("snapshot", text(snapshot)),
            .init("madeAt", text(madeAt?.iso8601)), .init("ok", .bool(isOK)),
            // To the millisecond: more would be noise.
            .init("seconds", .number(String((seconds * 1000).rounded() / 1000))), .init("files", JSON(files)),
            .init("bytes", JSON(bytes)), .init("contentDigest", text(contentDigest)),
            .init("problems", .array(problems.map { .string($0) })),
        ] + (warnings.isEmpty ? [] : [.init("warnings", .array(warnings.map { .string($0) }))])
            + (original.map { [.init("original", .string($0))] } ?? [])
    }

    init?(_ json: JSON) {
        guard let time = json["time"]?.string.flatMap({ Timestamp(iso8601: $0) }), let path = json["path"]?.string,
            let isOK = json["ok"]?.bool
        else { return nil }
        self.init(
            time: time, path: path, snapshot: json["snapshot"]?.string,
            madeAt: json["madeAt"]?.string.flatMap { Timestamp(iso8601: $0) }, isOK: isOK,
            seconds: json["seconds"]?.double ?? 0, files: Int(clamping: json["files"]?.integer ?? 0),
            bytes: json["bytes"]?.integer ?? 0, contentDigest: json["contentDigest"]?.string,
            problems: json["problems"]?.array?.compactMap(\.string) ?? [],
            warnings: json["warnings"]?.array?.compactMap(\.string) ?? [])
        original = json["original"]?.string
    }
}

/// The drills that were run, as a file that only grows. Each line names the SHA-256 of the line before, so that whoever
/// changes, removes or inserts one breaks every line after it. Of lines taken away at the end only who remembers the last
/// digest can know.
public struct DrillLog: Sendable {
    public let path: String
    /// Whether nothing can be read or written where it should be: then nothing is known of any drill.
    var isMissing = false

    public init(_ path: String) { self.path = path }

    public static func path(in folder: String) -> String { "\(folder)/drills.jsonl" }

    public struct History: Sendable, Equatable {
        public var entries: [DrillEntry] = []
        public var findings: [Finding] = []
        /// Of the last line, to be written down elsewhere.
        public var head: String?
        /// Of every line.
        public var heads: Set<String> = []

        public init() {}

        public var lastSuccess: DrillEntry? { entries.last { $0.isOK } }

        /// Of these, the newest whole one that ever passed, and the one that passed last: they are what can be relied on.
        public func proved(among items: [RetentionItem], now: Timestamp) -> Set<String> {
            var order: [String: Int] = [:]
            for (index, entry) in entries.enumerated() where entry.isOK {
                for name in entry.names { order[name] = index }
            }
            func place(_ item: RetentionItem) -> Int? { order[item.id] ?? item.original.flatMap { order[$0] } }
            let passed = items.filter { place($0) != nil && !$0.isPartial && $0.time.instant <= now }
            let newest = passed.max { $0.time < $1.time }
            let latest = passed.max { (place($0) ?? 0) < (place($1) ?? 0) }
            return Set([newest, latest].compactMap { $0?.id })
        }

        /// Of these, the ones whose last drill failed.
        public func failed(among items: [RetentionItem]) -> [RetentionItem] {
            var isOK: [String: Bool] = [:]
            for entry in entries { for name in entry.names { isOK[name] = entry.isOK } }
            return items.filter { (isOK[$0.id] ?? $0.original.flatMap { isOK[$0] }) == false }
        }
    }

    /// No file is an empty history.
    public func history() throws -> History {
        guard try !isMissing && FileStatus.ofTarget(path) != nil else { return History() }
        let bytes = try readAll(try FileHandle.openForReading(path))
        return bytes.withUnsafeBytes { DrillLog.read($0, name: path) }
    }

    /// Lines taken from the end break no chain; who remembers the digest of a last line misses it.
    public func loss(_ head: String?, from history: History, rememberedIn place: String) -> Finding? {
        guard !isMissing, let head, !history.heads.contains(head) else { return nil }
        return Finding(
            .contentMismatch, .damage, path, "has lost lines that were in it: \(place) remembers one that is gone",
            remedy: "drills of the past are no proof any more")
    }

    /// Throws where the file is something else: what `append` would add damages it.
    public func mustBeLog() throws {
        guard try FileStatus.ofTarget(path) != nil else { return }
        try mustBeLog(try readAll(try FileHandle.openForReading(path)))
    }

    /// Half of the lines at least are records of drills, whole or damaged. A crash may have cut off the only one.
    private func mustBeLog(_ bytes: [UInt8]) throws {
        let lines = DrillLog.lines(of: bytes[...])
        let records = lines.map { line in try? line.withUnsafeBytes { try JSON(parsing: $0) } }
        let isCut = records.count == 1 && records[0] == nil && bytes.last != 0x0A
        if isCut, zip(bytes, DrillLog.start).allSatisfy(==) { return }
        let count = zip(lines, records).count { line, record in
            record.flatMap(DrillEntry.init) != nil || Self.wasRecord(line, record)
        }
        guard count * 2 < lines.count else { return }
        throw BackupError(
            .refused, "is no log of drills, so nothing was added to it", at: path,
            remedy:
                "if it is a damaged log, move it away, and the next drill begins a new one; else name another file with "
                + "'backup-tool drill --log FILE'")
    }

    /// Whether a damaged line was a record, by two words of it. A flipped bit hits one at most, and where none is hit the line
    /// has both.
    private static func wasRecord(_ line: ArraySlice<UInt8>, _ json: JSON?) -> Bool {
        let words = ["previous", "problems"]
        if let json { return words.allSatisfy { json[$0] != nil } }
        return words.contains { line.contains(Array("\"\($0)\":".utf8)) }
    }

    /// How each line begins.
    private static let start = Array("{\"time\":\"".utf8)

    /// Adds a line that follows from the last one, durably. Two runs at once wait for each other.
    public func append(_ entry: DrillEntry) throws {
        try Directory.createAll(parent(of: path))
        let file = try FileHandle.openForAppending(path)
        let isNew = try file.status().size == 0
        let bytes = try readAll(file)
        try mustBeLog(bytes)
        let lines = DrillLog.lines(of: bytes[...])
        let previous = lines.last.map { line in line.withUnsafeBytes { SHA256Digest.of($0).hex } }
        let members = entry.members + [.init("previous", previous.map { .string($0) } ?? .null)]
        // A line that a crash cut off stays as it is, and is closed first.
        let closing = bytes.last.map { $0 == 0x0A ? "" : "\n" } ?? ""
        try file.write(closing + JSON.object(members).compact + "\n")
        try file.sync()
        if isNew { try Directory.sync(parent(of: path)) }
    }

    private func readAll(_ file: FileHandle) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try file.forEachChunk { chunk in
            bytes += chunk
            guard bytes.count <= 256 << 20 else {
                throw BackupError(.refused, "is larger than any log of drills should be", at: path)
            }
        }
        return bytes
    }

    private static func lines(of bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        bytes.split(separator: 0x0A)
    }

    /// Reads a log and follows the chain.
    static func read(_ bytes: UnsafeRawBufferPointer, name: String) -> History {
        var history = History()
        let lines = lines(of: Array(bytes)[...])
        for (index, line) in lines.enumerated() {
            let place = "\(name):\(index + 1)"
            let json = try? line.withUnsafeBytes { try JSON(parsing: $0) }
            if let json, let entry = DrillEntry(json) {
                if json["previous"]?.string != history.head {
                    history.findings.append(
                        Finding(
                            .contentMismatch, .damage, place,
                            "does not follow from the line before: the log was changed after it was written",
                            remedy:
                                "do not trust the lines above it; move the file away, and the next drill begins a new one"
                        ))
                }
                history.entries.append(entry)
            } else {
                history.findings.append(
                    Finding(
                        .malformed, .warning, place,
                        "is no record of a drill; a run that was interrupted may have left it",
                        remedy: "move the log away to begin a new one; the drills in it then count no more"))
            }
            let head = line.withUnsafeBytes { SHA256Digest.of($0).hex }
            history.head = head
            history.heads.insert(head)
        }
        return history
    }
}
