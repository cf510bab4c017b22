import TestSupport
import Testing

@testable import BackupKit

/// Records that come in by thousands are told from those that the store has by their keys alone.
@Suite struct RecordBatchTests {
    private static let sort = (zone: "Z", type: "Item")

    private func fields(_ content: Int) -> String { "{\"x\":\(content)}" }

    /// What each row is, one after the other.
    private func verdicts(_ rows: [(id: Int, content: Int)], _ known: [Int: Int]) -> [RecordBatch.Verdict] {
        var seen: [Int: [(content: Int, verdict: RecordBatch.Verdict)]] = [:]
        return rows.map { id, content in
            let verdict: RecordBatch.Verdict
            if let before = seen[id], let first = before.first {
                // The first of several decides, unless they say the same.
                let isSame = before.contains { $0.content == content }
                verdict = isSame && first.verdict != .other ? .known : .other
            } else {
                verdict = known[id].map { $0 == content ? .known : .other } ?? .new
            }
            seen[id, default: []].append((content, verdict))
            return verdict
        }
    }

    @Test(arguments: testSeeds(isTorture ? 400 : 20))
    func whatIsNewAndWhatIsKnownIsToldRight_andOnlyTheNewIsInserted(_ seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withStore { test in
            var known: [Int: Int] = [:]
            for id in 0..<6 where random.chance(2) {
                known[id] = random.below(2)
                try test.store.take(record("r\(id)", fields(known[id] ?? 0)))
            }
            let rows = (0..<10).map { _ in (id: random.below(9), content: random.below(2)) }
            var batch = RecordBatch(test.store.hasher, sorts: [Self.sort])
            for (id, content) in rows {
                batch.add(sort: 0, createdAt: time(0), modifiedAt: time(0)) {
                    $0 += "r\(id)".utf8
                } fields: {
                    $0 += fields(content).utf8
                }
            }
            let expected = verdicts(rows, known)
            let found = try test.store.write { try test.store.insertNew(of: batch) }
            #expect(found == expected, "seed \(seed): \(rows), known \(known)")
            for (row, verdict) in zip(rows, expected) where verdict == .new { known[row.id] = row.content }
            let all = try test.store.all().map { "\($0.localID) \($0.fields)" }.sorted()
            #expect(all == known.map { "r\($0.key) \(fields($0.value))" }.sorted(), "seed \(seed)")
        }
    }
}
