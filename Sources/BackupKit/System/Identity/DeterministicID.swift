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
        for part in parts {
            var part = part
            part.withUTF8 { bytes in
                withUnsafeBytes(of: UInt64(bytes.count).littleEndian) { hasher.update($0) }
                hasher.update(UnsafeRawBufferPointer(bytes))
            }
        }
        let digest = hasher.finish()
        return String(unsafeUninitializedCapacity: 36) { text in
            var place = 0
            for index in 0..<32 {
                if index == 8 || index == 12 || index == 16 || index == 20 {
                    text[place] = UInt8(ascii: "-")
                    place += 1
                }
                var nibble = UInt8(truncatingIfNeeded: digest.words[index / 16] >> UInt64(60 - index % 16 * 4)) & 15
                if index == 12 { nibble = 8 }
                // The two variant bits are 10.
                if index == 16 { nibble = 8 | nibble & 3 }
                text[place] = nibble < 10 ? 48 + nibble : 55 + nibble
                place += 1
            }
            return place
        }
    }
}
