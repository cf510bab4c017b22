import TestSupport
import Testing

@testable import BackupKit

/// A volume, a page or a journal that was corrected: the older version is one of the same record, on every device and in each
/// backup, though another volume is another work.
@Suite struct CorrectedPlaceTests {
    private static func entry(_ place: String) -> String {
        "@article{k, title={On ants}, author={Au, B}, year={2020}, \(place)}\n"
    }
    private static let corrections = [
        ["journal={J}, volume={1}", "journal={J}, volume={2}"], ["pages={1--2}", "pages={5--9}"],
        ["journal={J}, number={3}", "journal={J}, number={4}"], ["journal={Ants Today}", "journal={Bees Weekly}"],
        // What is only spelled otherwise beside a correction keeps nobody from seeing that.
        ["volume={1}, pages={1--9}", "volume={2}, pages={1-9}"],
        ["journal={Journal of Cats}, volume={1}", "journal={J. Cats}, volume={2}"],
    ]

    private func take(_ text: String, _ devices: Devices, on name: String, mirror: Bool) throws {
        let path = "\(devices.folder)/\(name)/r.bib"
        try writeFile(path, text, modified: devices.clock.now.milliseconds / 1000)
        var options = ImportOptions()
        options.mirror = mirror
        _ = try Importer.run([path], into: devices[name], options)
        devices.clock.advance(seconds: 60)
    }

    private func alive(_ store: Store) throws -> [String] {
        try store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }.map(\.fields)
    }

    @Test(arguments: corrections, [["C", "A"], ["A", "C"]])
    func theOlderVersion_isTheSameRecord_onAnotherDevice(places: [String], order: [String]) throws {
        for isDeleted in [false, true] {
            try withDevices("A", "C") { devices in
                try take(Self.entry(places[0]), devices, on: "A", mirror: false)
                try devices.syncLibrary("A")
                var options = ExportOptions(form: .layout(.directory))
                options.clock = devices.clock.clock
                _ = try Exporter.export(devices["A"], to: "\(devices.folder)/x", options)
                devices.clock.advance(seconds: 60)
                try take(Self.entry(places[1]), devices, on: "A", mirror: true)
                try devices.syncLibrary("A")
                if isDeleted {
                    let record = try #require(
                        devices["A"].all().first { $0.type == RecordType.publication && !$0.isDeleted })
                    _ = try devices["A"].delete([record.id.description])
                }
                devices.clock.advance(seconds: 60)
                _ = try Restorer.restore("\(devices.folder)/x", into: devices["C"], RestoreOptions())
                // Nor does it come back beside the newer one in the own store.
                _ = try Restorer.restore("\(devices.folder)/x", into: devices["A"], RestoreOptions())
                for name in order + order { try devices.syncLibrary(name) }
                for name in ["A", "C"] {
                    let found = try alive(devices[name])
                    #expect(found.count == (isDeleted ? 0 : 1), "\(name): \(found)")
                    #expect(try devices[name].conflicts().isEmpty)
                }
            }
        }
    }
}
