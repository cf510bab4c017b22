import Glibc

/// A snapshot with its name.
public struct Snapshot: Sendable, Equatable {
    public let id: SHA256Digest
    public let file: SnapshotFile

    public init(id: SHA256Digest, file: SnapshotFile) {
        self.id = id
        self.file = file
    }

    public var time: GoTime { file.time }
    /// What people type.
    public var shortID: String { String(id.hex.prefix(8)) }

    /// As restic prints it.
    public var json: JSON {
        .object((file.json.members ?? []) + [.init("id", .string(id.hex)), .init("short_id", .string(shortID))])
    }
}

extension SnapshotFile {
    /// Where a snapshot holds a library: the same for every machine and every year.
    public static let libraryFolder = "library"

    /// restic may keep other things in the same vault.
    public var isLibrary: Bool { paths == ["/\(Self.libraryFolder)"] }

    /// Something is missing in it, or may be.
    public var isDoubtful: Bool { tags.contains(where: SnapshotTag.isDoubt) }

    /// The tags as a table shows them: a narrow terminal cuts off the last ones.
    public var tagsWithDoubtsFirst: [String] {
        tags.filter(SnapshotTag.isDoubt) + tags.filter { !SnapshotTag.isDoubt($0) }
    }
}

/// The tags that runs of ours give.
public enum SnapshotTag {
    /// Holds much less than the one before, and nobody has said yet that this is right.
    public static let suspect = "suspect"
    /// A part of the library could not be read, or was not asked for.
    public static let partial = "partial"

    /// Whether it says that something is missing, or may be.
    static func isDoubt(_ tag: String) -> Bool { tag == suspect || tag == partial }

    /// Whether somebody else may give it. A comma separates tags wherever they are asked for.
    static func mayBeGiven(_ tag: String) -> Bool {
        !tag.isEmpty && !isDoubt(tag) && !tag.contains(",") && tag.first != " " && tag.last != " "
    }
}

extension Vault {
    /// All snapshots that can be read, the oldest first, and what is wrong with the others.
    public func snapshots() throws -> (snapshots: [Snapshot], findings: [Finding]) {
        let listing = try backend.list(.snapshot)
        let ids = listing.items.map(\.id)
        let results = try Parallel.map(ids.count, state: { try VaultCipher(key) }) { cipher, number in
            try readSnapshot(ids[number], cipher)
        }
        var snapshots: [Snapshot] = []
        var findings = Self.misplaced(listing)
        for (id, result) in zip(ids, results) {
            switch result {
            case .success(let snapshot): if let snapshot { snapshots.append(snapshot) }
            case .failure(let error):
                let file = VaultFile(.snapshot, id)
                findings.append(
                    try misfiled(file)
                        ?? Finding(
                            .unreadable, .damage, file.path, "the snapshot cannot be read: \(error.message)",
                            // What cannot be opened may be whole.
                            remedy: error.code == .damaged
                                ? "bring its file back from a copy, or remove it with "
                                    + TypedCommand.quoted("vault forget", [String(id.hex.prefix(8))])
                                : error.remedy))
            }
        }
        return (snapshots.sorted(by: Self.isEarlier), findings)
    }

    /// All snapshots. Throws when one cannot be read, for callers that rely on there being no others.
    public func everySnapshot() throws -> [Snapshot] {
        let (all, findings) = try snapshots()
        if let damage = findings.first(where: { $0.severity == .damage }) {
            throw BackupError(.damaged, damage.message, at: damage.subject, remedy: damage.remedy)
        }
        return all
    }

    /// One snapshot by its whole name.
    public func snapshot(_ id: SHA256Digest) throws -> Snapshot {
        guard let snapshot = try readSnapshot(id, VaultCipher(key)).get() else {
            throw BackupError(.notFound, "there is no such snapshot", at: backend.place(VaultFile(.snapshot, id)))
        }
        return snapshot
    }

    /// Throws when it cannot be told whether a snapshot is damaged: it may be one that must be kept.
    public func mustBeReadableOrDamaged(_ id: SHA256Digest) throws {
        guard case .failure(let error) = try readSnapshot(id, VaultCipher(key)) else { return }
        guard error.code == .damaged else { throw error }
        try refuseMisfiled(VaultFile(.snapshot, id))
    }

