import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// A hub's file may be written by anybody who reaches it. Whatever stands in one of its rows costs that row at most.
@Suite struct HostileHubTests {
    private struct Lie: CustomStringConvertible {
        let table: String
        let column: String
        let value: String
        var description: String { "\(table).\(column) = \(value)" }
    }

    private static let integers = [Int64.min, -1, 0, 1, 1000, 1 << 61, .max].map { "\($0)" }
    private static let texts = [
        "''", "'x'", "'manifest.json'", "'../../up'", "CAST(x'ff00fe' AS TEXT)", "'\u{1B}[31mred'", "'{\"x\":'",
        "CAST(x'61006200' AS TEXT)", "printf('%.*c', 300, 'n')", "printf('%.*c', 20000, 'n')",
        "printf('%.*c', 20000000, 'n')",
    ]

    /// Every column of every table of a hub, with every value that its type allows.
    private static func lies(_ database: SQLite) throws -> [Lie] {
        var lies: [Lie] = []
        let columns = try database.prepare(
            """
            SELECT m.name, c.name, c.type FROM sqlite_schema m, pragma_table_info(m.name) c
            WHERE m.type = 'table' ORDER BY m.name, c.cid
            """)
        while try columns.step() {
            for value in columns.text(2) == "INTEGER" ? integers : texts {
                lies.append(Lie(table: columns.text(0), column: columns.text(1), value: value))
            }
        }
        return lies
    }

    /// What nothing vouches for is believed.
    private static let vouch = "DELETE FROM proof;"

