/// The keys that objects of one kind may have, in the order in which they are usually written: the next key is looked
/// for behind the last one, so that it is nearly always the first that is compared.
struct KeyTable {
    private let names: [[UInt8]]

    init(_ names: [String]) { self.names = names.map { Array($0.utf8) } }

    /// The number of a key; `hint` is where to begin and becomes the place behind it. Nil for a key that is not known.
    /// A key that is written with escapes is not recognised: nobody writes these so.
    func find(_ bytes: UnsafeRawBufferPointer, _ key: Range<Int>, hint: inout Int) -> Int? {
        for step in 0..<names.count {
            var number = hint + step
            if number >= names.count { number -= names.count }
            guard names[number].count == key.count, names[number].elementsEqual(bytes[key]) else { continue }
            hint = number + 1 == names.count ? 0 : number + 1
            return number
        }
        return nil
    }
}

extension JSONScanner {
    /// Reads a string and returns the range between its quotes.
    mutating func readString() throws -> Range<Int> {
        let (kind, range) = try value()
        guard kind == .string else { throw problem("a string was expected") }
        return (range.lowerBound + 1)..<(range.upperBound - 1)
    }

    /// Reads a whole number without fraction and exponent that fits.
    mutating func readNumber<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        let (kind, range) = try value()
        guard kind == .number, let number = parse(type, range) else {
            throw problem("a whole number of \(Number.bitWidth) bits was expected")
        }
        return number
    }

    private func parse<Number: FixedWidthInteger>(_ type: Number.Type, _ range: Range<Int>) -> Number? {
        var number: Number = 0
        var index = range.lowerBound
        let isNegative = bytes[index] == UInt8(ascii: "-")
        if isNegative { index += 1 }
        while index < range.upperBound {
            let digit = bytes[index] &- 48
            guard digit < 10 else { return nil }
            let (scaled, tooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, over) =
                isNegative
                ? scaled.subtractingReportingOverflow(Number(digit)) : scaled.addingReportingOverflow(Number(digit))
            guard !tooLarge, !over else { return nil }
            number = sum
            index += 1
        }
        return number
    }

    /// Reads a SHA-256 in lower case.
    mutating func readDigest() throws -> SHA256Digest {
        let range = try readString()
        guard let digest = SHA256Digest(lowerHex: UnsafeRawBufferPointer(rebasing: bytes[range])) else {
            throw problem("64 hexadecimal digits were expected")
        }
        return digest
    }

    /// The next value is `null`, and was stepped over.
    mutating func takeNull() throws -> Bool {
        skipSpace()
        guard position < bytes.count, bytes[position] == UInt8(ascii: "n") else { return false }
        _ = try value()
        return true
    }
}
