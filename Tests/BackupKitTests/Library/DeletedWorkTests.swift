import TestSupport
import Testing

@testable import BackupKit

/// A publication that was edited since its id was made, and then deleted.
@Suite struct DeletedWorkTests {
    /// What an entry said when it was imported first, and what it says by now.
    static let edits = [
        [
            "@article{k, author={Med, Ann}, title={P}, year=2020}",
            "@article{k, author={Med, Ann}, title={P}, year=2020, doi={10.1/x}}",
        ],
        ["@article{k, author={Med, Ann}, title={P}}", "@article{k, author={Med, Ann}, title={P}, year=2020}"],
        ["@article{k, title={P}, year=2020}", "@article{k, author={Med, Ann}, title={P}, year=2020}"],
        ["@misc{k, title={P}}", "@misc{k, title={P}, note={n}}"],
        [
            "@article{k, author={Med, Ann}, title={P}, note={v1}}",
            "@article{k, author={Med, Ann}, title={P}, note={v2}}",
        ],
        [
            "@article{k, author={Med, Ann}, title={P}, year=2020}",
            "@article{k, author={Med, Ann}, title={P}, year=2020, journal={J}}",
        ],
    ]

    private func take(_ entry: String, _ devices: Devices, _ name: String, file: String = "r") throws {
        let path = "\(devices.folder)/\(name)-\(file).bib"
        try writeFile(path, entry, modified: devices.clock.now.milliseconds / 1000)
        _ = try Importer.run([path], into: devices[name], ImportOptions())
        devices.clock.advance(seconds: 2)
    }

    private func living(_ store: Store) throws -> [Record] {
        try store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }
    }

    private func delete(_ devices: Devices, _ name: String) throws {
        for record in try living(devices[name]) { _ = try devices[name].delete([record.id.description]) }
        devices.clock.advance(seconds: 2)
    }

    @Test(arguments: edits) func itStaysDeleted_whenItsFileIsImportedAgain(versions: [String]) throws {
        try withDevices("A", "B") { devices in
            for entry in versions { try take(entry, devices, "A") }
            try delete(devices, "A")
            let path = "\(devices.folder)/A-r.bib"
            _ = try Importer.run([path], into: devices["A"], ImportOptions())
            #expect(try living(devices["A"]).isEmpty)
            // A copy of the file says nothing that is newer; what it says anew brings it back, as one record.
            try take(versions[1], devices, "A", file: "newer")
            #expect(try living(devices["A"]).isEmpty)
            try take(String(versions[1].dropLast()) + ", abstract={new}}", devices, "A", file: "newer")
            #expect(try living(devices["A"]).count == 1)
        }
    }

    @Test(arguments: edits, [["A", "B", "A"], ["B", "A", "B", "A"]])
    func itStaysDeleted_whereAnotherDeviceHasItFromItsOwnFile(versions: [String], order: [String]) throws {
        try withDevices("A", "B") { devices in
            for entry in versions { try take(entry, devices, "A") }
            try take(versions[1], devices, "B")
            try delete(devices, "A")
            for name in order + order { try devices.sync(name) }
            for name in ["A", "B"] { #expect(try living(devices[name]).isEmpty, "\(name)") }
        }
    }

    /// Of two equal entries one is edited and deleted: the other stays, also on the other device.
    @Test func theSecondOfTwoEqualEntriesIsNotDeletedWithTheFirst() throws {
        try withDevices("A", "B") { devices in
            let entry = "@article{k, author={Med, Ann}, title={P}, year=2020}\n"
            try take(entry + entry, devices, "A")
            #expect(try living(devices["A"]).count == 2)
            for name in ["A", "B"] { try devices.sync(name) }
            for (number, record) in try living(devices["A"]).enumerated() where number == 0 {
                _ = try devices["A"].delete([record.id.description])
            }
            for name in ["A", "B", "A"] { try devices.sync(name) }
            for name in ["A", "B"] { #expect(try living(devices[name]).count == 1, "\(name)") }
        }
    }

    /// The store has a deleted listing alive, under another name than the tombstone that says so.
    @Test(arguments: [false, true])
    func aTombstoneOfAnotherName_isTakenWhole_theFirstTime(replaces: Bool) throws {
        try withDevices("A") { devices in
            let store = devices["A"]
            try take("@article{k, author={Med, Ann}, title={P}, year=2020}", devices, "A")
            let known = try #require(living(store).first)
            let now = devices.clock.now
            let tombstone = Record(
                id: RecordID(zone: "Library", name: WorkID.legacy(key: "k")), type: known.type, localID: known.localID,
                fields: "{}", createdAt: known.createdAt, modifiedAt: now, deletedAt: now)
            func restore() throws -> Decision {
                try store.batch(kind: "restore", source: "backup") {
                    let outcome =
                        try replaces
                        ? store.overwrite(with: tombstone, resurrect: false) : store.ingest(tombstone)
                    return (outcome.decision, summary: "")
                }.result
            }
            _ = try restore()
            let rows = try store.all()
            #expect(Set(rows.filter(\.isDeleted).map(\.id)).isSuperset(of: [known.id, tombstone.id]))
            #expect(try restore() == .unchanged)
            #expect(try store.all() == rows)
        }
    }
}
