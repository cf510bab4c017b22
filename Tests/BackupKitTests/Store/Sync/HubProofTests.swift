import TestSupport
import Testing

@testable import BackupKit

/// Any bit of a row of a hub may flip. No device takes what nobody wrote, and a device that has the record as it was sends it
/// again.
@Suite struct HubProofTests {
    private static let columns = [
        "zone", "name", "type", "local_id", "fields", "field_times", "created_at", "modified_at", "device_id",
        "schema_version", "deleted_at", "version", "change",
    ]

    /// Flips a bit of a value as a disk does. Returns whether there is such a value.
    private func flip(_ column: String, at place: Int64, _ database: SQLite, _ random: inout SeededGenerator) throws
        -> Bool
    {
        let row = try database.prepare("SELECT \(column), typeof(\(column)) FROM record WHERE change = \(place)")
        guard try row.step() else { return false }
        let new: String
        switch row.text(1) {
        case "integer": new = "\(row.integer(0) ^ 1 << Int64.random(in: 0..<40, using: &random))"
        case "text":
            var bytes = Array(row.bytes(0))
            guard let index = bytes.indices.randomElement(using: &random) else { return false }
            bytes[index] ^= 1 << Int.random(in: 0..<7, using: &random)
            new = "CAST(x'\(bytes.map { String(Int($0) + 256, radix: 16).dropFirst() }.joined())' AS TEXT)"
        default: return false
        }
        row.reset()
        try database.execute("UPDATE OR IGNORE record SET \(column) = \(new) WHERE change = \(place)")
        return database.changes > 0
    }

    @Test(arguments: testSeeds(4), columns)
    func whateverBitOfARowFlips_nobodyTakesIt_andItIsSentAgain(seed: UInt64, column: String) throws {
        var random = SeededGenerator(seed: seed ^ UInt64(column.utf8.count))
        for _ in 0..<(isTorture ? 20 : 3) {
            countRounds()
            // N is new, and C was away.
            try withDevices("A", "B", "C", "N") { devices in
                for number in 0..<5 { try devices.edit("A", "r\(number)", "{\"x\":\(number)}") }
                for name in ["A", "B", "C", "B"] { try devices.sync(name) }
                try devices.edit("B", "r1", "{\"x\":11}")
                try devices.delete("A", "r2")
                for name in ["B", "A", "B"] { try devices.sync(name) }
                let (known, digest) = (try devices["A"].all(), try devices["A"].digest())
                let database = try SQLite(devices.hubPath, .readWrite)
                let places = try database.integer("SELECT max(change) FROM record")
                let place = Int64.random(in: 1...places, using: &random)
                guard try flip(column, at: place, database, &random) else { return }
                let what = "seed \(seed), \(column) at \(place)"
                for name in ["N", "C", "A", "B", "C", "N"] {
                    try devices.sync(name)
                    for record in try devices[name].all() where !(name == "C" && record.id.name <= "r2") {
                        #expect(known.contains { $0.isSame(as: record) }, "\(what): \(name) has \(record)")
                    }
                }
                #expect(try devices["A"].digest() == digest && devices["B"].digest() == digest, "\(what)")
                for name in ["N", "C"] { #expect(try devices[name].digest() == digest, "\(what): \(name)") }
                for name in devices.names { #expect(try !devices.sync(name).needsAttention, "\(what): \(name)") }
            }
        }
    }

    @Test(arguments: ["zone", "local_id", "fields", "modified_at", "version"])
    func theRowOfAFile_isSentAgain(column: String) throws {
        var random = SeededGenerator(seed: testSeed())
        try withDevices("A", "B", "N") { devices in
            _ = try devices["A"].batch(kind: "import", source: "test") {
                try place("Attachments/a.pdf", "bytes", in: devices["A"])
                return ((), summary: "")
            }
            for name in ["A", "B"] { try devices.sync(name) }
            let database = try SQLite(devices.hubPath, .readWrite)
            #expect(try flip(column, at: 1, database, &random))
            let told = try ["N", "A", "N", "B", "A"].map { try devices.sync($0).needsAttention }
            #expect(told == [column != "version", column != "version", false, false, false])
            for name in devices.names {
                let asset = try #require(try devices[name].asset("Attachments/a.pdf"))
                #expect(
                    try String(decoding: readFile(devices[name].openPlace(of: asset).path), as: UTF8.self) == "bytes")
            }
        }
    }

    /// Such a share closes its zone to everybody.
    @Test(arguments: columns.filter { !["device_id", "deleted_at", "field_times"].contains($0) })
    func aShare_isNamed_andSentAgain(column: String) throws {
        var random = SeededGenerator(seed: testSeed())
        try withDevices("A", "N", "X") { devices in
            try devices.edit("A", "s", "{}", zone: "Shared")
            try devices["A"].share("Shared", with: "ben", .read, owner: "ann")
            try devices.edit("A", "r", "{}")
            try devices.sync("A", user: "ann")
            let database = try SQLite(devices.hubPath, .readWrite)
            let place = try database.integer("SELECT change FROM record WHERE type = 'Share'")
            guard try flip(column, at: place, database, &random) else { return }
            for _ in 0..<3 {
                for (name, user) in [("N", "ben"), ("X", "cat"), ("A", "ann")] {
                    try devices.sync(name, user: user)
                    #expect(try name != "X" || devices[name].all().allSatisfy { $0.id.zone != "Shared" })
                }
            }
            let told = try [("N", "ben"), ("X", "cat"), ("A", "ann")].map {
                try devices.sync($0, user: $1).needsAttention
            }
            #expect(told == [false, false, false])
            let (here, all) = (try devices["N"].all().map(\.id), try devices["A"].all().map(\.id))
            #expect(try devices["N"].digest() == devices["A"].digest() && here.count == 3, "\(here) \(all)")
        }
    }

    /// Whoever changes or deletes a record while its row is damaged waits until that is sent again.
    @Test(arguments: [true, false], [["C", "A", "C"], ["A", "C", "A"]])
    func whatIsWrittenMeanwhile_isNotLost(isDelete: Bool, order: [String]) throws {
        var random = SeededGenerator(seed: testSeed())
        try withDevices("A", "C") { devices in
            try devices.edit("A", "r", "{\"x\":1}")
            for name in ["A", "C"] { try devices.sync(name) }
            try devices.edit("A", "r", "{\"x\":2}")
            try devices.sync("A")
            let database = try SQLite(devices.hubPath, .readWrite)
            #expect(try flip("fields", at: database.integer("SELECT max(change) FROM record"), database, &random))
            try isDelete ? devices.delete("C", "r") : devices.edit("C", "r", "{\"x\":1,\"y\":1}")
            for name in order + order { try devices.sync(name) }
            for name in devices.names { #expect(try !devices.sync(name).needsAttention, "\(name)") }
            #expect(try devices["A"].sharedDigest() == devices["C"].sharedDigest())
            #expect(try devices["A"].all().contains { $0.id.name == "r" })
            if isDelete { #expect(try devices.shown("A", "r") == nil) }
        }
    }
}