    @Test func whateverStandsInARowOfAHub_theOtherRowsCome() throws {
        var lies: [Lie] = []
        try withDevices("A") { lies = try Self.lies(SQLite($0.hubPath, .readOnly)) }
        #expect(lies.count > 150)
        var random = SeededGenerator(seed: testSeed())
        if !isTorture {
            let chosen = lies.filter { $0.table == "record" && ["version", "local_only"].contains($0.column) }
            lies = chosen + (0..<25).map { _ in lies[random.below(lies.count)] }
        }
        for lie in lies {
            // The row of a hub that lies on purpose is vouched for.
            let isVouchedFor = lie.table == "record" && random.chance(2)
            countRounds()
            try withDevices("A", "B") { devices in
                try devices.edit("A", "s", "{}", zone: "Shared")
                try devices["A"].share("Shared", with: "ben", .read, owner: "ann")
                for number in 0..<6 { try devices.edit("A", "r\(number)", "{\"x\":\(number)}") }
                _ = try devices["A"].batch(kind: "import", source: "test") {
                    try place("Attachments/a.pdf", "bytes", in: devices["A"])
                    return ((), summary: "")
                }
                try devices.sync("A", user: "ann")
                let database = try SQLite(devices.hubPath, .readWrite)
                let row =
                    ["record", "proof"].contains(lie.table)
                    ? " WHERE change = (SELECT change FROM \(lie.table) ORDER BY change LIMIT 1 OFFSET 3)" : ""
                // A row of a table with a key can only lie as far as the key stays one.
                do {
                    try database.execute("UPDATE \(lie.table) SET \(lie.column) = \(lie.value)\(row)")
                } catch { return }
                if isVouchedFor { try database.execute(Self.vouch) }
                let hub: FileHub
                do { hub = try FileHub(devices.hubPath) } catch { return #expect(error is BackupError, "\(lie)") }
                try check(devices, hub, lie)
            }
        }
    }

    /// The name of a push is part of the tokens that the hub gives.
    @Test(arguments: ["min", "max"])
    func whateverStandsInAPushOfAHub_noSyncBlamesOthers(_ which: String) throws {
        let names = ["'a:b:c'", "char(0x301) || 'x'"] + (isTorture ? Self.texts : [])
        let numbers = isTorture ? Self.integers : []
        let lies = [("id", names), ("first", numbers), ("last", numbers)].flatMap { column, values in
            values.map { Lie(table: "push", column: column, value: $0) }
        }
        for lie in lies {
            try withDevices("A", "B") { devices in
                for number in 0..<6 { try devices.edit("A", "r\(number)", "{\"x\":\(number)}") }
                _ = try devices["A"].batch(kind: "import", source: "test") {
                    try place("Attachments/a.pdf", "bytes", in: devices["A"])
                    return ((), summary: "")
                }
                try devices.sync("A", user: "ann")
                try SQLite(devices.hubPath, .readWrite).execute(
                    "UPDATE OR IGNORE push SET \(lie.column) = \(lie.value) WHERE last = (SELECT \(which)(last) FROM push)"
                )
                try check(devices, try FileHub(devices.hubPath), lie)
            }
        }
    }

    /// Both devices sync; what is not there afterwards was named.
    private func check(_ devices: Devices, _ hub: FileHub, _ lie: Lie) throws {
        let before = try devices["A"].all().filter { !$0.isDeleted }
        var isNamed = false
        try devices.edit("A", "later", "{\"x\":9}")
        for name in ["B", "A", "B"] {
            do {
                isNamed = try devices.sync(name, user: "ann", with: hub).needsAttention || isNamed
            } catch let error as BackupError {
                // What is wrong with the hub as a whole ends the sync and is named.
                return #expect(error.code == .damaged || error.code == .refused, "\(lie): \(error)")
            }
        }
        let here = try devices["B"].all()
        let missing = before.filter { mine in !here.contains { $0.id == mine.id && $0.fields == mine.fields } }
        #expect(missing.count <= 1, "\(lie): \(missing.map(\.id))")
        // A row that is another record now is that one's; `later` is one more than before.
        #expect(here.count > before.count || isNamed, "\(lie): \(missing.map(\.id)) is missing, and nobody said so")
        #expect(here.contains { $0.id.name == "later" }, "\(lie)")
        if try devices["B"].asset("Attachments/a.pdf") == nil { #expect(isNamed, "\(lie)") }
        if !isNamed { try checkLaterEdits(devices, hub, lie) }
    }

    /// What was believed of a row must not keep away what is written afterwards.
    private func checkLaterEdits(_ devices: Devices, _ hub: FileHub, _ lie: Lie) throws {
        let names = try devices["A"].all().filter { !$0.isDeleted && $0.id.zone == "Z" }.map(\.id.name)
        for name in names { try devices.edit("A", name, "{\"x\":\"later\"}") }
        var isNamed = false
        for name in ["A", "B", "A", "B"] {
            do {
                isNamed = try devices.sync(name, user: "ann", with: hub).needsAttention || isNamed
            } catch let error as BackupError {
                return #expect([.damaged, .refused].contains(error.code), "\(lie): \(error)")
            }
        }
        let here = try devices["B"].all()
        let stale = names.filter { name in !here.contains { $0.id.name == name && $0.fields.contains("later") } }
        #expect(stale.isEmpty || isNamed, "\(lie): the edit of \(stale) never came, and nobody said so")
    }

    @Test(arguments: ["records_per_push", "records_per_page", "record_bytes", "asset_bytes", "requests_per_second"])
    func aLimitThatIsNoneIsReplacedAndNamed(_ limit: String) throws {
        for value in ["0", "-1", "-9223372036854775808", "many", "99999999999999999999"] {
            try withDevices("A", "B") { devices in
                for number in 0..<44 { try devices.edit("A", "r\(number)", "{}") }
                let database = try SQLite(devices.hubPath, .readWrite)
                try database.execute("INSERT OR REPLACE INTO meta VALUES ('\(limit)', '\(value)')")
                let hub = try FileHub(devices.hubPath)
                for name in devices.names {
                    let result = try devices.sync(name, with: hub)
                    #expect(result.needsAttention)
                    #expect(result.findings.contains { $0.message.contains(limit) })
                }
                #expect(try devices["B"].all().count == 44)
            }
        }
    }

    /// The longest names and the highest version that may be, and those just beyond.
    @Test func namesAndVersionsAtTheirBounds() {
        func problem(version: Int64 = 1, _ change: (inout Record) -> Void = { _ in }) -> String? {
            var hubRecord = HubRecord(record("r"), version: version)
            change(&hubRecord.record)
            return hubRecord.problem(HubLimits())
        }
        func text(_ count: Int) -> String { String(repeating: "n", count: count) }
        for version: Int64 in [1, 1 << 62] { #expect(problem(version: version) == nil, "\(version)") }
        for version: Int64 in [0, -1, .min, (1 << 62) + 1, .max] {
            #expect(problem(version: version)?.contains("the version \(version), which no hub gives") == true)
        }
        #expect(problem { $0.localID = text(4096) } == nil && problem { $0.deviceID = text(4096) } == nil)
        #expect(problem { $0.localID = text(4097) } == "has a local id of more than 4096 bytes")
        #expect(problem { $0.deviceID = text(4097) } == "has a device id of more than 4096 bytes")
        #expect(problem { $0.localID = "" } == "has no local id")
        #expect(problem { $0.localID = "a\0b" } == "has a local id with a zero byte in it")
        #expect(problem { $0.id = RecordID(zone: text(4097), name: "n") } == "has a zone of more than 4096 bytes")
        #expect(problem { $0.id = RecordID(zone: "Z", name: text(4097)) } == "has a name of more than 4096 bytes")
    }

    @Test func aRowThatIsTooLargeIsHeld_andComesWhenItIsNot() throws {
        try withDevices("A", "B") { devices in
            for number in 0..<5 { try devices.edit("A", "r\(number)", "{}") }
            try devices.sync("A")
            let database = try SQLite(devices.hubPath, .readWrite)
            try database.execute(
                "UPDATE record SET fields = printf('{\"x\":\"%.*c\"}', 60000000, 'x') WHERE local_id IN ('r1', 'r2')")
            let result = try devices.sync("B")
            #expect(result.held.map(\.id.name) == ["r1", "r2"] && result.held.allSatisfy { $0.kind == .damaged })
            #expect(try devices["B"].all().count == 3)
            // When the hub has them whole again, they come.
            try database.execute("\(Self.vouch) UPDATE record SET fields = '{}'")
            #expect(try devices.sync("B").held.isEmpty)
            #expect(try devices["B"].all().count == 5)
        }
    }

    @Test func anAssetWithAnImpossibleNameIsHeld_andTheOthersCome() throws {
        try withDevices("A", "B") { devices in
            _ = try devices["A"].batch(kind: "import", source: "test") {
                for name in ["a.pdf", "b.pdf", "c.pdf", "d.pdf"] {
                    try place("Attachments/\(name)", name, in: devices["A"])
                }
                return ((), summary: "")
            }
            try devices.sync("A")
            let database = try SQLite(devices.hubPath, .readWrite)
            for (name, other) in [
                ("a.pdf", String(repeating: "n", count: 300)), ("b.pdf", "manifest.json"), ("c.pdf", ".kept/1/x"),
            ] {
                try database.execute(
                    "\(Self.vouch) UPDATE record SET local_id = '\(other)' WHERE local_id = 'Attachments/\(name)'")
            }
            let result = try devices.sync("B")
            #expect(result.held.count == 3 && result.needsAttention)
            #expect(try devices["B"].asset("Attachments/d.pdf") != nil && result.assetsFetched == 1)
            let export = try Exporter.export(
                devices["B"], to: "\(devices.folder)/export", ExportOptions(form: .layout(.directory)))
            #expect(export.isComplete)
        }
    }

    /// A file in the place of a folder that others lie in, and one that lies below another file. The hub's table of places
    /// does not know the new name.
    @Test(
        arguments: ["Attachments", "attachments", "Attachments/d.pdf/a.pdf", "Attachments/D.pdf/x/a.pdf"],
        [false, true])
    func anAssetThatCannotLieBesideTheOthers_getsAnotherName(_ name: String, isLast: Bool) throws {
        try withDevices("A", "B") { devices in
            let names = ["a.pdf", "d.pdf", "sub/e.pdf"]
            _ = try devices["A"].batch(kind: "import", source: "test") {
                for name in names { try place("Attachments/\(name)", name, in: devices["A"]) }
                return ((), summary: "")
            }
            try devices.edit("A", "r", "{}")
            try devices.sync("A")
            let hub = try SQLite(devices.hubPath, .readWrite)
            func change(of name: String) throws -> Int64 {
                try hub.integer("SELECT change FROM record WHERE local_id = '\(name)'")
            }
            let (first, last) = (try change(of: "Attachments/a.pdf"), try change(of: "Attachments/sub/e.pdf"))
            try hub.execute("\(Self.vouch) UPDATE record SET local_id = '\(name)' WHERE change = \(first)")
            if isLast {
                for (old, new) in [(first, 9999), (last, first), (9999, last)] {
                    try hub.execute("UPDATE record SET change = \(new) WHERE change = \(old)")
                }
            }
            #expect(try devices.sync("B").needsAttention)
            #expect(try devices.sync("B").needsAttention == false)
            var found: [String] = []
            try devices["B"].forEachAsset { asset in
                found.append(try String(decoding: readFile(devices["B"].openPlace(of: asset).path), as: UTF8.self))
            }
            #expect(found.sorted() == names)
            #expect(try devices["B"].all().count == 1)
            let export = try Exporter.export(
                devices["B"], to: "\(devices.folder)/export", ExportOptions(form: .layout(.directory)))
            #expect(export.isComplete)
        }
    }

    /// An edit names the version that it replaces, and the hub has that.
    @Test func aRecordWhosePlaceTheHubDoesNotKnow_canBeEdited() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r1", "{\"x\":1}")
            try devices.edit("A", "r2", "{\"x\":1}")
            try devices.sync("A")
            try SQLite(devices.hubPath, .readWrite).execute("DELETE FROM identity; DELETE FROM recent")
            try devices.sync("B")
            try devices.edit("B", "r2", "{\"x\":2}")
            let result = try devices.sync("B")
            #expect(result.pushed == 1 && !result.resynced && !result.needsAttention)
            try devices.sync("A")
            #expect(try devices["A"].all().map(\.fields).sorted() == ["{\"x\":1}", "{\"x\":2}"])
            #expect(try SQLite(devices.hubPath, .readOnly).integer("SELECT count(*) FROM record") == 2)
        }
    }

    @Test func aHubThatNeverEndsIsLeft() throws {
        try withDevices("A") { devices in
            try devices.edit("A", "mine", "{}")
            let hub = EndlessHub(devices.hub)
            let error = #expect(throws: BackupError.self) { try devices.sync("A", with: hub) }
            #expect(error?.code == .damaged && error?.message.contains("never gives them") == true)
        }
    }

    @Test func aRecordOfANewerSchemaIsLeftOut_andTakenByANewerTool() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "mine", "{}")
            var newer = record("r")
            newer.schemaVersion = SchemaVersion.current + 10
            var never = record("never")
            never.schemaVersion = 7
            try devices.hub.put(record("before"), newer, never, record("behind"))
            let result = try devices.sync("A")
            #expect(result.held.map(\.kind) == [.damaged, .newer] && result.needsAttention)
            #expect(result.pulled == 2 && result.pushed == 1)
            // The newer tool is played by a hub that says otherwise.
            try SQLite(devices.hubPath, .readWrite).execute(
                "\(Self.vouch) UPDATE record SET schema_version = \(SchemaVersion.current)")
            try SQLite(devices.path("A"), .readWrite).execute("UPDATE held SET size = \(SchemaVersion.current)")
            #expect(try devices.sync("A").held.isEmpty)
            #expect(try devices["A"].all().count == 5)
        }
    }

    /// B knows the first of two edits, and the hub both.
    private func editTwice(_ devices: Devices) throws {
        try devices.edit("A", "r", "{\"x\":1}")
        try devices.syncAll()
        try devices.edit("A", "r", "{\"x\":2}")
        try devices.sync("A")
    }

    /// A delete that is set to now would take the work away from everybody.
    @Test func aDeleteWhoseTimeIsNoTime_isHeld_andDeletesNothing() throws {
        try withDevices("A", "B") { devices in
            try editTwice(devices)
            try SQLite(devices.hubPath, .readWrite).execute(
                "\(Self.vouch) UPDATE record SET deleted_at = 9223372036854775807")
            let result = try devices.sync("B")
            #expect(result.held.map(\.kind) == [.damaged] && result.needsAttention)
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") != nil) }
        }
    }

    @Test func aHubThatKnowsNoTokenOfItsOwn_isCalledDamaged() throws {
        try withDevices("A") { devices in
            try devices.edit("A", "r", "{}")
            let hub = EndlessHub(try FileHub(devices.hubPath), forgetsTokens: true)
            let error = #expect(throws: BackupError.self) { try devices.sync("A", with: hub) }
            #expect(error?.code == .damaged && error?.remedy?.contains("hub init") == true)
        }
    }

    @Test func versionsThatFallBackAreAnotherHistory() throws {
        try withDevices("A", "B") { devices in
            try editTwice(devices)
            try SQLite(devices.hubPath, .readWrite).execute("\(Self.vouch) UPDATE record SET version = 1")
            try devices.edit("A", "r", "{\"x\":3}")
            #expect(try devices.sync("A").resynced)
            try devices.syncAll()
            #expect(try devices.shown("B", "r") == "{\"x\":3}")
        }
    }
}

