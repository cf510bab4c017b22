import TestSupport
import Testing

@testable import BackupKit

/// What a store knows of the hub about each record may be damaged like everything else: `hub_version` and `clean_at` of its
/// row, and the version of before it was changed here. Then nobody's edit is lost, and nothing is taken for sent or received.
@Suite struct HubSealTests {
    /// What has happened to a record since both sides had it.
    private enum Side: CaseIterable { case nothing, edit, otherField, removal, delete }

    private struct State {
        let here: Side
        let there: Side
        /// Whether the change of this device is the later one.
        let isLaterHere: Bool

        func side(of name: String) -> Side { name == "A" ? here : there }

        static let all = Side.allCases.flatMap { here in
            Side.allCases.flatMap { there in [true, false].map { State(here: here, there: there, isLaterHere: $0) } }
        }
    }

    private static let columns: [(table: String, column: String)] =
        ["hub_version", "clean_at", "hub_seal"].map { ("record", $0) }
        + [
            "zone", "name", "fields", "field_times", "modified_at", "deleted_at", "change", "type", "local_id",
            "created_at",
            "device_id", "schema_version", "local_only", "row_hash",
        ].map { ("ancestor", $0) }

    @Test func whateverStandsInWhatAStoreKnowsOfTheHub_noEditIsLost() throws {
        var random = SeededGenerator(seed: testSeed())
        for state in State.all {
            for target in Self.columns where isTorture || random.below(6) == 0 {
                countRounds()
                try play(state, target, isRepaired: random.chance(3), &random)
            }
        }
    }

