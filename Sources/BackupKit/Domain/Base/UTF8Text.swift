extension String {
    /// Nil where the bytes are not valid UTF-8. Nearly all texts are ASCII: checking that first is many times as fast as the
    /// validating initialiser.
    init?(utf8 bytes: UnsafeRawBufferPointer) {
        guard isASCII(bytes) else {
            self.init(validating: bytes, as: UTF8.self)
            return
        }
        self.init(decoding: bytes, as: UTF8.self)
    }
}

func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var index = 0
    while bytes.count - index >= 8 {
        if bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 { return false }
        index += 8
    }
    while index < bytes.count {
        if bytes[index] >= 0x80 { return false }
        index += 1
    }
    return true
}
