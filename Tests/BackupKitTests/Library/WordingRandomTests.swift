import TestSupport
import Testing

@testable import BackupKit

/// One work in many wordings, in files of any age on three devices. A delete of it is a delete in all of them.
@Suite struct WordingRandomTests {
    private static func wording(_ random: inout SeededGenerator) -> String {
        func one(of words: [String]) -> String { words[random.below(words.count)] }
        var fields = [
            one(of: ["author={Kim, Min Jun}", "author={Kim, M. J.}", "author={Min Jun Kim}", "author={Kim, M.}"]),
            one(of: ["title={On {P}ears}", "title={On pears}", "title={On Pears.}"]), "year={2004}",
        ]
        let more = [
            ["doi={10.1234/pears}", "doi={https://doi.org/10.1234/PEARS}"],
            ["journal={J. Fruit}", "journal={Journal of Fruit}"],
            ["volume={7}"], ["pages={1--9}", "pages={1-9}"], ["note={one}", "note={two}"],
            ["keywords={a}", "keywords={b, a}"],
        ]
        for words in more where random.chance(2) { fields.append(one(of: words)) }
        return "@article{kim2004, \(fields.joined(separator: ", "))}\n"
    }

    @Test func aDeletedWork_staysDeletedInEachWordingThatAnImportHasMet() throws {
        for seed in testSeeds(isTorture ? 400 : 30) {
            countRounds()
            try withQuickFolder { folder in
                var random = SeededGenerator(seed: seed)
                let devices = try Devices(["A", "B", "C"], in: folder)
                for store in devices.stores { try store.database.execute("PRAGMA synchronous = OFF") }
                let now = devices.clock.now.milliseconds / 1000
                var files: [(path: String, device: String)] = []
                for number in 0..<(2 + random.below(4)) {
                    let path = "\(folder)/\(number)/lib.bib"
                    try writeFile(path, Self.wording(&random), modified: now - Int64(random.below(900_000)))
                    files.append((path, devices.names[random.below(2)]))
                }
                func takeAll() throws {
                    for file in files.shuffled(using: &random) {
                        _ = try Importer.run([file.path], into: devices[file.device], ImportOptions())
                        if random.chance(3) { try devices.syncLibrary(devices.names[random.below(2)]) }
                    }
                }
                func live(_ device: String) throws -> [Record] {
                    try devices[device].all().filter { $0.type == RecordType.publication && !$0.isDeleted }
                }
                func settle() throws { for _ in 0..<3 { for name in devices.names { try devices.syncLibrary(name) } } }
                try takeAll()
                try settle()
                _ = try devices["A"].delete(live("A").map(\.id.description))
                try settle()
                try takeAll()
                // The third one has the files of the one that deleted it, too, and meets them only now.
                for file in files where file.device == "A" {
                    _ = try Importer.run([file.path], into: devices["C"], ImportOptions())
                }
                try settle()
                for name in devices.names {
                    let found = try live(name).map(\.fields)
                    #expect(found.isEmpty, "BACKUP_TOOL_SEED=\(seed) \(name): \(found)")
                }
            }
        }
    }
}
