/// Arithmetic on numbers that somebody else chose: what does not fit becomes the nearest that does, instead of a trap.
extension FixedWidthInteger {
    func plus(clamped other: Self) -> Self {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? other < 0 ? .min : .max : sum
    }

    func times(clamped other: Self) -> Self {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? (self < 0) == (other < 0) ? .max : .min : product
    }
}

extension Int {
    /// The nearest whole number; 0 for what is none.
    public init(rounding value: Double) {
        self = value.isNaN ? 0 : Int(exactly: value.rounded()) ?? (value < 0 ? .min : .max)
    }
}
