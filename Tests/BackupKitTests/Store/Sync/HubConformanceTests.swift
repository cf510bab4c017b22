import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// The contract of `Hub`, kept by every hub there is. A new kind of hub is one more case here.
enum HubKind: String, CaseIterable, Sendable {
    case file

    func make(in folder: String, limits: HubLimits = .file) throws -> any Hub {
        switch self {
        case .file: try FileHub.create("\(folder)/hub.db", limits: limits)
        }
    }

    /// Another caller's connection to the same hub.
    func again(in folder: String) throws -> any Hub {
        switch self {
        case .file: try FileHub("\(folder)/hub.db")
        }
    }
}

private func withHub(_ kind: HubKind, limits: HubLimits = .file, _ body: (any Hub) throws -> Void) throws {
    try withTemporaryFolder { try body(try kind.make(in: $0, limits: limits)) }
}

extension Hub {
    @discardableResult
    func put(
        _ records: Record..., base: Int64? = nil, after token: String? = nil, by caller: String? = nil,
        id: String = RandomID.make()
    ) throws -> HubAnswer {
        try push(HubPush(id: id, items: records.map { .init($0, base: base) }, after: token), by: caller)
    }

    /// Everything after a token, page by page.
    func all(after token: String? = nil, limit: Int = 3, for caller: String? = nil) throws -> ([HubRecord], String) {
        var found: [HubRecord] = []
        var token = token
        while true {
            let page = try changes(after: token, limit: limit, for: caller)
            #expect(page.records.count <= limit)
            found += page.records
            token = page.token
            if !page.more { return (found, page.token) }
        }
    }
}

extension HubAnswer {
    fileprivate var first: Int64? { if case .accepted(let first, _, _) = self { first } else { nil } }
    fileprivate var conflicts: [HubRecord]? { if case .rejected(let found, _, _) = self { found } else { nil } }
    fileprivate var refused: [Int: String]? { if case .rejected(_, let refused, _) = self { refused } else { nil } }
    fileprivate var after: String? { if case .accepted(_, _, let after) = self { after } else { nil } }
    fileprivate var before: String? { if case .accepted(_, let before, _) = self { before } else { nil } }
}

