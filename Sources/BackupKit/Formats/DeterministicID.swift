/// An id made from content, for what arrives without one: the same content gives the same id wherever it is imported, so
/// importing it twice adds nothing.
public enum DeterministicID {
    /// A UUID of version 8 (RFC 9562: "custom") from the SHA-256 of the parts, each preceded by its length.
    public static func make(_ parts: String...) -> String {
        let hasher = SHA256Hasher()
        for part in parts {
            var part = part
            part.withUTF8 { bytes in
                withUnsafeBytes(of: UInt64(bytes.count).littleEndian) { hasher.update($0) }
                hasher.update(UnsafeRawBufferPointer(bytes))
            }
        }
        var digits = Array(hasher.finish().hex.utf8.prefix(32))
        digits[12] = UInt8(ascii: "8")
        // The two variant bits are 10.
        digits[16] = Array("89ab".utf8)[Int(hexValue(digits[16]) ?? 0) & 3]
        let text = String(decoding: digits, as: UTF8.self).uppercased()
        var uuid = ""
        for (index, digit) in text.enumerated() {
            if [8, 12, 16, 20].contains(index) { uuid.append("-") }
            uuid.append(digit)
        }
        return uuid
    }
}
