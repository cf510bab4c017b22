/// Where the frames of a `.tar.zst` lie: the "seek table" of the zstd seekable format, a skippable frame at the end.
/// https://github.com/facebook/zstd/blob/dev/contrib/seekable_format/zstd_seekable_compression_format.md
struct FrameTable: Sendable {
    static let skippableMagic: UInt32 = 0x184D_2A5E
    static let footerMagic: UInt32 = 0x8F92_EAB1
    private static let footerSize: Int64 = 9
    private static let headerSize: Int64 = 8
    /// Larger frames are not ours, and one of them per thread has to fit into memory.
    private static let frameMax: UInt32 = 16 << 20

    /// 4 TiB of frames of our size; more would cost more memory than we grant a stranger.
    static let countMax: UInt32 = 1 << 20

    /// Frame n lies between `packed[n]` and `packed[n + 1]` and holds the bytes `unpacked[n]` to `unpacked[n + 1]`.
    private(set) var packed: [Int64] = [0]
    private(set) var unpacked: [Int64] = [0]

    var count: Int { packed.count - 1 }
    var unpackedSize: Int64 { unpacked[count] }

    func packedRange(_ frame: Int) -> Range<Int64> { packed[frame]..<packed[frame + 1] }
    func unpackedRange(_ frame: Int) -> Range<Int64> { unpacked[frame]..<unpacked[frame + 1] }

    mutating func append(packed packedSize: Int, unpacked unpackedSize: Int) {
        packed.append(packed[count] + Int64(packedSize))
        unpacked.append(unpacked[unpacked.count - 1] + Int64(unpackedSize))
    }

    /// The frame that holds this byte of what comes out; the last one for what lies behind the end.
    func frame(at offset: Int64) -> Int {
        var low = 0
        var high = count
        while high - low > 1 {
            let middle = (low + high) / 2
            if unpacked[middle] <= offset { low = middle } else { high = middle }
        }
        return low
    }

    /// The skippable frame that ends the file.
    func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(little: Self.skippableMagic)
        bytes.append(little: UInt32(count * 8) + UInt32(Self.footerSize))
        for frame in 0..<count {
            bytes.append(little: UInt32(packed[frame + 1] - packed[frame]))
            bytes.append(little: UInt32(unpacked[frame + 1] - unpacked[frame]))
        }
        bytes.append(little: UInt32(count))
        // No checksums in the table: every frame carries its own.
        bytes.append(0)
        bytes.append(little: Self.footerMagic)
        return bytes
    }

    init() {}

    /// Whether the last bytes of a file are those of a table, whatever it begins with.
    static func ends(_ file: FileHandle) throws -> Bool {
        var magic = try ByteFields(file, at: file.status().size - 4, count: 4)
        return magic.number(UInt32.self) == footerMagic
    }

    /// The table at the end of a file; nil when there is none that fits the file to the byte.
    init?(readingFrom file: FileHandle) throws {
        let size = try file.status().size
        var footer = try ByteFields(file, at: size - Self.footerSize, count: Self.footerSize)
        guard let count = footer.number(UInt32.self), let flags = footer.number(UInt8.self),
            footer.number(UInt32.self) == Self.footerMagic, flags == 0
        else { return nil }
        let tableSize = Int64(count) * 8 + Self.footerSize
        let start = size - tableSize - Self.headerSize
        guard start > 0, count > 0, count <= Self.countMax else { return nil }
        var table = try ByteFields(file, at: start, count: tableSize + Self.headerSize)
        guard table.number(UInt32.self) == Self.skippableMagic, table.number(UInt32.self) == UInt32(exactly: tableSize)
        else { return nil }
        packed.reserveCapacity(Int(count) + 1)
        unpacked.reserveCapacity(Int(count) + 1)
        for _ in 0..<count {
            guard let packedSize = table.number(UInt32.self), let unpackedSize = table.number(UInt32.self),
                packedSize > 0, packedSize <= Self.frameMax + 1 << 18, unpackedSize <= Self.frameMax
            else { return nil }
            append(packed: Int(packedSize), unpacked: Int(unpackedSize))
        }
        guard packed[self.count] == start else { return nil }
    }
}

/// Little-endian numbers out of bytes from outside: past the end there is nil, never a trap.
struct ByteFields {
    private let bytes: [UInt8]
    private(set) var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// `count` bytes of a file; nothing where the file does not have them.
    init(_ file: FileHandle, at offset: Int64, count: Int64) throws {
        guard offset >= 0, count >= 0 else {
            bytes = []
            return
        }
        bytes = try [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, used in
            used = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        }
    }

    var remaining: Int { bytes.count - position }

    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
        let width = MemoryLayout<Number>.size
        guard remaining >= width else { return nil }
        defer { position += width }
        return bytes.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: type)) }
    }

    mutating func slice(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, remaining >= count else { return nil }
        defer { position += count }
        return bytes[position..<(position + count)]
    }

    /// Calls `body` with the next `count` bytes where they lie.
    mutating func withSlice<Result>(_ count: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result?
    {
        guard count >= 0, remaining >= count else { return nil }
        defer { position += count }
        return try bytes.withUnsafeBytes {
            try body(UnsafeRawBufferPointer(rebasing: $0[position..<(position + count)]))
        }
    }

    mutating func skip(to position: Int) { self.position = min(max(0, position), bytes.count) }
}

extension [UInt8] {
    mutating func append<Number: FixedWidthInteger>(little number: Number) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}
