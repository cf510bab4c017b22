/// What a blob holds. The raw value is that of a pack's header for a blob that is not compressed.
public enum BlobType: UInt8, Sendable, CaseIterable {
    case data = 0
    case tree = 1

    /// The word that indexes use.
    public var name: String { self == .data ? "data" : "tree" }
}

/// A blob's identity: the same bytes may exist once as data and once as a tree.
public struct BlobHandle: Hashable, Sendable {
    public let type: BlobType
    public let id: SHA256Digest

    public init(_ type: BlobType, _ id: SHA256Digest) {
        self.type = type
        self.id = id
    }
}

/// Where a blob lies in its pack.
public struct PackedBlob: Hashable, Sendable {
    public var type: BlobType
    public var id: SHA256Digest
    public var offset: UInt32
    /// Sealed bytes.
    public var length: UInt32
    /// 0 when the blob is not compressed.
    public var plainLength: UInt32

    public init(_ type: BlobType, _ id: SHA256Digest, offset: UInt32, length: UInt32, plainLength: UInt32) {
        self.type = type
        self.id = id
        self.offset = offset
        self.length = length
        self.plainLength = plainLength
    }

    public var isCompressed: Bool { plainLength > 0 }
    public var handle: BlobHandle { BlobHandle(type, id) }
    public var end: UInt64 { UInt64(offset) + UInt64(length) }

    /// Bytes of its plain text, were it intact.
    public var contentLength: Int {
        isCompressed ? Int(plainLength) : max(0, Int(length) - PackHeader.sealOverhead)
    }
}

/// The end of a pack: `blobs ‖ sealed(entries) ‖ length of the sealed entries, 32 bits, little-endian`.
public enum PackHeader {
    /// Bytes that sealing adds: an initialisation vector and a MAC.
    public static let sealOverhead = 32
    public static let trailerSize = 4
    static let plainEntrySize = 37
    static let compressedEntrySize = 41
    /// A header and its trailer are refused beyond this.
    static let maximumSize = 16 << 20
    /// As many entries of either kind as fit.
    public static let maximumEntries = (maximumSize - sealOverhead - trailerSize) / compressedEntrySize
    public static let minimumPackSize = plainEntrySize + sealOverhead + trailerSize
    /// What to read first: the headers of small packs fit in it.
    public static let usualTail = 15 * compressedEntrySize + sealOverhead + trailerSize

    /// The range of the sealed header in a pack of `packSize` bytes whose last four are `trailer`.
    public static func range(trailer: UnsafeRawBufferPointer, packSize: Int64) throws -> Range<Int64> {
        guard trailer.count == trailerSize, packSize >= minimumPackSize else {
            throw BackupError(.damaged, "is too short for a pack: \(packSize) bytes")
        }
        let length = Int64(UInt32(littleEndian: trailer.loadUnaligned(as: UInt32.self)))
        guard length >= sealOverhead + plainEntrySize, length <= packSize - Int64(trailerSize),
            length <= maximumSize
        else { throw BackupError(.damaged, "has a header that cannot be \(length) bytes long") }
        let end = packSize - Int64(trailerSize)
        return (end - length)..<end
    }

    /// The entries of an opened header, with the offsets that their order implies.
    public static func decode(_ header: UnsafeRawBufferPointer) throws -> [PackedBlob] {
        var entries: [PackedBlob] = []
        entries.reserveCapacity(header.count / plainEntrySize)
        var position = 0
        var offset: UInt64 = 0
        while position < header.count {
            let kind = header[position]
            guard kind < 4, let type = BlobType(rawValue: kind & 1) else {
                throw BackupError(.damaged, "has a header with an entry of unknown kind \(kind)")
            }
            let isCompressed = kind & 2 != 0
            let size = isCompressed ? compressedEntrySize : plainEntrySize
            guard header.count - position >= size else {
                throw BackupError(.damaged, "has a header that ends within an entry")
            }
            let length = word(header, position + 1)
            let plain = isCompressed ? word(header, position + 5) : 0
            guard length >= UInt32(sealOverhead), !isCompressed || plain > 0, offset <= UInt64(UInt32.max) else {
                throw BackupError(.damaged, "has a header with lengths that cannot be")
            }
            let id = SHA256Digest(UnsafeRawBufferPointer(rebasing: header[(position + size - 32)..<(position + size)]))
            entries.append(
                PackedBlob(type, id, offset: UInt32(offset), length: length, plainLength: plain))
            offset += UInt64(length)
            position += size
        }
        return entries
    }

    /// The plain text of a header; `blobs` in the order in which they lie in the pack.
    public static func encode(_ blobs: [PackedBlob]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(blobs.count * compressedEntrySize)
        for blob in blobs {
            out.append(blob.type.rawValue | (blob.isCompressed ? 2 : 0))
            appendWord(blob.length, to: &out)
            if blob.isCompressed { appendWord(blob.plainLength, to: &out) }
            blob.id.appendBytes(to: &out)
        }
        return out
    }

    /// The size that a pack of these blobs has: what an index says of a pack is checked against it.
    public static func packSize(_ blobs: some Sequence<PackedBlob>) -> UInt64 {
        var sum = UInt64(sealOverhead + trailerSize)
        for blob in blobs {
            sum += UInt64(blob.length) + UInt64(blob.isCompressed ? compressedEntrySize : plainEntrySize)
        }
        return sum
    }

    static func appendWord(_ word: UInt32, to out: inout [UInt8]) {
        for shift in stride(from: UInt32(0), to: 32, by: 8) { out.append(UInt8(truncatingIfNeeded: word >> shift)) }
    }

    private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}

extension SHA256Digest {
    /// Appends the 32 bytes.
    func appendBytes(to out: inout [UInt8]) {
        for word in 0..<4 { withUnsafeBytes(of: words[word].bigEndian) { out.append(contentsOf: $0) } }
    }

    /// Reads 64 hexadecimal digits, lower case as restic demands of names.
    init?(lowerHex bytes: UnsafeRawBufferPointer) {
        guard !bytes.contains(where: { 65...70 ~= $0 }) else { return nil }
        self.init(hexBytes: Slice(base: bytes, bounds: bytes.indices))
    }
}
