/// A polynomial over GF(2), one bit a coefficient: what restic's chunker computes with. Every repository has one of its
/// own, so that where files are cut tells strangers nothing about what is in them.
public struct Polynomial: Sendable, Equatable {
    /// The degree that restic chooses; the shifts of the chunker allow no higher one.
    public static let usualDegree = 53

    public let bits: UInt64

    public init(bits: UInt64) { self.bits = bits }

    /// As `config` has it: hexadecimal digits without prefix.
    public init?(hex: String) {
        guard !hex.isEmpty, hex.utf8.count <= 16, hex.utf8.allSatisfy({ hexValue($0) != nil }),
            let bits = UInt64(hex, radix: 16)
        else { return nil }
        self.init(bits: bits)
    }

    public var hex: String { String(bits, radix: 16) }

    /// -1 for the polynomial 0.
    public var degree: Int { 63 - bits.leadingZeroBitCount }

    /// Chosen at random among the irreducible ones; every 27th candidate is one.
    public static func random(using generator: inout some RandomNumberGenerator) -> Polynomial {
        let top = UInt64(1) << usualDegree
        while true {
            // Without the constant term x would divide it.
            let candidate = Polynomial(bits: top | generator.next() & (top - 1) | 1)
            if candidate.isIrreducible { return candidate }
        }
    }

    /// Whether the chunker can work with it: restic refuses repositories where this does not hold, and so do we.
    public var isUsable: Bool { 9...Self.usualDegree ~= degree && isIrreducible }

    /// Ben-Or's test: a factor of degree i divides x^(2^i) - x.
    public var isIrreducible: Bool {
        guard degree > 0 else { return false }
        var power = Polynomial(bits: 2).reduced(by: self)
        for _ in 0..<degree / 2 {
            power = power.multiplied(by: power, modulo: self)
            let factor = Polynomial(bits: power.bits ^ 2).greatestCommonDivisor(with: self)
            if factor.bits != 1 { return false }
        }
        return true
    }

    func reduced(by other: Polynomial) -> Polynomial {
        guard other.bits != 0 else { return self }
        var rest = self
        while rest.degree >= other.degree {
            rest = Polynomial(bits: rest.bits ^ other.bits << (rest.degree - other.degree))
        }
        return rest
    }

    /// Both factors MUST be reduced already, and the modulus of a degree below 63.
    func multiplied(by other: Polynomial, modulo: Polynomial) -> Polynomial {
        var sum: UInt64 = 0
        var shifted = self
        for position in 0..<64 {
            if other.bits >> UInt64(position) & 1 != 0 { sum ^= shifted.bits }
            shifted = Polynomial(bits: shifted.bits << 1).reduced(by: modulo)
        }
        return Polynomial(bits: sum)
    }

    private func greatestCommonDivisor(with other: Polynomial) -> Polynomial {
        var (left, right) = (self, other)
        while right.bits != 0 { (left, right) = (right, left.reduced(by: right)) }
        return left
    }
}