    private func play(
        _ state: State, _ target: (table: String, column: String), isRepaired: Bool, _ random: inout SeededGenerator
    ) throws {
        try withDevices("A", "B") { devices in
            for id in ["r", "other"] { try devices.edit("A", id, "{\"a\":\"first\",\"b\":\"first\",\"c\":\"first\"}") }
            try devices.syncAll()
            let sides =
                state.isLaterHere ? [("B", state.there), ("A", state.here)] : [("A", state.here), ("B", state.there)]
            for (name, side) in sides { try change(side, on: name, in: devices) }
            try devices.sync("B")
            if state.there == .delete, random.chance(2) { try forgetWhatWasDeleted("r", on: devices.hub) }
            guard try flip(target, devices.path("A"), &random) else { return }
            let told = Comment(rawValue: "\(state), \(target), repaired: \(isRepaired)")
            let check = try StoreCheck.run(devices.path("A"))
            let named = check.findings.first { $0.code == .recordChanged && $0.severity == .error }
            #expect(!check.isSound && named?.remedy?.contains("store repair") == true, told)
            if isRepaired { try repair(devices["A"], told) }
            var isNamed = false
            for name in ["A", "B", "A", "B"] { isNamed = try devices.sync(name).needsAttention || isNamed }
            let shown = try ["A", "B"].map { try devices.shown($0, "r") }
            #expect(shown[0] == shown[1], told)
            for name in ["A", "B"] where state.side(of: name) == .edit || state.side(of: name) == .otherField {
                let text = Self.text(of: state.side(of: name), on: name)
                let isThere = shown[0]?.contains(text) == true
                #expect(
                    try isThere || isNamed && aside(devices).contains { $0.contains(text) }, "\(told) \(text) \(shown)")
            }
            // What no sync has met waits for a repair.
            if try !StoreCheck.run(devices.path("A")).isSound { try repair(devices["A"], told) }
            try devices.syncAll()
            #expect(try devices["A"].digest() == devices["B"].digest() || isNamed, told)
            #expect(try devices["A"].syncState()?.pending == 0, told)
        }
    }

    /// Replaces a tombstone by one that does not say which version it deleted.
    private func forgetWhatWasDeleted(_ name: String, on hub: any Hub) throws {
        let id = RecordID(zone: "Z", name: name)
        guard let known = try hub.fetch([id], for: nil).records.first, known.record.isDeleted else { return }
        var plain = known.record
        plain.fieldTimes = [:]
        let head = try hub.fetch([], for: nil).head
        _ = try hub.push(HubPush(items: [HubPush.Item(plain, base: known.version)], after: head), by: nil)
    }

    private func repair(_ store: Store, _ told: Comment) throws {
        #expect(try StoreMending.run(store, StoreMending.Options()).left.isEmpty, told)
        #expect(try StoreCheck.run(store).isSound, told)
    }

    private static func text(of side: Side, on name: String) -> String {
        side == .otherField ? "\"\(name == "A" ? "b" : "c")\":\"of \(name)\"" : "\"a\":\"of \(name)\""
    }

    private func change(_ side: Side, on name: String, in devices: Devices) throws {
        let first = ["a", "b", "c"].map { "\"\($0)\":\"first\"" }
        switch side {
        case .nothing: break
        case .delete: try devices.delete(name, "r")
        case .removal: try devices.edit(name, "r", "{\(first[0]),\(first[2])}")
        case .edit, .otherField:
            let text = Self.text(of: side, on: name)
            let fields = first.map { $0.prefix(4) == text.prefix(4) ? text : $0 }
            try devices.edit(name, "r", "{\(fields.joined(separator: ","))}")
        }
    }

    /// Flips one bit of a column of the record; returns false where there is nothing to flip.
    private func flip(
        _ target: (table: String, column: String), _ path: String, _ random: inout SeededGenerator
    ) throws -> Bool {
        let database = try SQLite(path, .readWrite)
        let (table, column) = target
        let row = table == "record" ? "local_id = 'r'" : "name = 'r'"
        let query = try database.prepare("SELECT \(column), typeof(\(column)) FROM \(table) WHERE \(row)")
        guard try query.step() else { return false }
        let (kind, number, bytes) = (query.text(1), query.integer(0), Array(query.bytes(0)))
        query.reset()
        let update = try database.prepare(
            "UPDATE \(table) SET \(column) = \(kind == "text" ? "CAST(? AS TEXT)" : "?") WHERE \(row)")
        switch kind {
        case "integer": update.bind(1, number == 0 && random.chance(2) ? nil : number ^ (1 << Int64(random.below(63))))
        case "text":
            var text = bytes
            text[random.below(text.count)] ^= 1 << UInt8(random.below(7))
            update.bind(1, String(decoding: text, as: UTF8.self))
        default:
            let isText = ["field_times", "device_id"].contains(column)
            if isText { update.bind(1, "x") } else { update.bind(1, Int64(0)) }
        }
        try update.run()
        return true
    }

    private func aside(_ devices: Devices) throws -> [String] {
        try devices.stores.flatMap { try $0.all().compactMap { try Quarantine.content(of: $0)?.fields } }
    }

    // MARK: What the rules rest on

    @Test func theSealInSwift_isThatInSQL_andEachBitChangesIt() throws {
        let database = try SQLite(":memory:", .create)
        let values: [Int64?] = [nil, 0, 1, 2, 7, 100_000, 1 << 40, HubSeal.unknown, .max, .min]
        for version in values {
            for cleanAt in values {
                func text(_ value: Int64?) -> String {
                    value.map { $0 == .min ? "(-9223372036854775807 - 1)" : "(\($0))" } ?? "NULL"
                }
                let sql = HubSeal.number(version: text(version), cleanAt: text(cleanAt))
                let query = try database.prepare("SELECT \(sql)")
                _ = try query.step()
                let seal = HubSeal.number(version, cleanAt)
                #expect(query.optionalInteger(0) == seal, "\(text(version)), \(text(cleanAt))")
                for bit in 0..<63 {
                    let mask = Int64(1) << bit
                    if let version { #expect(HubSeal.number(version ^ mask, cleanAt) != seal) }
                    if let cleanAt { #expect(HubSeal.number(version, cleanAt ^ mask) != seal) }
                }
            }
        }
    }

    @Test func aVersionThatOnlySeemsToBeTaken_isTaken() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", "{\"x\":1}")
            try devices.syncAll()
            try devices.edit("B", "r", "{\"x\":2}")
            try devices.sync("B")
            try SQLite(devices.path("A"), .readWrite).execute("UPDATE record SET hub_version = hub_version | 64")
            let result = try devices.sync("A")
            #expect(result.findings.contains { $0.code == .storeDamaged } && result.needsAttention)
            #expect(try devices.shown("A", "r") == "{\"x\":2}")
            #expect(try devices.sync("A").findings.isEmpty)
        }
    }

    @Test func anEditThatOnlySeemsToBeSent_isSent() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", "{\"x\":1}")
            try devices.syncAll()
            try devices.edit("A", "r", "{\"x\":2}")
            try SQLite(devices.path("A"), .readWrite).execute("UPDATE record SET clean_at = change")
            #expect(try devices["A"].syncState()?.pending == 1)
            try devices.syncAll()
            #expect(try devices.shown("B", "r") == "{\"x\":2}")
        }
    }

    @Test func anUndoBuriesWhatOnlySeemsToBeUnknownToTheHub() throws {
        try withDevices("A", "B") { devices in
            devices.clock.advance()
            _ = try devices["A"].batch(kind: "import", source: "test") {
                try devices["A"].put(record("r", "{\"x\":1}"), replacing: nil)
                return ((), summary: "")
            }
            try devices.syncAll()
            try SQLite(devices.path("A"), .readWrite).execute("UPDATE record SET hub_version = NULL")
            devices.clock.advance()
            _ = try devices["A"].undoLast()
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == nil) }
        }
    }

    /// A new hub, or one from a backup, takes all again.
    @Test func aNewHubDoesNotHideThatAStateWasDamaged() throws {
        for lie in [
            "ancestor SET fields = '{\"a\":2,\"b\":2}'", "record SET clean_at = change", "ancestor SET name = 's'",
        ] {
            try withDevices("A", "B") { devices in
                try devices.edit("A", "r", "{\"a\":1,\"b\":1}")
                try devices.syncAll()
                try devices.edit("A", "r", "{\"a\":2,\"b\":1}")
                try devices.edit("B", "r", "{\"a\":1,\"b\":3}")
                try SQLite(devices.path("A"), .readWrite).execute("UPDATE \(lie)")
                devices.hub = try FileHub.create("\(devices.folder)/next.db")
                try devices.sync("B")
                let isNamed = try devices.sync("A").needsAttention
                try devices.syncAll()
                #expect(try isNamed && aside(devices).contains { $0.contains("\"a\":2") }, "\(lie)")
                #expect(try devices.shown("A", "r") == devices.shown("B", "r"))
            }
        }
    }
}
