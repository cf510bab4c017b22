/// An index file: which blobs lie in which packs, and where.
public struct PackIndex: Sendable, Equatable {
    public struct Pack: Sendable, Equatable {
        public var id: SHA256Digest
        /// Sorted by offset when we write; in any order when others do.
        public var blobs: [PackedBlob]
        /// Listed by rustic among `packs_to_delete`: it exists and MUST NOT be counted on.
        public var isToBeDeleted = false

        public init(id: SHA256Digest, blobs: [PackedBlob]) {
            self.id = id
            self.blobs = blobs
        }
    }

    public var packs: [Pack] = []

    public init(packs: [Pack] = []) { self.packs = packs }

    /// Reads a whole index.
    public init(parsing json: UnsafeRawBufferPointer) throws {
        try Self.forEachPack(json) { packs.append($0) }
    }

    private static let packKeys = KeyTable(["id", "blobs"])
    private static let blobKeys = KeyTable(["id", "type", "offset", "length", "uncompressed_length"])

    /// Reads an index in one pass, without holding more than one pack of it.
    public static func forEachPack(_ json: UnsafeRawBufferPointer, _ body: (Pack) throws -> Void) throws {
        var scanner = JSONScanner(json)
        var hasPacks = false
        try scanner.readMembers { scanner, key in
            switch String(decoding: json[key], as: UTF8.self) {
            case "packs":
                hasPacks = true
                try packs(&scanner, json) { try body($0) }
            case "packs_to_delete":
                try packs(&scanner, json) { pack in
                    var pack = pack
                    pack.isToBeDeleted = true
                    try body(pack)
                }
            default: _ = try scanner.value()
            }
        }
        try scanner.expectEnd()
        // Any sealed file opens under any name: one without packs is no index.
        guard hasPacks else { throw BackupError(.damaged, "is no index: it has no 'packs'") }
    }

    private static func packs(
        _ scanner: inout JSONScanner, _ json: UnsafeRawBufferPointer, _ body: (Pack) throws -> Void
    ) throws {
        if try scanner.takeNull() { return }
        try scanner.readElements { scanner in
            var id: SHA256Digest?
            var blobs: [PackedBlob] = []
            var hint = 0
            try scanner.readMembers { scanner, key in
                switch packKeys.find(json, key, hint: &hint) {
                case 0: id = try scanner.readDigest()
                case 1 where try !scanner.takeNull():
                    try scanner.readElements { blobs.append(try blob(&$0, json)) }
                case 1: break
                default: _ = try scanner.value()
                }
            }
            guard let id else { throw scanner.problem("a pack without 'id'") }
            try body(Pack(id: id, blobs: blobs))
        }
    }

    private static func blob(_ scanner: inout JSONScanner, _ json: UnsafeRawBufferPointer) throws -> PackedBlob {
        var id: SHA256Digest?
        var type: BlobType?
        var offset: UInt32?
        var length: UInt32?
        var plain: UInt32 = 0
        var hint = 0
        try scanner.readMembers { scanner, key in
            switch blobKeys.find(json, key, hint: &hint) {
            case 0: id = try scanner.readDigest()
            case 1:
                let word = try scanner.readString()
                type = BlobType.allCases.first { $0.name.utf8.elementsEqual(json[word]) }
            case 2: offset = try scanner.readNumber(UInt32.self)
            case 3: length = try scanner.readNumber(UInt32.self)
            case 4: plain = try scanner.readNumber(UInt32.self)
            default: _ = try scanner.value()
            }
        }
        guard let id, let type, let offset, let length, length >= UInt32(PackHeader.sealOverhead) else {
            throw scanner.problem("a blob without a usable id, type, offset and length")
        }
        return PackedBlob(type, id, offset: offset, length: length, plainLength: plain)
    }

    /// The bytes of an index file, before they are packed and sealed.
    public func encoded() -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(64 + packs.reduce(0) { $0 + 80 + $1.blobs.count * 170 })
        out += "{\"packs\":[".utf8
        for (number, pack) in packs.enumerated() {
            out += (number == 0 ? "{\"id\":\"" : ",{\"id\":\"").utf8
            pack.id.appendHex(to: &out)
            out += "\",\"blobs\":[".utf8
            for (number, blob) in pack.blobs.enumerated() { Self.append(blob, isFirst: number == 0, to: &out) }
            out += "]}".utf8
        }
        out += "]}\n".utf8
        return out
    }

    private static func append(_ blob: PackedBlob, isFirst: Bool, to out: inout [UInt8]) {
        out += (isFirst ? "{\"id\":\"" : ",{\"id\":\"").utf8
        blob.id.appendHex(to: &out)
        out += (blob.type == .data ? "\",\"type\":\"data\",\"offset\":" : "\",\"type\":\"tree\",\"offset\":").utf8
        out += String(blob.offset).utf8
        out += ",\"length\":".utf8
        out += String(blob.length).utf8
        if blob.isCompressed {
            out += ",\"uncompressed_length\":".utf8
            out += String(blob.plainLength).utf8
        }
        out.append(UInt8(ascii: "}"))
    }
}
