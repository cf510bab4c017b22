/// An id made from content, for what arrives without one: the same content gives the same id wherever it is imported, so
/// importing it twice adds nothing.
public enum DeterministicID {
    /// A UUID of version 8 (RFC 9562: "custom") from the SHA-256 of the parts, each preceded by its length.
    public static func make(_ parts: String...) -> String { make(SHA256Hasher(), parts) }

    /// Whether an id has the form of those that are made here. Apps give their records UUIDs of other versions.
    static func isMade(_ id: String) -> Bool {
        let text = Array(id.utf8)
        return text.count == 36 && text[14] == UInt8(ascii: "8")
            && text.enumerated().allSatisfy { place, byte in
                [8, 13, 18, 23].contains(place)
                    ? byte == UInt8(ascii: "-")
                    : 0x30...0x39 ~= byte || UInt8(ascii: "A")...UInt8(ascii: "F") ~= byte
            }
    }

    /// The same with a hasher that the caller has already.
    static func make(_ hasher: SHA256Hasher, _ parts: String...) -> String { make(hasher, parts) }

    private static func make(_ hasher: SHA256Hasher, _ parts: [String]) -> String {
        var text: [UInt8] = []
        for part in parts {
            withUnsafeBytes(of: UInt64(part.utf8.count).littleEndian) { text += $0 }
            text += part.utf8
        }
        text.withUnsafeBytes(hasher.update)
        var digits: [UInt8] = []
        hasher.finish().appendHex(to: &digits)
        return String(unsafeUninitializedCapacity: 36) { text in
            var place = 0
            for (index, digit) in digits.prefix(32).enumerated() {
                if index == 8 || index == 12 || index == 16 || index == 20 {
                    text[place] = UInt8(ascii: "-")
                    place += 1
                }
                text[place] = digit < 0x61 ? digit : digit & ~0x20
                place += 1
            }
            text[14] = UInt8(ascii: "8")
            // The two variant bits are 10.
            text[19] = Array("89AB".utf8)[Int(hexValue(text[19]) ?? 0) & 3]
            return place
        }
    }
}
