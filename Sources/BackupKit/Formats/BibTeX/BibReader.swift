/// Feeds a parser with chunks as they come and keeps the part of a block that is not complete yet: at most about twice
/// the longest block, whatever the size of the file.
public struct BibReader {
    private var parser: BibParser
    private var rest: [UInt8] = []
    /// Trying again for each small chunk would scan a long block over and over; so wait until the rest has doubled.
    private var wanted = 0

    public init(limit: Int = BibParser.usualLimit) { parser = BibParser(limit: limit) }

    public mutating func feed(_ bytes: UnsafeRawBufferPointer, emit: (BibBlock) throws -> Void) rethrows {
        if rest.isEmpty {
            let used = try parser.parse(bytes, isLast: false, emit: emit)
            keep(bytes[used...])
            return
        }
        rest.append(contentsOf: bytes)
        guard rest.count >= wanted else { return }
        try parseRest(isLast: false, emit)
    }

    /// The file is at its end: emits what is left.
    public mutating func finish(emit: (BibBlock) throws -> Void) rethrows {
        try parseRest(isLast: true, emit)
    }

    private mutating func parseRest(isLast: Bool, _ emit: (BibBlock) throws -> Void) rethrows {
        let used = try rest.withUnsafeBytes { try parser.parse($0, isLast: isLast, emit: emit) }
        rest.removeFirst(used)
        wanted = 2 * rest.count
    }

    private mutating func keep(_ bytes: Slice<UnsafeRawBufferPointer>) {
        rest.append(contentsOf: bytes)
        wanted = 2 * rest.count
    }
}
