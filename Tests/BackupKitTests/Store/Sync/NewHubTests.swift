import TestSupport
import Testing

@testable import BackupKit

/// What happens when the hub is made anew, or brought back from an old backup: the same as if it had stayed.
@Suite struct NewHubTests {
    enum Kind: CaseIterable { case event, publication }
    enum Next: CaseIterable { case same, anew, broughtBack }
    /// What B does while A writes, and whether the hub hears of what A wrote, or of what B did.
    enum Removal: CaseIterable { case delete, undo }
    enum Heard: CaseIterable { case none, edit, removal }

    private static let texts = ["as it was", "written since"]

    /// Imports one record that says this.
    private func take(_ kind: Kind, _ text: String, on name: String, in devices: Devices) throws {
        devices.clock.advance(seconds: 60)
        let now = devices.clock.now
        let path = "\(devices.folder)/\(name).\(kind == .event ? "jsonl" : "bib")"
        let event =
            "{\"id\":\"E\",\"time\":\"2025-02-14T08:00:00Z\",\"type\":\"slapen\",\"note\":\"\(text)\",\"modified_at\":\"\(now.iso8601)\"}"
        let entry = "@article{k, author={Ann, A}, title={On ants}, year={2020}, note={\(text)}}"
        try writeFile(path, (kind == .event ? event : entry) + "\n", modified: now.milliseconds / 1000)
        devices.clock.advance(seconds: 60)
        _ = try Importer.run([path], into: devices[name], ImportOptions())
    }

    private func live(_ store: Store) throws -> [Record] {
        try store.all().filter {
            !$0.isDeleted && !$0.isLocalOnly && [RecordType.event, RecordType.publication].contains($0.type)
        }
    }

    private func aside(_ devices: Devices) throws -> [String] {
        try devices.stores.flatMap { try $0.all().compactMap { try Quarantine.content(of: $0)?.fields } }
    }

    private func become(_ next: Next, _ backup: [UInt8], in devices: Devices) throws {
        let path = "\(devices.folder)/next.db"
        switch next {
        case .same: break
        case .anew: devices.hub = try FileHub.create(path)
        case .broughtBack:
            try backup.withUnsafeBytes { try FileHandle.create(path).write($0) }
            devices.hub = try FileHub(path)
        }
    }

