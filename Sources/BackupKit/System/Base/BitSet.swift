/// A set of small numbers that knows how many of its members come before one.
struct BitSet {
    private var words: [UInt64]
    private var ranks: [UInt32] = []

    init(count: Int) { words = [UInt64](repeating: 0, count: count / 64 + 1) }

    mutating func insert(_ number: Int) { words[number / 64] |= 1 << UInt64(number % 64) }

    func contains(_ number: Int) -> Bool { words[number / 64] >> UInt64(number % 64) & 1 != 0 }

    func hasMember(in range: Range<Int>) -> Bool {
        guard !range.isEmpty else { return false }
        return words[range.lowerBound / 64...(range.upperBound - 1) / 64].contains { $0 != 0 }
    }

    /// Visits the members in their order.
    func forEach(_ body: (Int) throws -> Void) rethrows {
        for (index, word) in words.enumerated() where word != 0 {
            var rest = word
            while rest != 0 {
                try body(index * 64 + rest.trailingZeroBitCount)
                rest &= rest - 1
            }
        }
    }

    /// Must be called when the set is complete, before `rank`.
    mutating func countRanks() {
        var sum: UInt32 = 0
        ranks = words.map { word in
            defer { sum += UInt32(word.nonzeroBitCount) }
            return sum
        }
    }

    /// How many members are less than `number`.
    func rank(of number: Int) -> Int {
        let below = words[number / 64] & ((1 << UInt64(number % 64)) - 1)
        return Int(ranks[number / 64]) + below.nonzeroBitCount
    }
}