@Suite struct HubConformanceTests {
    @Test(arguments: HubKind.allCases)
    func whatIsPushedComesBackAsItWas_inPages(_ kind: HubKind) throws {
        try withHub(kind) { hub in
            let records = [
                record("a", "{\"x\" : 1.50, \"é\":\"e\\u0301\"}", at: 1, times: ["x": 1, "gone": 2], device: "phone"),
                record("b", at: 2, deleted: true), record("c", localID: "L"), record("a", zone: "Other"), record("d"),
            ]
            let answer = try hub.push(HubPush(items: records.map { .init($0, base: nil) }, after: nil), by: nil)
            let first = try #require(answer.first)
            let (found, token) = try hub.all(limit: 2)
            #expect(found.map(\.record) == records)
            #expect(found.map(\.version) == (first..<first + 5).map { $0 })
            #expect(token == answer.after)
            #expect(try hub.all(after: token).0.isEmpty)
            #expect(
                try hub.fetch([records[1].id, RecordID(zone: "Z", name: "none")], for: nil).records.map(\.record)
                    == [records[1]])
            #expect(try hub.fetch([], for: nil).head == token)
        }
    }

    @Test(arguments: HubKind.allCases)
    func aPushOnAnOlderVersionDoesNothing_andShowsTheNewerOne(_ kind: HubKind) throws {
        try withHub(kind) { hub in
            let first = try #require(try hub.put(record("a", "{\"x\":1}")).first)
            let second = try #require(try hub.put(record("a", "{\"x\":2}"), base: first).first)
            #expect(second > first)
            for base in [nil, first] {
                let items = [HubPush.Item(record("new"), base: nil), .init(record("a", "{\"x\":3}"), base: base)]
                let answer = try hub.push(HubPush(items: items, after: nil), by: nil)
                #expect(answer.conflicts == [HubRecord(record("a", "{\"x\":2}"), version: second)])
            }
            #expect(try hub.all().0.map(\.record) == [record("a", "{\"x\":2}")])
        }
    }

    @Test(arguments: HubKind.allCases)
    func aRepeatedPushIsDoneOnceAndAnsweredAlike(_ kind: HubKind) throws {
        try withHub(kind) { hub in
            let push = HubPush(items: [.init(record("a"), base: nil), .init(record("b"), base: nil)], after: nil)
            let answer = try hub.push(push, by: nil)
            try hub.put(record("c"))
            #expect(try hub.push(push, by: nil) == answer)
            #expect(try hub.all().0.count == 3)
        }
    }

    @Test(arguments: HubKind.allCases)
    func theAnswerTellsWhetherSomebodyElseWroteMeanwhile(_ kind: HubKind) throws {
        try withHub(kind) { hub in
            let token = try hub.all().1
            let mine = try hub.put(record("a"), after: token)
            #expect(mine.before == token)
            try hub.put(record("b"))
            let late = try hub.put(record("c"), after: mine.after)
            #expect(late.before != mine.after)
            #expect(try hub.all(after: mine.after).0.map(\.record.id.name) == ["b", "c"])
        }
    }

    @Test(arguments: HubKind.allCases)
    func tokensOfAnotherHistoryAreUnknown(_ kind: HubKind) throws {
        try withTemporaryFolder { folder in
            let hub = try kind.make(in: folder)
            try Directory.create("\(folder)/other")
            let other = try kind.make(in: "\(folder)/other")
            try hub.put(record("a"))
            try other.put(record("a"))
            let (one, two) = (try hub.identity().id, try other.identity().id)
            #expect(one != two)
            let (_, token) = try hub.all()
            for token in [token, "", "nonsense", token + "0"] {
                #expect(throws: HubError.tokenUnknown) { try other.changes(after: token, limit: 9, for: nil) }
                #expect(throws: HubError.tokenUnknown) { try other.put(record("b"), after: token) }
            }
            #expect(try other.all().0.count == 1)
        }
    }

    /// The numbers are given out a second time, and yet the tokens of the first time are not taken for good.
    @Test func aHubBroughtBackFromABackupKnowsNoTokenOfTheLostTime() throws {
        try withTemporaryFolder { folder in
            var hub = try FileHub.create("\(folder)/hub.db")
            let early = try #require(try hub.put(record("a")).after)
            let backup = try readFile("\(folder)/hub.db")
            let lost = try #require(try hub.put(record("b")).after)
            hub = try { () throws -> FileHub in
                unlink("\(folder)/hub.db")
                try backup.withUnsafeBytes { try FileHandle.create("\(folder)/hub.db").write($0) }
                return try FileHub("\(folder)/hub.db")
            }()
            #expect(throws: HubError.tokenUnknown) { try hub.changes(after: lost, limit: 9, for: nil) }
            try hub.put(record("c"), record("d"))
            #expect(throws: HubError.tokenUnknown) { try hub.changes(after: lost, limit: 9, for: nil) }
            #expect(try hub.all(after: early).0.map(\.record.id.name) == ["c", "d"])
            // A base that it never gave out is of the lost time too.
            #expect(throws: HubError.tokenUnknown) { try hub.put(record("b"), base: 2) }
        }
    }

    @Test(arguments: HubKind.allCases)
    func limitsAreDeclaredAndKept(_ kind: HubKind) throws {
        var limits = HubLimits.file
        limits.recordsPerPush = 2
        limits.recordBytes = 1000
        limits.requestsPerSecond = 40
        try withHub(kind, limits: limits) { [limits] hub throws -> Void in
            let declared = try hub.identity().limits
            #expect(declared == limits)
            #expect(throws: BackupError.self) { try hub.put(record("a"), record("b"), record("c")) }
            let large = record("b", "{\"x\":\"\(String(repeating: "x", count: 1000))\"}")
            #expect(try hub.put(record("a"), large).refused?.keys.sorted() == [1])
            #expect(try hub.all().0.isEmpty)
        }
    }

    @Test(arguments: HubKind.allCases)
    func manyVersionsOfManyRecordsAreFoundAgain(_ kind: HubKind) throws {
        var limits = HubLimits.file
        limits.recordsPerPush = 3
        try withHub(kind, limits: limits) { hub in
            var random = SeededGenerator(seed: testSeed())
            var versions: [String: Int64] = [:]
            for _ in 0..<300 {
                let name = "r\(random.below(80))"
                let wrong = try hub.put(record(name), base: versions[name].map { $0 - 1 } ?? nil)
                if versions[name] != nil { #expect(wrong.conflicts?.first?.version == versions[name]) }
                if let first = wrong.first { versions[name] = first }
                let right = try hub.put(record(name), base: versions[name])
                versions[name] = right.first
            }
            let found = try hub.all(limit: 50).0
            #expect(Dictionary(found.map { ($0.record.id.name, $0.version) }, uniquingKeysWith: { $1 }) == versions)
            #expect(found.count == versions.count)
        }
    }

    @Test(arguments: HubKind.allCases)
    func aSharedZoneIsForThoseItIsSharedWith(_ kind: HubKind) throws {
        try withHub(kind) { hub in
            func share(_ share: Share) -> Record { record("share", share.fields, type: Share.recordType) }
            try hub.put(record("a"), by: "eve")
            #expect(try hub.put(share(Share(owner: "ann")), by: "eve").refused != nil)
            #expect(try hub.put(share(Share(owner: "ann")), by: nil).refused != nil)
            let made = try #require(
                try hub.put(share(Share(owner: "ann", participants: ["ben": .read])), by: "ann").first)
            #expect(try hub.put(record("b"), by: "ann").first != nil)
            #expect(try hub.put(record("c"), by: "ben").refused == [0: "'ben' may not write to the zone of 'ann'"])
            #expect(try hub.put(record("c"), by: nil).refused != nil)
            #expect(try hub.all(for: "ben").0.count == 3)
            let (nothing, token) = try hub.all(for: "eve")
            #expect(nothing.isEmpty)
            #expect(try hub.fetch([record("a").id], for: "eve").records.isEmpty)
            // Nobody but the owner lets people in, and who is let in sees what was there before.
            let more = share(Share(owner: "ann", participants: ["ben": .read, "eve": .readWrite]))
            #expect(try hub.put(more, base: made, by: "ben").refused != nil)
            let opened = try #require(try hub.put(more, base: made, by: "ann").first)
            #expect(try hub.all(after: token, for: "eve").0.map(\.record.id.name).sorted() == ["a", "b", "share"])
            #expect(try hub.put(record("c"), by: "eve").first != nil)
            let gone = share(Share(owner: "ann")).tombstone(at: time(9))
            #expect(try hub.put(gone, base: opened, by: "eve").refused != nil)
            #expect(try hub.put(gone, base: opened, by: "ann").first != nil)
            #expect(try hub.put(record("d"), by: nil).first != nil)
        }
    }

    @Test(arguments: HubKind.allCases)
    func assetsAreKeptUnderTheirDigest_andOnlyTheirOwnBytes(_ kind: HubKind) throws {
        try withHub(kind) { hub in
            let digest = SHA256Digest.of("hello")
            func send(_ text: String, _ size: Int64 = 5) throws {
                try hub.putAsset(digest, size: size) { write in
                    for piece in [text.prefix(2), text.dropFirst(2)] {
                        try Array(piece.utf8).withUnsafeBytes { try write($0) }
                    }
                }
            }
            #expect(try hub.missingAssets(of: [digest]) == [digest])
            #expect(try !hub.getAsset(digest) { _ in })
            #expect(throws: BackupError.self) { try send("hallo") }
            #expect(throws: BackupError.self) { try send("hello", 4) }
            #expect(try hub.missingAssets(of: [digest]) == [digest])
            try send("hello")
            try send("hello")
            var bytes: [UInt8] = []
            #expect(try hub.getAsset(digest) { bytes += $0 })
            #expect(bytes == Array("hello".utf8))
            try hub.forgetDamagedAsset(digest)
            let other = SHA256Digest.of("other")
            #expect(try hub.missingAssets(of: [digest, other]) == [other])
        }
    }

    /// Four connections at once: each push is whole, and nobody's is lost.
    @Test(arguments: HubKind.allCases)
    func callersAtOnceDoNotHarmEachOther(_ kind: HubKind) throws {
        try withTemporaryFolder { folder in
            _ = try kind.make(in: folder)
            let threads = (0..<4).compactMap { thread in
                WorkerThread {
                    guard let hub = try? kind.again(in: folder) else { return }
                    for round in 0..<10 {
                        let names = (0..<5).map { "\(thread)-\(round)-\($0)" }
                        let push = HubPush(items: names.map { .init(record($0), base: nil) }, after: nil)
                        while (try? hub.push(push, by: nil)) == nil { usleep(1000) }
                    }
                }
            }
            #expect(threads.count == 4)
            for thread in threads { thread.join() }
            let found = try kind.again(in: folder).all(limit: 7).0
            #expect(Set(found.map(\.record.id)).count == 200 && found.count == 200)
            #expect(found.map(\.version) == (1...200).map { $0 })
        }
    }

    @Test func whatIsNoHubIsLeftAlone() throws {
        try withTemporaryFolder { folder in
            _ = try Store.create("\(folder)/store.db")
            try writeFile("\(folder)/text", String(repeating: "text ", count: 500))
            for name in ["store.db", "text", "nothing"] {
                let error = #expect(throws: BackupError.self) { try FileHub("\(folder)/\(name)") }
                #expect(error?.code == .notFound)
            }
            #expect(throws: BackupError.self) { try FileHub.create("\(folder)/text") }
        }
    }
}