    private func readSnapshot(_ id: SHA256Digest, _ cipher: VaultCipher) throws -> Result<Snapshot?, BackupError> {
        do {
            let json = try unpacked(.snapshot, id, cap: Unpacked.Cap.snapshot, cipher)
            return .success(Snapshot(id: id, file: try json.withUnsafeBytes { try SnapshotFile(parsing: $0) }))
        } catch let error as BackupError where error.isOfBytes {
            // Forgotten since it was listed.
            return error.code == .notFound ? .success(nil) : .failure(error)
        }
    }

    private static func isEarlier(_ left: Snapshot, _ right: Snapshot) -> Bool {
        let (a, b) = (left.time, right.time)
        if a.seconds != b.seconds { return a.seconds < b.seconds }
        return a.nanoseconds != b.nanoseconds ? a.nanoseconds < b.nanoseconds : left.id < right.id
    }

    /// The snapshot that a person means: the beginning of its name, "latest", or a date or time, which stands for the
    /// last one until then (a bare date includes its day, as long as that is on this machine's wall clock). Words and dates
    /// mean libraries, where there are any. Throws for "latest" and dates where a snapshot cannot be read: it may be the one.
    public func resolve(_ word: String, now: Timestamp = Clock.system.now()) throws -> Snapshot {
        let subject = "\(backend.location)@\(word)"
        guard !word.isEmpty else {
            throw BackupError(
                .usage, "names no snapshot", at: subject,
                remedy: "write @latest, or an id: 'backup-tool vault snapshots' lists them")
        }
        let (all, findings) = try snapshots()
        func none(_ what: String) -> BackupError {
            let unread = findings.count { $0.severity == .damage }
            return BackupError(
                .failed, what, at: subject,
                remedy: unread > 0
                    ? "\(unread) snapshots cannot be read; see 'backup-tool vault check'"
                    : "see 'backup-tool vault snapshots'")
        }
        func last(_ found: Snapshot?, or message: String) throws -> Snapshot {
            if let unread = findings.first(where: { $0.severity == .damage }) {
                throw BackupError(
                    .damaged, "cannot tell which snapshot is meant: \(unread.subject) cannot be read", at: subject,
                    remedy: unread.advice("or name a snapshot by its id: 'backup-tool vault snapshots' lists them"))
            }
            guard let found else { throw none(message) }
            return found
        }
        var libraries = all.filter(\.file.isLibrary)
        if libraries.isEmpty { libraries = all }
        if word == "latest" {
            // A clock that once went wrong must not hide every later backup.
            let past = libraries.last { $0.time.timestamp <= now }
            return try last(past ?? libraries.last, or: "the vault has no snapshots")
        }
        let isDate = word.utf8.count == 10
        if let time = LocalTime(word), word.contains("-") {
            let end = isDate ? Self.endOfDay(time.day) : time.instant.milliseconds + 999
            return try last(
                libraries.last { $0.time.timestamp.milliseconds <= end }, or: "no snapshot is as old as that")
        }
        let prefix = word.lowercased()
        let found = all.filter { $0.id.hex.hasPrefix(prefix) }
        guard let snapshot = found.first, !prefix.isEmpty else { throw none("there is no such snapshot") }
        guard found.count == 1 else {
            throw BackupError(.usage, "\(found.count) snapshots begin so", at: subject, remedy: "give more digits")
        }
        return snapshot
    }

    /// A day has 23 or 25 hours twice a year, and begins when the people here say so.
    private static func endOfDay(_ day: CivilDate) -> Int64 {
        var wall = tm()
        wall.tm_year = Int32(clamping: day.year - 1900)
        wall.tm_mon = Int32(clamping: day.month - 1)
        wall.tm_mday = Int32(clamping: day.day + 1)
        wall.tm_isdst = -1
        return Int64(mktime(&wall)) * 1000 - 1
    }
}

extension GoTime {
    /// On this machine's wall clock, to the second: what `@2026-11-01` goes by, too.
    public var localText: String {
        var time = time_t(seconds)
        var wall = tm()
        guard localtime_r(&time, &wall) != nil else { return String(text.prefix(19)) }
        var bytes = [CChar](repeating: 0, count: 64)
        let count = strftime(&bytes, bytes.count, "%Y-%m-%dT%H:%M:%S", &wall)
        return String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
