/// Base64 as RFC 4648 has it, with padding and nothing else in between.
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let digits: [UInt8] = {
        var digits = [UInt8](repeating: 0xFF, count: 256)
        for (value, digit) in alphabet.enumerated() { digits[Int(digit)] = UInt8(value) }
        return digits
    }()

    static func encode(_ bytes: [UInt8]) -> String {
        var out: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for index in 0..<4 {
                let digit = alphabet[Int(bits >> UInt32(18 - 6 * index)) & 63]
                out.append(index <= group.count ? digit : UInt8(ascii: "="))
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    static func decode(_ text: String) -> [UInt8]? {
        let text = Array(text.utf8)
        guard text.count % 4 == 0 else { return nil }
        let padding = text.suffix(2).count { $0 == UInt8(ascii: "=") }
        var out: [UInt8] = []
        out.reserveCapacity(text.count / 4 * 3)
        var (bits, held) = (UInt32(0), 0)
        for byte in text.dropLast(padding) {
            let digit = digits[Int(byte)]
            guard digit != 0xFF else { return nil }
            bits = bits << 6 | UInt32(digit)
            held += 6
            if held >= 8 {
                held -= 8
                out.append(UInt8(truncatingIfNeeded: bits >> UInt32(held)))
            }
        }
        // What is left of the last digit says nothing and is zero, or two texts would mean the same bytes.
        return bits & (1 << UInt32(held) - 1) == 0 ? out : nil
    }
}
