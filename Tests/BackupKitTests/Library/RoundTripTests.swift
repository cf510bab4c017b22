import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// Whatever a store holds, an empty one holds after an export and a restore.
@Suite struct RoundTripTests {
    private static let types = [
        RecordType.publication, RecordType.note, RecordType.event, "Item", "Another", RecordType.bibliographyPart,
    ]

    /// Records of all types, alive, deleted and kept on this device only; settings; files with times and marks of their own.
    private func fill(_ store: Store, _ random: inout SeededGenerator) throws {
        for number in 0..<(5 + random.below(15)) {
            let type = Self.types[random.below(Self.types.count)]
            let isDeleted = random.chance(5)
            let fields = [
                RecordType.publication: "{\"citeKey\":\"k\(number)\",\"title\":\"T \(number)\"}",
                RecordType.note: "{\"citeKey\":\"k\(number)\",\"note\":\"N\"}",
                RecordType.event: "{\"time\":\"2026-01-01T00:0\(number % 10)Z\",\"type\":\"x\",\"new\":[\(number)]}",
                RecordType.bibliographyPart:
                    "{\"kind\":\"comment\",\"file\":\"f\",\"rawBibTeX\":\"@comment{c\(number)}\"}",
            ]
            let isLocal = !isDeleted && random.chance(3)
            let name = isLocal ? "local:r\(number)" : "r\(number)"
            let own = record(
                name, isDeleted ? "{}" : fields[type] ?? "{\"x\":\(number)}", at: Int64(random.below(1000)),
                times: isDeleted || random.chance(2) ? [:] : ["title": Int64(random.below(900))], type: type,
                zone: random.chance(4) ? "Z" : RecordType.libraryZone, localID: random.chance(2) ? nil : "id\(number)",
                device: isDeleted || random.chance(2) ? nil : "d", local: isLocal, deleted: isDeleted)
            try store.take(own)
        }
        _ = try store.batch(kind: "import", source: "test") {
            for number in 0..<(1 + random.below(5)) {
                let text = String(repeating: "bytes \(number) ", count: 1 + random.below(2000))
                try store.withIncomingFolder { folder in
                    try writeFile("\(folder)/file", text)
                    let inner = random.chance(2) ? "in/" : ""
                    let asset = Asset(
                        path: "Attachments/\(inner)a\(number).pdf", size: Int64(text.utf8.count),
                        digest: .of(text), isLocalOnly: number == 0 || random.chance(2),
                        modifiedNanoseconds: Int64(1_600_000_000 + random.below(100_000_000)) * 1_000_000_000)
                    _ = try store.placeAsset(asset, from: "\(folder)/file")
                }
            }
            for number in 0..<random.below(4) {
                _ = try store.putSetting("key \(number)", "{\"v\":[\(number),null]}", at: time(Int64(number)))
            }
            return ((), summary: "{}")
        }
    }

    /// Each file with its mark and its time, which the content digest does not know.
    private func files(_ store: Store) throws -> [String] {
        var found: [String] = []
        try store.forEachAsset { asset in
            let onDisk = try FileStatus.ofName("\(store.assetFolder)/\(asset.path)")?.modifiedNanoseconds
            found.append("\(asset.path) \(asset.isLocalOnly) \(asset.modifiedNanoseconds) \(onDisk ?? 0)")
        }
        return found.sorted()
    }

    @Test(arguments: CarrierFormat.allCases, testSeeds(isTorture ? 50 : 3))
    func whateverAStoreHolds_anEmptyOneHoldsAfterARestore(_ format: CarrierFormat, _ seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withStore { test in
            try fill(test.store, &random)
            let path = "\(test.folder)/backup"
            _ = try Exporter.export(test.store, to: path, ExportOptions(form: .layout(format)))
            let whole = try Verifier.verify(path, level: .deep)
            #expect(whole.isOK, "seed \(seed): \(whole.findings)")
            var options = RestoreOptions()
            options.kinds = Set(Kind.allCases)
            try withStore { other in
                let result = try Restorer.restore(path, into: other.store, options)
                #expect(try other.store.digest() == test.store.digest(), "seed \(seed): \(result.findings)")
                #expect(try files(other.store) == files(test.store), "seed \(seed)")
                #expect(try Restorer.restore(path, into: other.store, options).writes == 0, "seed \(seed)")
            }
            let plain = "\(test.folder)/plain"
            _ = try Restorer.extract(path, to: plain, options)
            try test.store.forEachAsset { asset in
                let status = try FileStatus.ofName("\(plain)/\(asset.path)")
                #expect(status?.modifiedNanoseconds == asset.modifiedNanoseconds, "seed \(seed): \(asset.path)")
            }
        }
    }
}
