import Synchronization

/// Compares what a carrier holds with a list of what it should hold.
enum CarrierCheck {
    /// Hashes every entry and reports what is damaged, missing or unexpected.
    static func digests(
        _ reader: any CarrierReader, expected: [String: FileFacts], progress: Progress = .none
    ) throws -> [Finding] {
        let tally = Tally(expected: expected, progress: progress)
        var findings = try reader.visit { entry, bytes in
            let hasher = SHA256Hasher()
            do {
                try UnreadableEntry.guarding(bytes) { hasher.update($0) }
                tally.seen(entry, hasher.finish())
            } catch let error as UnreadableEntry {
                tally.damaged(entry, error)
            }
        }
        findings += tally.finish()
        return findings
    }

    /// What was seen so far; several threads report to it.
    final class Tally: Sendable {
        private struct State {
            var seen: Set<String> = []
            var findings: [Finding] = []
            var bytes: Int64 = 0
        }

        private let expected: [String: FileFacts]
        private let total: Int64
        private let progress: Progress
        private let state = Mutex(State())

        init(expected: [String: FileFacts], progress: Progress) {
            self.expected = expected
            self.progress = progress
            total = expected.values.reduce(0) { $0 &+ $1.size }
        }

        func seen(_ entry: EntryInfo, _ digest: SHA256Digest?) {
            let finding = judge(entry, digest)
            let done = state.withLock { state in
                state.seen.insert(entry.path)
                state.bytes += entry.size
                if let finding { state.findings.append(finding) }
                return state.bytes
            }
            progress.report(
                ProgressEvent("verifying", done: UInt64(done), of: UInt64(max(0, total)), item: entry.path))
        }

        /// What is not looked at is not missed.
        func passOver(_ path: String) { state.withLock { _ = $0.seen.insert(path) } }

        func damaged(_ entry: EntryInfo, _ error: UnreadableEntry) {
            state.withLock { state in
                state.seen.insert(entry.path)
                state.findings.append(error.finding(entry))
            }
        }

        private func judge(_ entry: EntryInfo, _ digest: SHA256Digest?) -> Finding? {
            guard let facts = expected[entry.path] else {
                if EntryName.isClutter(entry.path) { return nil }
                return Finding(
                    .entryUnexpected, .damage, entry.path, "is not in the manifest",
                    remedy: "somebody added it after the export")
            }
            if facts.size != entry.size {
                return Finding(
                    .sizeMismatch, .damage, entry.path, "has \(entry.size) bytes instead of \(facts.size)")
            }
            if let digest, digest != facts.digest {
                return Finding(
                    .digestMismatch, .damage, entry.path,
                    "does not have the SHA-256 that the backup lists for it: its bytes were changed")
            }
            return nil
        }

        var isSound: Bool { state.withLock { $0.findings.isEmpty } }

        func finish() -> [Finding] {
            state.withLock { state in
                let missing = expected.keys.filter { !state.seen.contains($0) }.sorted()
                return state.findings.sorted { $0.subject < $1.subject }
                    + missing.map { Finding(.entryMissing, .damage, $0, "is in the manifest and not here") }
            }
        }
    }
}
