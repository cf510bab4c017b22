import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// The fast way of importing event logs must do what taking line by line does.
@Suite struct EventIntakeTests {
    /// Takes the files by the fast way, in windows of a few lines.
    private func fast(_ paths: [String], into store: Store, windowBytes: Int64 = 300) throws -> IntakeResult {
        let scan = try EventScan(paths, for: store, lineBytes: 4096, windowBytes: windowBytes)
        let intake = Intake(store)
        let (_, batch) = try store.batch(kind: "import", source: "test") {
            try EventIntake(intake, scan).take()
            return ((), summary: intake.summary)
        }
        return intake.finished(batch)
    }

    /// Takes them as into a store that has nothing yet, whatever it has.
    private func load(_ paths: [String], into store: Store) throws -> IntakeResult {
        let intake = Intake(store)
        let (_, batch) = try store.batch(kind: "import", source: "test") {
            try EventLoad(intake, paths, lineBytes: 4096).take()
            return ((), summary: intake.summary)
        }
        return intake.finished(batch)
    }

    private func slow(_ paths: [String], into store: Store) throws -> IntakeResult {
        let intake = Intake(store)
        var limits = ReadLimits()
        limits.lineBytes = 4096
        let (_, batch) = try store.batch(kind: "import", source: "test") {
            for path in paths { try FileIntake(intake, limits).takeEvents(path: path, name: path) }
            return ((), summary: intake.summary)
        }
        return intake.finished(batch)
    }

    private func line(_ random: inout SeededGenerator) -> String {
        let minute = 10 + Int.random(in: 0..<40, using: &random)
        let time = "2026-02-14T15:\(minute):00+01:00"
        let note = ["a", "b", "é", "\\u00e9", "c\\\"d"].randomElement(using: &random) ?? ""
        switch Int.random(in: 0..<12, using: &random) {
        case 0: return ""
        case 1: return "{\"time\":\"\(time)\",\"type\":"
        case 2: return "{\"id\":\"x\",\"time\":\"now\",\"type\":\"eten\"}"
        case 3: return "{\"id\":\"y\",\"time\":\"\(time)\",\"type\":\"eten\",\"type\":\"eten\"}"
        case 4: return "{\"id\":\"z\",\"time\":\"\(time)\",\"type\":\"eten\",\"photo\":\"../x.jpg\"}"
        case 5: return "{\"id\":\"far\",\"time\":\"2999-01-01T00:00Z\",\"type\":\"eten\"}"
        case 6...7: return "{\"time\":\"\(time)\",\"type\":\"eten\",\"note\":\"\(note)\"}"
        case 8: return String(repeating: "x", count: 5000)
        default:
            let id = Int.random(in: 0..<30, using: &random)
            let end = Bool.random(using: &random) ? "" : "\r"
            return
                "{\"id\":\"\(id)\",\"time\":\"\(time)\",\"type\":\"eten\",\"modified_at\":\"\(time)\",\"note\":\"\(note)\"}\(end)"
        }
    }

    @Test func theFastWayDoesWhatTheSlowWayDoes() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        for round in 0..<(isTorture ? 2000 : 25) {
            countRounds()
            try withTemporaryFolder { folder in
                var paths: [String] = []
                for file in 0..<Int.random(in: 1...3, using: &random) {
                    let lines = (0..<Int.random(in: 0...25, using: &random)).map { _ in line(&random) }
                    let end = Bool.random(using: &random) ? "\n" : ""
                    paths.append("\(folder)/\(file).jsonl")
                    try writeFile(paths[file], (file == 0 ? "\u{FEFF}" : "") + lines.joined(separator: "\n") + end)
                }
                let clock = TestClock().clock
                let (one, two, three) = (
                    try Store.create("\(folder)/1.db", clock: clock), try Store.create("\(folder)/2.db", clock: clock),
                    try Store.create("\(folder)/3.db", clock: clock)
                )
                for turn in 0..<2 {
                    let (left, right) = (try fast(paths, into: one), try slow(paths, into: two))
                    let place = "seed \(seed), round \(round), turn \(turn)"
                    let loaded = try load(paths, into: three)
                    #expect(try three.contentDigest() == two.contentDigest(), "\(place)")
                    #expect(loaded.read == right.read && loaded.rejected == right.rejected, "\(place)")
                    #expect(loaded.added == left.added && loaded.unchanged == left.unchanged, "\(place)")
                    #expect(try one.contentDigest() == two.contentDigest(), "\(place)")
                    #expect(left.read == right.read && left.rejected == right.rejected, "\(place)")
                    if turn == 0 { #expect(left.added == right.added, "\(place)") }
                    #expect(turn == 0 || left.writes == 0 && left.unchanged == right.unchanged, "\(place)")
                }
                try checkSound("\(folder)/1.db")
                try checkSound("\(folder)/3.db")
            }
        }
    }
}
