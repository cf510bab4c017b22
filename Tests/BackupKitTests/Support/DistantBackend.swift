import Synchronization
import TestSupport

@testable import BackupKit

/// A folder as a store of objects far away shows it: listings know of a change only when `settling` seconds are over, and
/// calls fail now and then, before they did their work or after it.
final class DistantBackend: VaultBackend {
    private struct Change {
        let file: VaultFile
        /// What a listing that does not know of the change shows.
        let sizeBefore: Int64?
        let end: Double
    }

    private struct State {
        var changes: [Change] = []
        var generator: SeededGenerator
        var chance = 0.0
        var failures = 0
    }

    private let inner: any VaultBackend
    private let state: Mutex<State>
    let settling: Double
    var location: String { inner.location }

    init(_ inner: any VaultBackend, settling: Double, seed: UInt64 = 1) {
        self.inner = inner
        self.settling = settling
        state = Mutex(State(generator: SeededGenerator(seed: seed)))
    }

    /// Of a hundred calls, so many fail from now on.
    func fail(percent: Int) { state.withLock { $0.chance = Double(percent) / 100 } }

    var failures: Int { state.withLock { $0.failures } }

    private func mayFail() throws {
        let fails = state.withLock { state in
            guard state.chance > 0, Double(state.generator.below(1_000_000)) / 1e6 < state.chance else { return false }
            state.failures += 1
            return true
        }
        if fails { throw BackupError(.temporary, "no answer", at: location) }
    }

    /// Does the work between two chances to fail.
    private func risk<Result>(_ work: () throws -> Result) throws -> Result {
        try mayFail()
        let result = try work()
        try mayFail()
        return result
    }

    private func note(_ file: VaultFile, sizeBefore: Int64?) {
        let now = monotonicSeconds()
        state.withLock { state in
            state.changes.removeAll { $0.end + settling < now }
            state.changes.append(Change(file: file, sizeBefore: sizeBefore, end: now))
        }
    }

    func list(_ kind: VaultFile.Kind) throws -> VaultListing {
        let begin = monotonicSeconds()
        let young = state.withLock { $0.changes.filter { $0.file.kind == kind && $0.end + settling > begin } }
        var listing = try risk { try inner.list(kind) }
        // Backwards, to what was there before all of them.
        for change in young.reversed() {
            listing.items.removeAll { $0.id == change.file.id }
            if let size = change.sizeBefore { listing.items.append(.init(id: change.file.id, size: size)) }
        }
        listing.items.sort { $0.id < $1.id }
        return listing
    }

    func size(_ file: VaultFile) throws -> Int64? { try risk { try inner.size(file) } }
    func hasPlace(for file: VaultFile) throws -> Bool { try risk { try inner.hasPlace(for: file) } }

    func read(_ file: VaultFile, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try risk { try inner.read(file, at: offset, into: buffer) }
    }

    func write(_ file: VaultFile, _ bytes: UnsafeRawBufferPointer) throws {
        try risk {
            try inner.write(file, bytes)
            note(file, sizeBefore: nil)
        }
    }

    func remove(_ files: [VaultFile]) throws {
        for file in files {
            try risk {
                let size = try inner.size(file)
                try inner.remove([file])
                if size != nil { note(file, sizeBefore: size) }
            }
        }
    }

    func sweep() throws -> Int { try risk { try inner.sweep() } }
}
