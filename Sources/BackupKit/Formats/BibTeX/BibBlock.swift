/// One piece of a BibTeX file, in file order. The raw bytes of all blocks, put together, are the file.
///
/// `raw` and `fields` point into memory of the parser: they hold only during the call that hands the block over.
public struct BibBlock {
    public enum Kind: String, Sendable, CaseIterable {
        case byteOrderMark, text, entry, string, preamble, comment
        /// Began like a block and never ended, or was too long. `key` and `fields` hold what was sound before that.
        case unreadable
    }

    public let kind: Kind
    public let raw: UnsafeRawBufferPointer
    /// Where `raw` begins in the file, and on which line (from 1).
    public let offset: Int
    public let line: Int
    /// In file order; duplicates are all there. `@string` has one for each definition, `@preamble` one without a name.
    public let fields: UnsafeBufferPointer<BibField>
    public let problems: [BibProblem]
    let head: BibHead

    public var typeBytes: UnsafeRawBufferPointer { bytes(head.typeStart, head.typeEnd) }
    public var keyBytes: UnsafeRawBufferPointer { bytes(head.keyStart, head.keyEnd) }
    /// As written, without `@`: "Article".
    public var type: String { BibText.decode(typeBytes).text }
    /// As written, trimmed. May hold spaces, and may be empty.
    public var key: String { BibText.decode(keyBytes).text }

    public func nameBytes(of field: BibField) -> UnsafeRawBufferPointer { bytes(field.nameStart, field.nameEnd) }
    /// The value as written, with its delimiters.
    public func rawValue(of field: BibField) -> UnsafeRawBufferPointer { bytes(field.valueStart, field.valueEnd) }
    /// As written: "Title".
    public func name(of field: BibField) -> String { BibText.decode(nameBytes(of: field)).text }

    /// As records have it: BibTeX knows no case of ASCII letters, and all other bytes as they are.
    public func lowercaseName(of field: BibField) -> String { BibText.lowercased(nameBytes(of: field)) }

    /// The first field of that name, whatever its case: the one that counts.
    public func field(named name: String) -> BibField? {
        fields.first { BibText.sameIgnoringCase(nameBytes(of: $0), name) }
    }

    /// What the field says: delimiters gone, pieces joined, macros looked up, every other byte kept.
    public func value(of field: BibField, macros: BibMacros = .standard) -> String {
        let written = rawValue(of: field)
        guard field.style == .braces || field.style == .quotes, written.count >= 2 else {
            return macros.resolve(written)
        }
        return BibText.decode(UnsafeRawBufferPointer(rebasing: written[1..<(written.count - 1)])).text
    }

    /// Ranges come from the parser and lie within `raw`; an empty answer beats a trap should one not.
    func bytes(_ start: UInt32, _ end: UInt32) -> UnsafeRawBufferPointer {
        guard start <= end, Int(end) <= raw.count else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: raw[Int(start)..<Int(end)])
    }
}

/// Where type, key and body lie in a block, counted from the block's first byte.
struct BibHead: Equatable {
    var typeStart: UInt32 = 0
    var typeEnd: UInt32 = 0
    /// The opening brace or parenthesis.
    var open: UInt32 = 0
    var keyStart: UInt32 = 0
    var keyEnd: UInt32 = 0
    /// After the comma that ends the key; equal to `keyEnd` when there is none.
    var keyItemEnd: UInt32 = 0
    /// The closing brace or parenthesis.
    var close: UInt32 = 0
}

/// A field of a block: where its parts lie, counted from the block's first byte.
public struct BibField: Sendable, Equatable {
    public enum Style: UInt8, Sendable {
        case braces, quotes
        /// A number or one macro.
        case bare
        /// Pieces joined with `#`.
        case joined
        /// Nothing after the equals sign.
        case empty
    }

    public internal(set) var style: Style
    var nameStart: UInt32
    var nameEnd: UInt32
    var equals: UInt32
    var valueStart: UInt32
    var valueEnd: UInt32
    /// After the comma; equal to `valueEnd` when there is none.
    var itemEnd: UInt32
}

/// Something that could not be read as it stands. The bytes themselves are in the block.
public struct BibProblem: Sendable, Equatable {
    public enum Code: String, Sendable, CaseIterable {
        case unclosed, tooLong, missingEquals, missingName, missingValue, missingComma, unclosedQuote, unexpected,
            strayText
        case encoding, tooMany
        /// Read as JabRef and Zotero do, for whom `\}` closes nothing, and `\"` alike; BibTeX and biber see an error.
        case escapedBrace
    }

    /// Whether all of the block was read all the same.
    var isReadInFull: Bool { code == .escapedBrace }

    public let code: Code
    /// From 1; the column counts characters.
    public let line: Int
    public let column: Int
    /// In the file, in bytes.
    public let offset: Int
    /// A sentence without a final full stop: "expected '=' after field 'author', found '💯'".
    public let message: String
}
