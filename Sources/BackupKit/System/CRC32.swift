/// CRC-32 as gzip and zip use it (RFC 1952, section 8), eight bytes at a time.
struct CRC32 {
    private(set) var value: UInt32 = 0

    /// Eight tables of 256: table n gives the effect of a byte that has n more bytes behind it.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var crc = UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
            tables[byte] = crc
        }
        for index in 256..<tables.count {
            let before = tables[index - 256]
            tables[index] = before >> 8 ^ tables[Int(before & 255)]
        }
        return tables
    }()

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        Self.tables.withUnsafeBufferPointer { table in
            var crc = ~value
            var offset = 0
            while bytes.count - offset >= 8 {
                let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                let mixed = word ^ UInt64(crc)
                crc = 0
                for lane in 0..<8 {
                    crc ^= table[(7 - lane) * 256 + Int(truncatingIfNeeded: mixed >> UInt64(lane * 8) & 255)]
                }
                offset += 8
            }
            while offset < bytes.count {
                crc = crc >> 8 ^ table[Int((crc ^ UInt32(bytes[offset])) & 255)]
                offset += 1
            }
            value = ~crc
        }
    }
}