/// A hub that always says that there is more, or that it does not know a token that it has given.
private final class EndlessHub: Hub {
    let real: any Hub
    private let forgetsTokens: Bool

    init(_ real: any Hub, forgetsTokens: Bool = false) { (self.real, self.forgetsTokens) = (real, forgetsTokens) }

    func identity() throws -> HubIdentity { try real.identity() }
    func push(_ push: HubPush, by caller: String?) throws -> HubAnswer {
        if forgetsTokens { throw HubError.tokenUnknown }
        return try real.push(push, by: caller)
    }
    func changes(after token: String?, limit: Int, for caller: String?) throws -> HubPage {
        var page = try real.changes(after: token, limit: limit, for: caller)
        page.more = page.more || !forgetsTokens
        return page
    }
    func fetch(_ ids: [RecordID], for caller: String?) throws -> HubFetch { try real.fetch(ids, for: caller) }
    func missingAssets(of digests: [SHA256Digest]) throws -> Set<SHA256Digest> { try real.missingAssets(of: digests) }
    func forgetDamagedAsset(_ digest: SHA256Digest) throws { try real.forgetDamagedAsset(digest) }
    func putAsset(
        _ digest: SHA256Digest, size: Int64, _ write: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws { try real.putAsset(digest, size: size, write) }
    func getAsset(_ digest: SHA256Digest, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
        try real.getAsset(digest, body)
    }
}
