import Glibc

@testable import BackupKit

/// Sound inputs, for a fuzzer and for tests that damage them.
extension FuzzTarget {
    public func seeds() throws -> [[UInt8]] { try own() + samples.map { try readFile("\(FuzzSeeds.samples)/\($0)") } }

    /// Real files that every copy of the project has.
    private var samples: [String] {
        switch self {
        case .bib: ["library/references.bib", "library/latin1.bib", "imbib-backup-2026-03-08/library.bib"]
        case .jsonl: ["events/2026-03-01.jsonl", "events/2026-03-06.jsonl"]
        case .notes: ["library/notes.json", "imbib-backup-2026-03-08/notes.json"]
        case .settings: ["library/settings.json", "imbib-backup-2026-03-08/settings.json"]
        case .manifest: ["imbib-backup-2026-03-08/manifest.json"]
        case .schema: ["schema/library-120.json"]
        default: []
        }
    }

    private func own() throws -> [[UInt8]] {
        switch self {
        case .bib: FuzzSeeds.bibliographies.map { Array($0.utf8) }
        case .jsonl:
            [
                "{\"id\":\"e\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"tuin\",\"photo\":\"a/b.jpg\"}\n",
                String(decoding: record("a", "{\"x\":1}", times: ["x": 1]).jsonText, as: UTF8.self) + "\n",
            ].map { Array($0.utf8) }
        case .notes: [Array("[{\"citeKey\":\"a\",\"note\":\"n\",\"modifiedAt\":\"2026-01-01T00:00:00Z\"}]".utf8)]
        case .settings: [Array("{\"a\":1,\"featureFlags\":{\"b\":true}}".utf8)]
        case .toml: FuzzSeeds.configurations.map { Array($0.utf8) }
        case .schema: FuzzSeeds.schemas.map { Array($0.utf8) }
        case .manifest: try FuzzSeeds.files(["manifest.json", "SHA256SUMS"])
        case .tar: try FuzzSeeds.archive(.tar)
        case .zip: try FuzzSeeds.archive(.zip)
        case .zstd: try FuzzSeeds.archive(.tarZstandard) + FuzzSeeds.archive(.tar)
        case .xz: try FuzzSeeds.archive(.tarXZ)
        case .gzip: try FuzzSeeds.archive(.tarGzip)
        case .store, .hub: [Array(0..<64), [1, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255]]
        case .vault: FuzzSeeds.vaultFiles
        }
    }
}

enum FuzzSeeds {
    static let scratch: String = {
        var template = Array("/dev/shm/backup-tool-fuzz-XXXXXX".utf8CString)
        _ = mkdtemp(&template)
        return template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }()

    static let samples = "\(projectFolder)/samples"

    static let bibliographies = [
        "@string{j = {Journal}}\n@article{a, title = {T} # j, month = jan, file = {:x.pdf:PDF}}\n% text\n",
        "@book(k, author = \"A and B\",)\n@comment{x}@preamble{\"y\"}",
        "@comment{jabref-meta: grouping:\n0 AllEntriesGroup:;\n1 StaticGroup:a\\;0\\;1\\;;\n}\n",
        "@misc{b, title = {a \\} b}, Bdsk-File-1 = {YnBsaXN0MDDSAQIDBFxyZWxhdGl2ZVBhdGhYYm9va21hcms=}}\n",
    ]

    static let configurations = [
        "store = \"a\"\nhub = 'b'\n[profile.x]\nkeep.last = 3\nlist = [1, 2.5, true]\n",
        "vault = \"\"\"\nv\\u00e9\"\"\"\n\"quoted\".key = '''x'''\n[keep]\ndaily = 7\nwithin-daily = '1y2m3d4h'\n",
        "d = 1979-05-27T07:32:00Z\n[[t]]\na = {b = 0x1F, c = -1_000e3}\n[[t]]\n# comment\n",
    ]

    static let schemas = [
        "{\"formatVersion\":1,\"name\":\"x\",\"version\":120,"
            + "\"entities\":{\"A\":{\"attributes\":{\"a\":{\"type\":\"string\"}}}}}",
        "<?xml version=\"1.0\"?><model><entity name=\"A\"><attribute name=\"a\" attributeType=\"String\"/></entity></model>",
        "DEFINE SCHEMA\n  RECORD TYPE A (\n    \"___recordID\" REFERENCE QUERYABLE,\n    a STRING SORTABLE,\n"
            + "    b LIST<INT64>,\n    GRANT READ TO \"_world\"\n  );\n",
    ]

    static func archive(_ format: CarrierFormat) throws -> [[UInt8]] {
        [try withExport(.layout(format)) { try readFile($0) }]
    }

    /// What is no zstd file becomes one whose checksums fit: else no changed tar would ever come out of it.
    static func inFrames(_ bytes: [UInt8]) throws -> [UInt8] {
        let isPacked = bytes.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) || bytes.starts(with: [0x5D, 0x2A, 0x4D, 0x18])
        guard !isPacked, !bytes.isEmpty else { return bytes }
        let compressor = try ZstandardCompressor()
        var (file, table) = ([UInt8](), FrameTable())
        for start in stride(from: 0, to: bytes.count, by: 4096) {
            let piece = bytes[start..<min(start + 4096, bytes.count)]
            let most = ZstandardCompressor.bound(piece.count)
            let frame = try [UInt8](unsafeUninitializedCapacity: most) { space, count in
                count = try piece.withUnsafeBytes {
                    try compressor.compress($0, into: UnsafeMutableRawBufferPointer(space), .level(1))
                }
            }
            file += frame
            table.append(packed: frame.count, unpacked: piece.count)
        }
        return file + table.encoded()
    }

    static func files(_ names: [String]) throws -> [[UInt8]] {
        try withExport(.layout(.directory)) { folder in try names.map { try readFile("\(folder)/\($0)") } }
    }

    private static func withExport<Result>(_ form: ExportOptions.Form, _ body: (String) throws -> Result) throws
        -> Result
    {
        try withStore { test in
            try test.store.take(record("a", "{\"x\":1}"), record("b"))
            _ = try test.store.batch(kind: "import", source: "fuzz") {
                try place("Attachments/a.pdf", "bytes", in: test.store)
                return ((), summary: "{}")
            }
            _ = try Exporter.export(test.store, to: "\(test.folder)/out", ExportOptions(form: form))
            return try body("\(test.folder)/out")
        }
    }

    static let vaultFiles: [[UInt8]] = {
        let id = SHA256Digest.of("x")
        let blobs = [PackedBlob(.data, id, offset: 0, length: 100, plainLength: 0)]
        let node = TreeNode(name: Array("a".utf8), kind: .file)
        var seeds = [PackHeader.encode(blobs), PackIndex(packs: [.init(id: id, blobs: blobs)]).encoded()]
        if let tree = try? Tree(nodes: [node]).encoded() { seeds.append(tree) }
        seeds.append(SnapshotFile(time: GoTime(seconds: 0), tree: id, paths: ["/a"]).encoded())
        seeds.append(Array("{\"kdf\":\"scrypt\",\"N\":32768,\"r\":8,\"p\":5,\"salt\":\"\",\"data\":\"\"}".utf8))
        seeds.append(Array("{\"version\":2,\"id\":\"\(id.hex)\",\"chunker_polynomial\":\"25b468838dcb75\"}".utf8))
        return seeds
    }()
}
