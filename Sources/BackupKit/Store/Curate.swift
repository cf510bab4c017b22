/// What a person does to single records by one command: a batch, which an undo takes back.
extension Store {
    public enum Curation: String, Sendable { case delete, enableCloud = "enable-cloud" }

    /// What became of the records that a person named.
    public struct Curated: Sendable {
        public let ids: [RecordID]
        /// Nil where nothing was changed.
        public let batch: Int64?
        public var findings: [Finding] = []
    }

    /// All of the records or none.
    public func curate(_ what: Curation, _ ids: [String], dryRun: Bool = false) throws -> Curated {
        let (ids, batch) = try curate(what.rawValue, ids, dryRun: dryRun) {
            switch what {
            case .delete: try delete(ids)
            case .enableCloud: try enableCloud(ids)
            }
        }
        return Curated(ids: ids, batch: batch?.id)
    }

    func curate<Result>(
        _ kind: String, _ subjects: [String], dryRun: Bool = false, _ body: () throws -> Result
    ) throws -> (result: Result, batch: Batch?) {
        try batch(kind: kind, source: firstNames(subjects), dryRun: dryRun, notesIdle: true) {
            (try body(), summary: "{}")
        }
    }
}

/// The last command that could have changed something and did not. An undo must not take back an older one instead
/// without a word.
public struct IdleCommand: Sendable, Equatable {
    public let kind: String
    public let source: String
    let at: Timestamp
}

extension Store {
    /// Beside the database, which such a command leaves as it is.
    private var idlePath: String { path + "-idle" }

    func noteIdle(kind: String, source: String) throws {
        let note = JSON.object([
            JSON.Member("at", JSON(clock.now().milliseconds)), JSON.Member("kind", .string(kind)),
            JSON.Member("source", .string(source)),
        ])
        if let status = try FileStatus.ofName(idlePath), status.isDirectory {
            throw Self.notOurs(status, at: idlePath)
        }
        try AtomicFile.write(idlePath, replace: true) { try $0.write(note.compact + "\n") }
    }

    func forgetIdle() throws {
        // A folder there is somebody else's, and says nothing.
        if try FileStatus.ofName(idlePath)?.isDirectory == false { try AtomicFile.remove([idlePath]) }
    }

    /// The last command, if it changed nothing.
    func idleCommand() throws -> IdleCommand? {
        // Anybody may have put there what they like, and then it says nothing.
        guard let status = try FileStatus.ofName(idlePath), status.isRegular, status.size < 1 << 16 else { return nil }
        var bytes: [UInt8] = []
        try FileHandle.openForReading(idlePath).forEachChunk { bytes += $0 }
        guard let note = try? JSON(parsing: String(decoding: bytes, as: UTF8.self)), let at = note["at"]?.integer,
            let kind = note["kind"]?.string, let source = note["source"]?.string
        else { return nil }
        return IdleCommand(kind: kind, source: source, at: Timestamp(milliseconds: at))
    }
}
