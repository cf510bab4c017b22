/// The `@string` macros in force at a point of a file.
///
/// The months `jan` … `dec` are known from the start and stand for themselves: style files decide whether a reader sees
/// "January" or "Jan.", so only the three letters are certain. A file's own `@string{jan = …}` wins over that.
public struct BibMacros: Sendable, Equatable {
    private var values: [String: String] = [:]

    public static let standard: BibMacros = {
        var macros = BibMacros()
        for month in ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"] {
            macros.define(month, as: month)
        }
        return macros
    }()

    public init() {}

    public mutating func define(_ name: String, as value: String) { values[name.lowercased()] = value }

    /// Takes what an `@string` block defines; anything else is ignored.
    public mutating func define(from block: BibBlock) {
        guard block.kind == .string else { return }
        for field in block.fields { define(block.name(of: field), as: block.value(of: field, macros: self)) }
    }

    public func value(of name: String) -> String? { values[name.lowercased()] }

    /// How many bytes the macros of one value may come to. Macros of macros double with every line: 27 of them make 700
    /// bytes into gigabytes, and no name of a journal is as long as this.
    public static let mostBytes = 16 << 10

    /// The text of a value as written. A macro that is unknown, or one too many, stands for its own name.
    func resolve(_ written: UnsafeRawBufferPointer) -> String { expand(written).text }

    /// Whether a value says more than its macros may.
    func isTooLong(_ written: UnsafeRawBufferPointer) -> Bool { expand(written).isCut }

    private func expand(_ written: UnsafeRawBufferPointer) -> (text: String, isCut: Bool) {
        var pieces = BibValuePieces(written)
        var (text, left, isCut) = ("", Self.mostBytes, false)
        while let piece = pieces.next() {
            let own = BibText.decode(piece.bytes).text
            guard piece.isMacro, let meaning = value(of: own) else {
                text += own
                continue
            }
            let fits = meaning.utf8.count <= left
            text += fits ? meaning : own
            left -= fits ? meaning.utf8.count : 0
            isCut = isCut || !fits
        }
        return (text, isCut)
    }
}

/// Walks the pieces of a value: `jan # "~" # {15}`. Takes any bytes; what makes no sense is passed over.
struct BibValuePieces {
    struct Piece {
        let bytes: UnsafeRawBufferPointer
        /// A bare word that is not a number.
        let isMacro: Bool
    }

    private let value: UnsafeRawBufferPointer
    private var at = 0

    /// The names of the macros in a value, as they are written.
    static func macros(in value: UnsafeRawBufferPointer) -> [String] {
        var (names, pieces): ([String], Self) = ([], Self(value))
        while let piece = pieces.next() {
            if piece.isMacro { names.append(BibText.decode(piece.bytes).text) }
        }
        return names
    }

    init(_ value: UnsafeRawBufferPointer) { self.value = value }

    mutating func next() -> Piece? {
        while at < value.count {
            let byte = value[at]
            switch byte {
            case BibByte.openBrace: return delimited(closesAt: BibByte.closeBrace)
            case BibByte.quote: return delimited(closesAt: BibByte.quote)
            case BibByte.percent: while at < value.count, !BibByte.isBreak(value[at]) { at += 1 }
            case _ where BibByte.isName(byte): return word()
            default: at += 1
            }
        }
        return nil
    }

    private mutating func word() -> Piece {
        let start = at
        while at < value.count, BibByte.isName(value[at]) { at += 1 }
        let bytes = UnsafeRawBufferPointer(rebasing: value[start..<at])
        return Piece(bytes: bytes, isMacro: !bytes.allSatisfy { BibByte.isDigit($0) })
    }

    /// `"M\"uller" # x`: a quote behind a backslash ends a piece only where a piece can end.
    private func isPartOfText(quoteAt place: Int) -> Bool {
        guard value[place] == BibByte.quote, place > 0, value[place - 1] == BibByte.backslash else { return false }
        let next = value[(place + 1)...].first { !BibByte.isWhite($0) }
        return next != nil && next != BibByte.hash
    }

    private mutating func delimited(closesAt close: UInt8) -> Piece {
        at += 1
        let start = at
        var depth = 0
        while at < value.count {
            let byte = value[at]
            if depth == 0, byte == close, !isPartOfText(quoteAt: at) { break }
            if byte == BibByte.openBrace { depth += 1 }
            if byte == BibByte.closeBrace { depth -= 1 }
            at += 1
        }
        let bytes = UnsafeRawBufferPointer(rebasing: value[start..<at])
        at += 1
        return Piece(bytes: bytes, isMacro: false)
    }
}

/// The order of entries in an exported file: by the bytes of the cite key, equal keys in the order they came.
public enum BibKeyOrder {
    public static func precedes(_ left: String, _ right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }

    public static func precedes(_ left: (key: String, position: Int), _ right: (key: String, position: Int)) -> Bool {
        if left.key.utf8.elementsEqual(right.key.utf8) { return left.position < right.position }
        return precedes(left.key, right.key)
    }
}
