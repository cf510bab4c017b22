import Glibc

/// A store for one purpose, gone afterwards.
public enum ScratchStore {
    /// In a scratch store no time lies in the future: what a backup says is to come out as it says it.
    public static let clock = Clock.fixed(Timestamp(iso8601: "9999-12-31T00:00:00Z") ?? Clock.system.now())

    /// Whether `bytes` fit is asked before: a disk that is full is full for others, too.
    public static func with<Result>(
        roomFor bytes: Int64 = 0, clock: Clock = clock, _ body: (Store) throws -> Result
    ) throws -> Result {
        try withFolder { folder in
            // What killed runs left there is gone by now.
            if let free = Directory.freeBytes(of: folder), free < bytes {
                throw BackupError(
                    .destinationFull, "\(bytes) bytes would be restored to here, and \(free) are free",
                    at: parent(of: folder), remedy: "set TMPDIR to a folder with more room")
            }
            return try body(try Store.createAside("\(folder)/store.db", clock: clock))
        }
    }

    /// For a dry run that would make a store at `path`.
    static func with<Result>(standingFor path: String, _ body: (Store) throws -> Result) throws -> Result {
        try with(clock: .system) { scratch in
            scratch.standsFor = path
            return try body(scratch)
        }
    }

    /// A private folder for one purpose, gone afterwards.
    static func withFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
        let name = try "\(SpoolFile.folder())/backup-tool-scratch"
        removeLeftovers(of: name)
        let folder = AtomicFile.temporaryName(for: name)
        try Directory.create(folder)
        let result: Result
        do { result = try body(folder) } catch {
            try Directory.removeTree(folder)
            throw error
        }
        try Directory.removeTree(folder)
        return result
    }

    /// What runs of ours that were killed left behind. The folder is everybody's: what others left is theirs.
    private static func removeLeftovers(of name: String) {
        let prefix = ".\(lastComponent(of: name))\(AtomicFile.temporaryMark)"
        // Where the folder cannot be listed there is nothing that we could remove.
        for leftover in (try? Directory.names(in: parent(of: name))) ?? [] where leftover.hasPrefix(prefix) {
            guard let pid = Int32(leftover.dropFirst(prefix.count).prefix { $0.isNumber }), pid > 0 else { continue }
            let path = "\(parent(of: name))/\(leftover)"
            var status = stat()
            guard lstat(path, &status) == 0, status.st_uid == geteuid(), kill(pid, 0) != 0, errno == ESRCH else {
                continue
            }
            try? Directory.removeTree(path)
        }
    }
}