    /// B brings a record, A writes into it, and B removes it without having heard of that.
    @Test(arguments: Kind.allCases, Next.allCases)
    func whatARemovalHadNotHeardOf_isInQuarantine_andNamed(kind: Kind, next: Next) throws {
        for (removal, heard) in Removal.allCases.flatMap({ removal in Heard.allCases.map { (removal, $0) } }) {
            for order in [["A", "B", "C"], ["B", "A", "C"], ["C", "A", "B"], ["A", "C", "B"]] {
                try withDevices("A", "B", "C") { devices in
                    try take(kind, Self.texts[0], on: "B", in: devices)
                    for name in ["B", "A", "C"] { try devices.syncLibrary(name) }
                    let backup = try readFile(devices.hubPath)
                    try take(kind, Self.texts[1], on: "A", in: devices)
                    if heard == .edit { try devices.syncLibrary("A") }
                    devices.clock.advance(seconds: 60)
                    switch removal {
                    case .delete: _ = try devices["B"].delete([try #require(live(devices["B"]).first).id.description])
                    case .undo: _ = try devices["B"].undoLast()
                    }
                    if heard == .removal { for name in ["B", "C"] { try devices.syncLibrary(name) } }
                    try become(next, backup, in: devices)
                    var told: [SyncResult] = []
                    for _ in 0..<3 { for name in order { told.append(try devices.syncLibrary(name)) } }
                    let what = Comment(rawValue: "\(kind) \(next) \(removal) \(heard) \(order)")
                    let shown = try devices.stores.map { try live($0).map(\.fields) }
                    #expect(shown.allSatisfy { $0 == shown[0] }, what)
                    // An undo leaves what it hears of in time.
                    if shown[0].contains(where: { $0.contains(Self.texts[1]) }) {
                        #expect(removal == .undo, what)
                        return
                    }
                    #expect(shown[0].isEmpty, what)
                    #expect(try aside(devices).contains { $0.contains(Self.texts[1]) }, what)
                    let isNamed = told.contains { result in
                        result.needsAttention
                            && result.findings.contains {
                                $0.code == .protected && $0.message.contains("is in quarantine")
                            }
                    }
                    #expect(isNamed, what)
                }
            }
        }
    }

    /// C has not heard of the delete, and has nothing that whoever deleted did not know.
    @Test(arguments: Kind.allCases, Next.allCases)
    func aRemovalThatHadHeardOfAll_putsNothingAside(kind: Kind, next: Next) throws {
        for order in [["A", "B", "C"], ["C", "B", "A"], ["B", "C", "A"]] {
            try withDevices("A", "B", "C") { devices in
                try take(kind, Self.texts[0], on: "B", in: devices)
                try devices.syncAll()
                let backup = try readFile(devices.hubPath)
                try take(kind, Self.texts[1], on: "A", in: devices)
                for name in ["A", "B"] { try devices.syncLibrary(name) }
                devices.clock.advance(seconds: 60)
                _ = try devices["B"].delete([try #require(live(devices["B"]).first).id.description])
                for name in ["B", "A"] { try devices.syncLibrary(name) }
                try become(next, backup, in: devices)
                for _ in 0..<3 {
                    for name in order {
                        let findings = try devices.syncLibrary(name).findings
                        #expect(!findings.contains { $0.code == .protected }, "\(order) \(findings)")
                    }
                }
                for store in devices.stores { #expect(try live(store).isEmpty) }
                #expect(try aside(devices).isEmpty)
            }
        }
    }

    /// What was deleted here and waits to be sent is no edit of the device that had it, too.
    @Test(arguments: Kind.allCases, [["A", "B"], ["B", "A"]])
    func anUnsentDelete_putsNothingAside_thatItHadSeen(kind: Kind, order: [String]) throws {
        for isUndone in [false, true] {
            try withDevices("A", "B") { devices in
                try take(kind, Self.texts[0], on: "A", in: devices)
                for name in ["A", "B"] { try devices.syncLibrary(name) }
                let store = devices["A"]
                devices.clock.advance(seconds: 60)
                _ = try isUndone ? store.undoLast() : nil
                if !isUndone { _ = try store.curate(.delete, [try #require(live(store).first).id.description]) }
                try become(.anew, [], in: devices)
                for _ in 0..<2 {
                    for name in order {
                        let findings = try devices.syncLibrary(name).findings
                        #expect(!findings.contains { $0.code == .protected }, "undone: \(isUndone) \(findings)")
                    }
                }
                for store in devices.stores { #expect(try live(store).isEmpty) }
                #expect(try aside(devices).isEmpty)
            }
        }
    }

    /// A sync that forgets a hub may end before the new one has heard of anything, and the next hub may be another one.
    @Test func whatNoHubHasSeen_staysUnseen_howeverManyHubsAreForgotten() throws {
        try withDevices("A") { devices in
            for id in ["seen", "edited"] { try devices.edit("A", id, "{\"x\":1}") }
            try devices.sync("A")
            try devices.edit("A", "edited", "{\"x\":2}")
            let store = devices["A"]
            for _ in 0..<2 {
                try store.write { try store.forgetHub() }
                for record in try store.all() {
                    #expect(try store.lookUp(record).row?.isUnseen == (record.localID == "edited"), "\(record.localID)")
                }
            }
        }
    }

    private func take(_ lines: [String], on name: String, in devices: Devices) throws {
        devices.clock.advance(seconds: 60)
        let path = "\(devices.folder)/\(name).jsonl"
        try writeFile(path, lines.map { $0 + "\n" }.joined())
        _ = try Importer.run([path], into: devices[name], ImportOptions())
    }

    private static let line = "\"time\":\"2025-02-14T08:00:00Z\",\"type\":\"slapen\",\"note\":\"as it was\"}"

    /// B joins A's event with its line without an id, and A writes into it before it hears of that.
    @Test(arguments: Next.allCases, [["A", "B"], ["B", "A"]])
    func anEditOfAnEventThatWasJoinedElsewhere_isKept(next: Next, order: [String]) throws {
        try withDevices("A", "B") { devices in
            try take(["{\"id\":\"E\",\(Self.line)"], on: "A", in: devices)
            try take(["{\(Self.line)"], on: "B", in: devices)
            try devices.sync("A")
            let backup = try readFile(devices.hubPath)
            try devices.sync("B")
            try take(.event, Self.texts[1], on: "A", in: devices)
            try become(next, backup, in: devices)
            for _ in 0..<3 { for name in order { try devices.sync(name) } }
            for store in devices.stores {
                let shown = try live(store)
                #expect(shown.count == 1 && shown[0].fields.contains(Self.texts[1]), "\(shown.map(\.fields))")
            }
            #expect(try aside(devices).isEmpty)
        }
    }

    /// A folds its event into the one of B that the hub has, and C, which has the event of A, writes into that.
    @Test(arguments: [["A", "B", "C"], ["C", "A", "B"], ["B", "C", "A"], ["A", "C", "B"]])
    func anEditUnderANameThatWasFolded_isKept(order: [String]) throws {
        try withDevices("A", "B", "C") { devices in
            for name in ["A", "C"] { try take(["{\"id\":\"E\",\(Self.line)"], on: name, in: devices) }
            try take(["{\(Self.line)"], on: "B", in: devices)
            for name in ["B", "A"] { try devices.sync(name) }
            try take(.event, Self.texts[1], on: "C", in: devices)
            try become(.anew, [], in: devices)
            for _ in 0..<3 { for name in order { try devices.sync(name) } }
            for store in devices.stores {
                let shown = try live(store)
                #expect(shown.count == 1 && shown[0].fields.contains(Self.texts[1]), "\(shown.map(\.fields))")
            }
            #expect(try aside(devices).isEmpty)
        }
    }

    /// `dedup` on A folds two names of one record, and B, which has not heard of that, writes under the name that went.
    @Test(arguments: Next.allCases, [["A", "B"], ["B", "A"]])
    func anEditUnderANameThatDedupFolded_isKept(next: Next, order: [String]) throws {
        try withDevices("A", "B") { devices in
            let saves = (1...2).map { save(Int64($0), line: Self.texts[0]) }
            try devices["A"].write { for save in saves { try devices["A"].put(save, replacing: nil) } }
            try devices.syncAll()
            let backup = try readFile(devices.hubPath)
            _ = try Deduplicator.run(on: devices["A"])
            devices.clock.advance(seconds: 60)
            var edit = save(2, line: Self.texts[1])
            edit.modifiedAt = devices.clock.now
            try devices["B"].take(edit)
            if order == ["A", "B"] { try devices.sync("B") }
            try become(next, backup, in: devices)
            for _ in 0..<3 { for name in order { try devices.sync(name) } }
            for store in devices.stores {
                let shown = try store.all().filter { !$0.isDeleted && $0.type == "CD_Daily" }
                #expect(shown.count == 1 && shown[0].fields.contains(Self.texts[1]), "\(shown.map(\.fields))")
            }
            #expect(try aside(devices).isEmpty)
        }
    }

    private func save(_ seconds: Int64, line: String) -> Record {
        record("save\(seconds)", "{\"CD_line1\":\"\(line)\"}", at: seconds, type: "CD_Daily", localID: "D")
    }

    /// Whoever deleted the later version had heard of more.
    @Test func ofTwoDeletes_theOneThatHadHeardOfMoreCounts() {
        func tombstone(at time: Int64, of version: Int64) -> Record {
            var record = Record(
                id: RecordID(zone: "Z", name: "E"), type: RecordType.event, localID: "E", fields: "{}",
                createdAt: .init(milliseconds: 0), modifiedAt: .init(milliseconds: time))
            record.deletedAt = .init(milliseconds: time)
            record.fieldTimes[Record.takenInMark] = .init(milliseconds: version)
            return record
        }
        let (first, second) = (tombstone(at: 10, of: 5), tombstone(at: 20, of: 3))
        for joined in [first.joined(withTombstone: second), second.joined(withTombstone: first)] {
            #expect(joined.deletedAt == second.deletedAt)
            #expect(joined.fieldTimes[Record.takenInMark] == first.fieldTimes[Record.takenInMark])
        }
    }

    /// One of the devices has synced with another hub before.
    @Test(arguments: [["A"], ["B"], ["A", "B"]], [["A", "B"], ["B", "A"]])
    func oneLogInTwoForms_isJoinedOnANewHub(known: [String], order: [String]) throws {
        try withDevices("A", "B") { devices in
            try take(["{\"id\":\"E\",\(Self.line)"], on: "A", in: devices)
            try take(["{\(Self.line)"], on: "B", in: devices)
            for name in known {
                try devices.sync(name, with: FileHub.create("\(devices.folder)/of-\(name).db"))
            }
            for _ in 0..<3 { for name in order { try devices.sync(name) } }
            for store in devices.stores {
                #expect(try live(store).map(\.localID) == ["E"])
                try checkSound(store.path)
            }
            // What an import has added is removed by its undo, or named.
            for store in devices.stores {
                let undone = try store.undoLast()
                #expect(undone.removed + undone.keptNewer.count == 1, "\(undone)")
            }
        }
    }

    /// The log has the event twice, and only one of the devices knows both.
    @Test(arguments: [["A", "B"], ["B", "A"]])
    func twoEventsThatOneLogNeeds_stayTwoOnANewHub(order: [String]) throws {
        try withDevices("A", "B") { devices in
            try take(["{\"id\":\"E\",\(Self.line)", "{\(Self.line)"], on: "A", in: devices)
            try devices.sync("A")
            try devices.sync("B")
            devices.hub = try FileHub.create("\(devices.folder)/next.db")
            for _ in 0..<3 { for name in order { try devices.sync(name) } }
            for store in devices.stores { #expect(try live(store).count == 2) }
        }
    }
}
