import Glibc
import Synchronization

/// Brings the entries of a carrier into a folder of plain files, hashing them on the way. Nothing outside the folder is
/// ever touched, whatever the entries are called.
final class Staging: Sendable {
    struct Result: Sendable {
        var files: [String: FileFacts] = [:]
        /// Seconds since 1970.
        var modified: [String: Int64] = [:]
        /// Files that nobody has asked for: what is wrong with them is not told.
        var passedOver: Set<String> = []
        /// What the carrier itself is found to be, and what its contents are.
        var findings: [Finding] = []
    }

    private let layout: OpenedLayout
    private let folder: String
    private let root: RootDirectory
    private let contents: ContentTally
    private let progress: Progress
    private let state = Mutex((result: Result(), bytes: Int64(0)))

    init(_ layout: OpenedLayout, into folder: String, _ limits: ReadLimits, progress: Progress = .none) throws {
        (self.layout, self.folder, self.progress) = (layout, folder, progress)
        root = try RootDirectory(folder)
        contents = ContentTally(layout, limits, .none)
    }

    /// Reads and judges the wanted entries. Those that `isKept` names are written, too, as far as their bytes could be read
    /// whole.
    func read(
        where isWanted: @Sendable (EntryInfo) -> Bool = { _ in true },
        keep isKept: @Sendable (EntryInfo) -> Bool = { _ in true }
    ) throws {
        let findings = try layout.reader.visit(where: isWanted) { entry, bytes in
            guard !layout.isClutter(entry.path) else { return }
            do { try read(entry, bytes, keep: isKept(entry)) } catch let problem as UnreadableEntry {
                unlink("\(folder)/\(entry.path)")
                contents.damaged(entry, problem)
            }
        }
        state.withLock { $0.result.findings += findings }
    }

    private func read(_ entry: EntryInfo, _ bytes: any EntryBytes, keep: Bool) throws {
        let file = try keep ? root.create(entry.path) : nil
        let digest = try contents.read(entry, bytes) { try file?.write($0) }
        try file?.setModified(seconds: entry.modified)
        try file?.sync()
        let done = state.withLock { state in
            state.result.files[entry.path] = FileFacts(size: entry.size, digest: digest)
            state.result.modified[entry.path] = entry.modified
            state.bytes += entry.size
            return state.bytes
        }
        progress.report(ProgressEvent("extracting", done: UInt64(done), item: entry.path))
    }

    /// Takes the manifest's word for a file that nobody asks for.
    func trust(_ path: String) {
        contents.trust(path)
        state.withLock { _ = $0.result.passedOver.insert(path) }
    }

    /// Whether nothing is wrong with what was read so far.
    var isSound: Bool { state.withLock { $0.result.findings.isEmpty } && contents.isSound }

    func finish() -> Result {
        state.withLock { state in
            state.result.findings += contents.judge()
            return state.result
        }
    }
}

/// An entry whose bytes cannot be had, because they are damaged or because the disk or its permissions refuse them. The
/// others may still be sound.
struct UnreadableEntry: Error {
    let error: BackupError

    func finding(_ entry: EntryInfo) -> Finding {
        Finding(
            error.code == .damaged ? .entryDamaged : .unreadable, .damage, entry.path, error.message,
            remedy: error.remedy)
    }

    /// Hands over the entry's bytes to somebody who makes their digest; throws this error when they could not be read,
    /// and what `body` throws as it is.
    static func guarding(_ bytes: any EntryBytes, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var own: (any Error)?
        do {
            try bytes.forEachChunkToDigest { chunk in
                do {
                    try Interrupt.check()
                    try body(chunk)
                } catch {
                    own = error
                    throw error
                }
            }
        } catch let error as BackupError where own == nil && isOfTheEntry(error) { throw UnreadableEntry(error: error) }
    }

    private static func isOfTheEntry(_ error: BackupError) -> Bool {
        [.damaged, .failed, .notFound].contains(error.code)
    }
}
