import Glibc
import Synchronization

/// Brings the entries of a carrier into a folder of plain files, hashing them on the way. Nothing outside the folder is
/// ever touched, whatever the entries are called.
enum Staging {
    struct Result: Sendable {
        var files: [String: FileFacts] = [:]
        /// Seconds since 1970.
        var modified: [String: Int64] = [:]
        var findings: [Finding] = []
        /// Entries whose bytes could not be read whole; they were not written.
        var damaged: Set<String> = []
    }

    /// Every entry is hashed; those that `keep` names are written, too.
    static func extract(
        _ reader: any CarrierReader, into folder: String, progress: Progress = .none,
        keep: @escaping @Sendable (EntryInfo) -> Bool = { _ in true }
    ) throws -> Result {
        let root = try RootDirectory(folder)
        let state = Mutex((result: Result(), bytes: Int64(0)))
        let findings = try reader.visit { entry, bytes in
            guard !Layout.isClutter(entry.path) else { return }
            do {
                let digest = try keep(entry) ? write(entry, bytes, below: root) : hash(bytes)
                let done = state.withLock { state in
                    state.result.files[entry.path] = FileFacts(size: entry.size, digest: digest)
                    state.result.modified[entry.path] = entry.modified
                    state.bytes += entry.size
                    return state.bytes
                }
                progress.report(ProgressEvent("extracting", done: UInt64(done), item: entry.path))
            } catch let error as BackupError where error.code == .damaged {
                unlink("\(folder)/\(entry.path)")
                state.withLock { state in
                    state.result.damaged.insert(entry.path)
                    state.result.findings.append(Finding(.entryDamaged, .damage, entry.path, error.message))
                }
            }
        }
        return state.withLock { state in
            state.result.findings += findings
            return state.result
        }
    }

    private static func hash(_ bytes: any EntryBytes) throws -> SHA256Digest {
        let hasher = SHA256Hasher()
        try bytes.forEachChunk { chunk in
            try Interrupt.check()
            hasher.update(chunk)
        }
        return hasher.finish()
    }

    private static func write(
        _ entry: EntryInfo, _ bytes: any EntryBytes, below root: RootDirectory
    ) throws -> SHA256Digest {
        let file = try root.create(entry.path)
        let hasher = SHA256Hasher()
        try bytes.forEachChunk { chunk in
            try Interrupt.check()
            hasher.update(chunk)
            try file.write(chunk)
        }
        try file.setModified(seconds: entry.modified)
        try file.sync()
        return hasher.finish()
    }
}
