/// A generator of any kind, for functions that cannot be generic.
struct AnyGenerator: RandomNumberGenerator {
    private var generator: any RandomNumberGenerator

    init(_ generator: some RandomNumberGenerator) { self.generator = generator }

    mutating func next() -> UInt64 { generator.next() }
}
