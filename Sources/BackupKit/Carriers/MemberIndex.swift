/// The list of a tar's members that we put behind its frames, so that one can be found without the others. Everything
/// it says is said by the tar as well; a reader may skip it, and ours believes it only where the tar agrees.
///
/// A skippable frame: magic, length, then "BKTINDX1", then one zstd frame with a content checksum that holds, all
/// little-endian: u32 count, u64 end (the offset in the tar of its end mark); for each member u64 offset of its first
/// header, u64 size, i64 modification time, u16 length of its name, its name.
struct MemberIndex: Sendable {
    static let skippableMagic: UInt32 = 0x184D_2A5D
    private static let mark = Array("BKTINDX1".utf8)
    private static let headerSize = 12
    /// Two blocks of zeros behind the last member.
    private static let endMarkSize: Int64 = 1024
    private static let entrySize = 26
    /// A larger index is not written, and not read: it would have to be held in memory.
    private static let sizeMax = 96 << 20

    private var bytes: [UInt8] = []
    /// Where in `bytes` each member begins.
    private var starts: [UInt32] = []
    private var isTooLarge = false

    var count: Int { starts.count }

    init() {
        bytes.append(little: UInt32(0))
        bytes.append(little: UInt64(0))
    }

    // MARK: Writing

    mutating func append(_ info: EntryInfo, at offset: Int64) {
        guard !isTooLarge, bytes.count + Self.entrySize + info.path.utf8.count <= Self.sizeMax else {
            isTooLarge = true
            return
        }
        starts.append(UInt32(bytes.count))
        bytes.append(little: UInt64(offset))
        bytes.append(little: UInt64(info.size))
        bytes.append(little: info.modified)
        bytes.append(little: UInt16(info.path.utf8.count))
        bytes += info.path.utf8
    }

    /// The skippable frame; nil when the list became too large.
    func encoded(end: Int64) throws -> [UInt8]? {
        guard !isTooLarge else { return nil }
        var plain = bytes
        var head: [UInt8] = []
        head.append(little: UInt32(count))
        head.append(little: UInt64(end))
        plain.replaceSubrange(0..<head.count, with: head)
        let compressor = try ZstandardCompressor()
        let packed = try [UInt8](unsafeUninitializedCapacity: ZstandardCompressor.bound(plain.count)) { buffer, used in
            used = try plain.withUnsafeBytes {
                try compressor.compress($0, into: UnsafeMutableRawBufferPointer(buffer), .level(3))
            }
        }
        var frame: [UInt8] = []
        frame.append(little: Self.skippableMagic)
        frame.append(little: UInt32(Self.mark.count + packed.count))
        return frame + Self.mark + packed
    }

    // MARK: Reading

    /// Whether the content of a skippable frame begins as an index does.
    static func isMarked(_ file: FileHandle, at offset: Int64) throws -> Bool {
        var fields = try ByteFields(file, at: offset, count: Int64(mark.count))
        return fields.slice(mark.count)?.elementsEqual(mark) == true
    }

    /// Reads the frame that lies at `range`; nil when it is no index, is damaged or contradicts itself.
    init?(_ file: FileHandle, at range: Range<Int64>, tarSize: Int64) throws {
        guard range.count <= Self.sizeMax else { return nil }
        var frame = try ByteFields(file, at: range.lowerBound, count: Int64(range.count))
        guard frame.number(UInt32.self) == Self.skippableMagic,
            frame.number(UInt32.self) == UInt32(exactly: frame.remaining),
            let mark = frame.slice(Self.mark.count), mark.elementsEqual(Self.mark)
        else { return nil }
        guard let plain = try Self.unpack(&frame), Self.hasSaneSize(plain) else { return nil }
        bytes = plain
        guard readStarts(tarSize: tarSize) else { return nil }
    }

    private static func hasSaneSize(_ plain: [UInt8]) -> Bool { plain.count >= headerSize && plain.count <= sizeMax }

    private static func unpack(_ frame: inout ByteFields) throws -> [UInt8]? {
        let stream = try ZstandardStream()
        var plain: [UInt8] = []
        let isSound = frame.withSlice(frame.remaining) { packed in
            withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 8) { buffer in
                var rest = packed
                while true {
                    let step = stream.step(rest, into: buffer)
                    plain += UnsafeRawBufferPointer(rebasing: buffer[..<step.produced])
                    rest = UnsafeRawBufferPointer(rebasing: rest[step.taken...])
                    if step.failure != nil || plain.count > sizeMax { return false }
                    if stream.isAtEnd { return rest.isEmpty }
                    if step.taken == 0 && step.produced == 0 { return false }
                }
            }
        }
        return isSound == true ? plain : nil
    }

    /// Finds the members, and checks that they follow one another as members of a tar do.
    private mutating func readStarts(tarSize: Int64) -> Bool {
        var fields = ByteFields(bytes)
        guard let count = fields.number(UInt32.self), let end = fields.number(UInt64.self),
            Int(count) <= fields.remaining / Self.entrySize,
            // The frames' own sizes have no checksum: one that is wrong shows here.
            Int64(exactly: end) == tarSize - Self.endMarkSize
        else { return false }
        starts.reserveCapacity(Int(count))
        var earliest: UInt64 = 0
        for number in 0..<count {
            let start = fields.position
            guard let offset = fields.number(UInt64.self), let size = fields.number(UInt64.self),
                fields.number(Int64.self) != nil, let length = fields.number(UInt16.self),
                fields.slice(Int(length)) != nil
            else { return false }
            guard offset % 512 == 0, offset >= earliest, number > 0 || offset == 0, size <= end, offset < end else {
                return false
            }
            earliest = offset + 512 + size
            starts.append(UInt32(start))
        }
        return fields.remaining == 0 && earliest <= end && (count > 0 || end == 0)
    }

    /// The offset of a member's first header; of the end mark for the number behind the last.
    func offset(_ number: Int) -> Int64 {
        let position = number < count ? Int(starts[number]) : 4
        return bytes.withUnsafeBytes { Int64($0.loadUnaligned(fromByteOffset: position, as: Int64.self).littleEndian) }
    }

    /// What is known of a member. Throws `.refused` for a name that no backup may hold.
    func info(_ number: Int) throws -> EntryInfo {
        var fields = ByteFields(bytes)
        fields.skip(to: Int(starts[number]) + 8)
        let size = fields.number(Int64.self) ?? 0
        let modified = fields.number(Int64.self) ?? 0
        let length = fields.number(UInt16.self) ?? 0
        let path = try fields.withSlice(Int(length)) { try EntryName.checked($0) }
        return EntryInfo(path: path ?? "", size: size, modified: modified)
    }

    /// The numbers of the members of this name.
    func numbers(named path: String) -> [Int] {
        let wanted = Array(path.utf8)
        return bytes.withUnsafeBytes { bytes in
            (0..<count).filter { number in
                let start = Int(starts[number])
                let end = number + 1 < count ? Int(starts[number + 1]) : bytes.count
                guard end - start - Self.entrySize == wanted.count else { return false }
                return UnsafeRawBufferPointer(rebasing: bytes[(start + Self.entrySize)..<end]).elementsEqual(wanted)
            }
        }
    }

    /// The first member whose header begins at `offset` or behind it.
    func firstNumber(from offset: Int64) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if self.offset(middle) < offset { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
