/// A look at the structure of an xz file, because libarchive grants each block a dictionary of up to 1 GiB.
/// https://tukaani.org/xz/xz-file-format.txt
enum XZLayout {
    /// What `xz -9` asks for; more would cost more memory than we grant a stranger.
    private static let dictionaryMax: UInt64 = 64 << 20
    private static let headerLength: Int64 = 12

    /// Throws `.refused` when a block asks for a larger dictionary. Where the structure is damaged, only the first block
    /// is looked at: reading goes on to what can be had, and reports the damage.
    static func refuseLargeDictionaries(_ file: FileHandle) throws {
        try check(block: headerLength, of: file)
        for block in try blocks(of: file) { try check(block: block, of: file) }
    }

    private static func check(block offset: Int64, of file: FileHandle) throws {
        let header = try bytes(of: file, at: offset, count: 1024)
        guard let size = dictionarySize(header), size > dictionaryMax else { return }
        throw BackupError(.refused, "needs \(size >> 20) MiB of memory to unpack", at: file.path)
    }

    /// The dictionary size that a block header asks for (sections 3.1 and 5.3.1); nil when there is none in it.
    private static func dictionarySize(_ header: [UInt8]) -> UInt64? {
        guard header.count > 2, header[0] != 0 else { return nil }
        let flags = header[1]
        var position = 2
        if flags & 0x40 != 0 { guard number(header, &position) != nil else { return nil } }
        if flags & 0x80 != 0 { guard number(header, &position) != nil else { return nil } }
        for _ in 0...(flags & 3) {
            guard let filter = number(header, &position), let length = number(header, &position) else { return nil }
            if filter == 0x21, length == 1, position < header.count {
                let bits = UInt64(header[position] & 63)
                if bits > 40 { return .max }
                return bits == 40 ? UInt64(UInt32.max) : (2 | bits & 1) << (bits / 2 + 11)
            }
            guard length < 1024 else { return nil }
            position += Int(length)
        }
        return nil
    }

    /// Where the blocks begin, according to the index at the end (section 4); empty when there is no sound one.
    private static func blocks(of file: FileHandle) throws -> [Int64] {
        let size = try file.status().size
        let footer = try bytes(of: file, at: size - headerLength, count: 12)
        guard size >= 2 * headerLength, footer.count == 12, footer[10] == 0x59, footer[11] == 0x5A else { return [] }
        let backward = (0..<4).reduce(UInt32(0)) { $0 | UInt32(footer[4 + $1]) << (8 * UInt32($1)) }
        let indexSize = (Int64(backward) + 1) * 4
        let start = size - headerLength - indexSize
        // 64 MiB of index would describe millions of blocks.
        guard start >= headerLength, indexSize <= 64 << 20 else { return [] }
        let index = try bytes(of: file, at: start, count: Int(indexSize))
        var position = 1
        guard index.first == 0, let count = number(index, &position), count <= UInt64(index.count) else { return [] }
        var blocks: [Int64] = []
        var offset = headerLength
        for _ in 0..<count {
            guard let packed = number(index, &position), number(index, &position) != nil,
                packed < UInt64(start), offset < start
            else { return [] }
            blocks.append(offset)
            offset += Int64((packed + 3) & ~3)
        }
        return offset == start ? blocks : []
    }

    /// A variable-length integer (section 1.2).
    private static func number(_ bytes: [UInt8], _ position: inout Int) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 63, by: 7) {
            guard position < bytes.count else { return nil }
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return value }
        }
        return nil
    }

    private static func bytes(of file: FileHandle, at offset: Int64, count: Int) throws -> [UInt8] {
        guard offset >= 0 else { return [] }
        return try [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            used = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        }
    }
}
