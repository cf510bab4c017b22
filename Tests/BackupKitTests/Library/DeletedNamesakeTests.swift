import TestSupport
import Testing

@testable import BackupKit

/// Two entries of one key that may be one work, and one of which is deleted: whatever brings both again leaves the deleted one
/// dead and the other one as it is.
@Suite struct DeletedNamesakeTests {
    private static let pairs = [
        ["@article{s, \(words), note={M0}}", "@article{s, \(words), note={M1}, journal={J}, volume={9}}"],
        ["@book{s, \(words), note={M0}, publisher={P}}", "@article{s, \(words), note={M1}, journal={J}, volume={9}}"],
        ["@article{s, \(words), note={M0}}", "@article{s, \(words), note={M1}}"],
        ["@article{s, \(words), note={M0}}", "@article{s, \(words), note={M1}, month=feb}"],
        [
            "@article{s, \(words), note={M0}, doi={10.5/x}}",
            "@article{s, \(words), note={M1}, doi={10.5/x}, volume={9}}",
        ],
        ["@article{s, \(words), note={M0}, volume={8}}", "@article{s, \(words), note={M1}, volume={9}}"],
    ]
    private static let words = "title={Annual report}, author={Smith, Ann}, year={2020}"

    enum Way: CaseIterable { case file, mirrored, elsewhere, ownLibrary, ownBackup, imbib, restoredImbib, replaced }

    private func take(_ way: Way, _ folder: String, into store: Store) throws {
        var options = ImportOptions()
        var restore = RestoreOptions()
        switch way {
        case .mirrored:
            options.mirror = true
            _ = try Importer.run(["\(folder)/r.bib"], into: store, options)
        case .file: _ = try Importer.run(["\(folder)/r.bib"], into: store, options)
        case .elsewhere: _ = try Importer.run(["\(folder)/copy.bib"], into: store, options)
        case .ownLibrary: _ = try Importer.run(["\(folder)/x/library.bib"], into: store, options)
        case .ownBackup: _ = try Importer.run(["\(folder)/x"], into: store, options)
        case .imbib: _ = try Importer.run(["\(folder)/im"], into: store, options)
        case .restoredImbib: _ = try Restorer.restore("\(folder)/im", into: store, restore)
        case .replaced:
            restore.mode = .replace
            _ = try Restorer.restore("\(folder)/x", into: store, restore)
        }
    }

    @Test(arguments: [0, 1], [false, true])
    func theDeletedOneOfTwo_staysDeleted_andTheOtherOneAsItIs(deleted: Int, reversed: Bool) throws {
        for pair in Self.pairs {
            try withStore { test in
                let text = (reversed ? pair.reversed() : pair).joined(separator: "\n") + "\n"
                for name in ["r.bib", "copy.bib"] {
                    try writeFile("\(test.folder)/\(name)", text, modified: test.clock.now.milliseconds / 1000)
                }
                test.clock.advance(seconds: 60)
                _ = try Importer.run(["\(test.folder)/r.bib"], into: test.store, ImportOptions())
                for (name, form) in [("x", ExportOptions.Form.layout(.directory)), ("im", .imbib(.directory))] {
                    var options = ExportOptions(form: form)
                    options.clock = test.clock.clock
                    _ = try Exporter.export(test.store, to: "\(test.folder)/\(name)", options)
                }
                for name in ["x/library.bib", "im/library.bib"] {
                    let path = "\(test.folder)/\(name)"
                    try writeFile(path, #require(readText(path)), modified: test.clock.now.milliseconds / 1000)
                }
                test.clock.advance(seconds: 60)
                func living() throws -> [String] {
                    try test.store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }.map(\.fields)
                        .sorted()
                }
                let dead = try #require(
                    try test.store.all().first { $0.fields.contains("\"M\(deleted)\"") && !$0.isDeleted })
                _ = try test.store.delete([dead.id.description])
                test.clock.advance(seconds: 60)
                let before = try living()
                for way in Way.allCases {
                    try take(way, test.folder, into: test.store)
                    #expect(try living() == before, "\(way): \(text)")
                }
            }
        }
    }
}
