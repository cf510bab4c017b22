import TestSupport
import Testing

@testable import BackupKit

/// The simulator itself: each of its bad manners shows, and only when asked for.
@Suite struct HubSimulatorTests {
    private func withSimulator(
        _ set: (inout HubSimulator.Manners) -> Void, _ body: (HubSimulator, FileHub) throws -> Void
    ) throws {
        try withTemporaryFolder { folder in
            let hub = try FileHub.create("\(folder)/hub.db")
            var manners = HubSimulator.Manners()
            set(&manners)
            try body(HubSimulator(hub, manners, seed: 1), hub)
        }
    }

    private func push(_ name: String, after token: String? = nil) -> HubPush {
        HubPush(id: name, items: [.init(record(name), base: nil)], after: token)
    }

    @Test func withGoodMannersItIsTheHubBehindIt() throws {
        try withSimulator({ _ in }) { simulator, hub throws -> Void in
            for number in 0..<20 { _ = try simulator.push(push("\(number)"), by: nil) }
            let (mine, token) = try simulator.all(limit: 7)
            let theirs = try hub.all()
            #expect(mine == theirs.0 && token == theirs.1 && simulator.mishaps.isEmpty)
        }
    }

    @Test func aFailedBatchDidNothing_andALostAnswerDidAll() throws {
        try withSimulator({ $0.fails = 1 }) { simulator, hub throws -> Void in
            #expect(throws: HubError.self) { try simulator.push(push("a"), by: nil) }
            #expect(try hub.all().0.isEmpty)
        }
        try withSimulator({ $0.losesAnswers = 1 }) { simulator, hub throws -> Void in
            #expect(throws: HubError.self) { try simulator.push(push("a"), by: nil) }
            #expect(try hub.all().0.count == 1)
            simulator.manners.losesAnswers = 0
            guard case .accepted = try simulator.push(push("a"), by: nil) else { throw HubError.noAnswer("rejected") }
            #expect(try hub.all().0.count == 1)
        }
    }

    @Test func tokensExpireAndThrottlingIsSaid() throws {
        try withSimulator({ $0.expires = 1 }) { simulator, _ throws -> Void in
            let token = try simulator.changes(after: nil, limit: 9, for: nil).token
            #expect(throws: HubError.tokenUnknown) { try simulator.changes(after: token, limit: 9, for: nil) }
            #expect(throws: HubError.tokenUnknown) { try simulator.push(push("a", after: token), by: nil) }
        }
        try withSimulator({ $0.throttles = 1 }) { simulator, _ throws -> Void in
            #expect(throws: HubError.busy(retryAfter: 0.5)) { try simulator.changes(after: nil, limit: 9, for: nil) }
        }
    }

    @Test func whatIsHeldBackComesLater_andRepeatsAndDisorderAreOfTheSameRecords() throws {
        try withSimulator({
            $0.holdsBack = 2
            $0.repeats = 2
            $0.reorders = 2
        }) { simulator, hub throws -> Void in
            for number in 0..<20 { _ = try hub.push(push("\(number)"), by: nil) }
            let theirs = try hub.all()
            var found: [HubRecord] = []
            var token: String?
            var calls = 0
            while token != theirs.1 {
                let page = try simulator.changes(after: token, limit: 6, for: nil)
                found += page.records
                token = page.token
                calls += 1
                try #require(calls < 100)
            }
            #expect(Set(found.map(\.version)) == Set(theirs.0.map(\.version)))
            #expect(found.count > 20 && found.map(\.version) != found.map(\.version).sorted())
            #expect(Set(simulator.mishaps.keys) == ["held back", "repeated", "reordered"])
        }
    }
}
