import TestSupport
import Testing

@testable import BackupKit

/// What a store knows of its hub may be damaged like everything else. Then no newer file is written over, none stays away,
/// and no edit stays behind without a word.
@Suite struct HubMemoryTests {
    private static let values = ["0", "1", "2", "7", "-1", "9223372036854775807", "-9223372036854775808"]
    private static let lies: [(table: String, column: String, value: String)] =
        ["version", "size", "modified_ns", "wanted"].flatMap { column in values.map { ("asset_sync", column, $0) } }
        + ["sha256", "base"].flatMap { column in
            ["NULL", "'x'", "(SELECT sha256 FROM asset)"].map { ("asset_sync", column, $0) }
        }
        + (values + ["(SELECT max(change) FROM record)"]).map { ("hub_link", "pushed_through", $0) }
        + ["NULL", "'1:1:x'", "head", "''"].map { ("hub_link", "token", $0) }
        + values.map { ("record", "local_only", $0) }
        + [("record", "clean_at", "change"), ("record", "hub_version", "NULL")]

    @Test func whateverStandsInWhatAStoreKnowsOfItsHub_nothingIsLostOrStaysBehindUnnamed() throws {
        var random = SeededGenerator(seed: testSeed())
        for (table, column, value) in Self.lies where isTorture || table == "hub_link" || random.below(3) == 0 {
            for changing in [["A"], ["B"], ["A", "B"]] {
                countRounds()
                try play(changing, "\(table).\(column) = \(value)") {
                    try $0.execute("UPDATE \(table) SET \(column) = \(value)")
                }
            }
        }
    }

    @Test func aLaterChangeOfADamagedRow_doesNotHideTheDamage() throws {
        let path = "Attachments/a.pdf"
        let changes: [(Store) throws -> Void] = [
            { try $0.wantAsset(path) }, { try $0.leaveAsset(path) }, { try $0.settleAsset(path, nil) },
        ]
        for change in changes {
            try withDevices("A") { devices in
                try put("first", in: devices, "A")
                try devices.sync("A")
                let store = devices["A"]
                try store.write { try change(store) }
                #expect(try RowSeal.asset.broken(in: store).isEmpty)
                try SQLite(devices.path("A"), .readWrite).execute("UPDATE asset_sync SET version = version + 1")
                try store.write { try change(store) }
                #expect(try RowSeal.asset.broken(in: store) == [path])
            }
        }
    }

    private func play(_ changing: [String], _ lie: String, _ tell: (SQLite) throws -> Void) throws {
        try withDevices("A", "B") { devices in
            try put("first", in: devices, "A")
            try devices.edit("A", "r", "{\"x\":0}")
            try devices.syncAll()
            for name in changing { try put("second of \(name)", in: devices, name) }
            try devices.edit("A", "r", "{\"x\":1}")
            try devices.edit("A", "new", "{\"x\":2}")
            if changing.contains("B") { try devices.sync("B") }
            try tell(SQLite(devices.path("A"), .readWrite))
            var isNamed = false
            for name in ["A", "B", "A", "B"] { isNamed = try devices.sync(name).needsAttention || isNamed }
            let texts = try ["A", "B"].map { try self.texts(of: devices[$0]) }
            let told = Comment(rawValue: "\(lie), changed on \(changing): \(texts)")
            // Only a row of a record waits for somebody; the hub is asked about the others.
            let mayWait = isNamed && lie.hasPrefix("record.")
            for name in changing { #expect(texts[0].contains("second of \(name)"), told) }
            #expect(texts[0] == texts[1] || mayWait, told)
            for id in ["r", "new"] {
                let isThere = try devices.shown("B", id) == devices.shown("A", id)
                #expect(isThere || mayWait, "\(lie): \(id) did not arrive, and nobody said so")
            }
            if lie.hasPrefix("record.local_only") {
                try SQLite(devices.path("A"), .readWrite).execute("UPDATE record SET local_only = 0")
            }
        }
    }

    private func put(_ text: String, in devices: Devices, _ name: String) throws {
        devices.clock.advance()
        _ = try devices[name].batch(kind: "import", source: "test") {
            try place("Attachments/a.pdf", text, in: devices[name])
            return ((), summary: "")
        }
    }

    private func texts(of store: Store) throws -> [String] {
        var texts: [String] = []
        try store.forEachAsset { asset in
            texts.append(String(decoding: try readFile(store.openPlace(of: asset).path), as: UTF8.self))
        }
        return texts.sorted()
    }
}
