import CSystem

/// Looks for places where Rabin's fingerprint of the last 64 bytes ends in 20 zeros, in 64 stretches at once. Only where
/// `isHere`, and for polynomials of degree 53.
struct WideFingerprint: Sendable {
    static let isHere = csystem_cut_is_here() != 0
    private static let places = 64
    /// A stretch is a multiple of it.
    private static let step = 64
    /// What is looked through at one place before they meet again.
    private static let longest = 1 << 10

    private let matrices: [UInt64]

    /// `leaving` says what the byte that leaves the window has become in the fingerprint, and `reduced` what the byte does that
    /// is at the top, behind the polynomial's degree. Both are linear.
    init(leaving: (Int) -> UInt64, reduced: (Int) -> UInt64) {
        matrices = Self.matrices(7, reduced) + Self.matrices(7, leaving) + Self.matrices(2) { UInt64($0) }
    }

    /// The lowest bytes of a function, multiplied by x^3, as a matrix each. The first row of a matrix makes the highest bit.
    private static func matrices(_ count: Int, _ function: (Int) -> UInt64) -> [UInt64] {
        (0..<count).map { number in
            var matrix: UInt64 = 0
            for column in 0..<8 {
                let byte = (function(1 << column) << 3) >> UInt64(8 * number)
                for bit in 0..<8 where byte >> UInt64(bit) & 1 != 0 { matrix |= 1 << UInt64(8 * (7 - bit) + column) }
            }
            return matrix
        }
    }

    /// The first such place; nil when there is none in most of the bytes. `position` comes to where to go on, less than 4 KiB
    /// before `end`. 64 bytes lie before it.
    func first(_ base: UnsafePointer<UInt8>, _ position: inout Int, _ end: Int) -> Int? {
        while end - position >= Self.places * Self.step {
            let stretch = min((end - position) / (Self.places * Self.step) * Self.step, Self.longest)
            let found = csystem_cut_find(matrices, base + position, stretch)
            if found >= 0 { return position + found }
            position += Self.places * stretch
        }
        return nil
    }
}
