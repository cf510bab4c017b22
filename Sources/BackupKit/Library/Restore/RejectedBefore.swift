/// Tells a file of lines that an import rejected before from every other file, also from a copy of a log.
struct RejectedBefore {
    /// What the import reads.
    let paths: [String]
    let limits: ReadLimits

    /// Whether this import rejects each line of the file: it is no event, and one of the logs still has it.
    func holdsAll(of path: String) throws -> Bool {
        struct Stranger: Error {}
        var left: Set<SHA256Digest> = []
        do {
            try forEachLine(of: path) { line, digest in
                if let line, isEvent(line) || line.allSatisfy({ $0 <= 0x20 && $0 != 0 }) { throw Stranger() }
                left.insert(digest)
            }
        } catch is Stranger { return false }
        let sources = try Importer.readable(paths.flatMap { try Importer.sources(of: $0, limits: limits) }).sources
        for case .events(let log) in sources where !left.isEmpty { try forEachLine(of: log) { left.remove($1) } }
        return left.isEmpty
    }

    private func isEvent(_ line: UnsafeRawBufferPointer) -> Bool {
        (try? EventLine.record(line) { _ in 1 }) != nil
    }

    private func forEachLine(
        of path: String, _ body: (UnsafeRawBufferPointer?, SHA256Digest) throws -> Void
    ) throws {
        let file = try LineWindows(path, limit: limits.lineBytes)
        let hasher = SHA256Hasher()
        var buffer: [UInt8] = []
        for window in 0..<file.count {
            try file.forEachLine(of: window, in: &buffer) { line, offset in
                if let line {
                    hasher.update(line)
                } else {
                    try file.forEachPiece(ofLineAt: offset) { hasher.update($0) }
                }
                try body(line, hasher.finish())
            }
            try Interrupt.check()
        }
    }
}

extension Importer {
    /// Calls `body`, which imports event logs, and keeps their lines that cannot be taken in a file of their own, which a
    /// dry run does not write. Throws where that file lies in what is imported, or holds what this import does not reject.
    public static func keepingRejected<Result>(
        in path: String, of paths: [String], _ options: ImportOptions, replace: Bool,
        _ body: (ImportOptions) throws -> Result
    ) throws -> Result {
        let place = try OutputPlace.behindLinks(path)
        let before = RejectedBefore(paths: paths, limits: options.limits)
        try Replacing(linesRejectedFrom: paths, holdsAll: before.holdsAll).check(place, replace: replace)
        if options.dryRun { return try body(options) }
        return try AtomicFile.write(place, replace: replace) { file in
            var options = options
            options.rejected = file
            return try body(options)
        }
    }
}
