/// Finds the end of one block, and its fields on the way. Works on positions only; nothing is copied.
struct BibBodyScanner {
    enum Outcome: Equatable {
        /// Whole; the next byte after it.
        case closed(Int)
        /// Never closed: another block begins here.
        case cut(Int)
        /// The bytes ended first.
        case ranOut
    }

    struct Note {
        let code: BibProblem.Code
        let position: Int
        let message: String
    }

    var bytes: BibBytes
    var start = 0
    var at = 0
    private(set) var closer = BibByte.closeBrace
    /// Whether `\{`, `\}` and `\"` are characters of a value, as some programs have it, and neither begin nor end one.
    private var skipsEscapes = false
    /// Whether there were such, so that the other way of reading would make a difference.
    private(set) var hasEscapes = false
    /// Every indented `@word{` ends an unclosed block at once, instead of only when no end is found at all.
    private var hasty = false
    /// The first `@word{` that may be part of a value, and where the block ends if it turns out never to be closed.
    private(set) var doubtfulEnd: Int?
    var head = BibHead()
    var fields: [BibField] = []
    var notes: [Note] = []

    static let mostNotes = 100

    init(bytes: BibBytes) { self.bytes = bytes }

    mutating func scan(
        _ header: BibHeader, from start: Int, in bytes: BibBytes, hasty: Bool, skippingEscapes: Bool = false
    ) -> Outcome {
        skipsEscapes = skippingEscapes
        hasEscapes = false
        self.bytes = bytes
        self.start = start
        self.hasty = hasty
        closer = header.body == .parentheses ? BibByte.closeParenthesis : BibByte.closeBrace
        doubtfulEnd = nil
        fields.removeAll(keepingCapacity: true)
        notes.removeAll()
        at = min(header.open + 1, bytes.end)
        let none = relative(at)
        head = BibHead(
            typeStart: relative(header.typeStart), typeEnd: relative(header.typeEnd), open: relative(header.open),
            keyStart: none, keyEnd: none, keyItemEnd: none, close: none)
        switch header.kind {
        case .comment: return comment(header)
        case .string: return readFields()
        case .preamble: return readValue(nameStart: at, nameEnd: at, equals: at) ?? readFields()
        default: return readKey() ?? readFields()
        }
    }

    @inline(__always) func relative(_ position: Int) -> UInt32 { UInt32(truncatingIfNeeded: position - start) }

    private mutating func comment(_ header: BibHeader) -> Outcome {
        switch header.body {
        case .braces:
            if let stop = skipBraces(inComment: true) { return stop }
        case .parentheses:
            if let stop = skipParentheses() { return stop }
        case .restOfLine:
            at = bytes.lineEnd(from: header.typeEnd)
            return at < bytes.end ? .closed(at) : .ranOut
        }
        head.close = relative(at - 1)
        return .closed(at)
    }

    mutating func readFields() -> Outcome {
        while true {
            skipGap(commas: true)
            guard at < bytes.end else { return .ranOut }
            let byte = bytes[at]
            if byte == closer || byte == BibByte.closeBrace {
                if byte != closer { note(.unexpected, "the entry opens with '(' and ends with '}'") }
                head.close = relative(at)
                return .closed(at + 1)
            }
            if byte == BibByte.at, startsBlockHere() { return .cut(at) }
            if let stop = readField() { return stop }
        }
    }

    private mutating func readField() -> Outcome? {
        let nameStart = at
        skipName()
        let nameEnd = at
        guard nameEnd > nameStart else {
            note(.missingName, "expected a field name, found \(found())")
            return resynchronise()
        }
        skipGap()
        guard at < bytes.end else { return .ranOut }
        guard bytes[at] == BibByte.equals else {
            note(.missingEquals, "expected '=' after field '\(name(nameStart, nameEnd))', found \(found())")
            return resynchronise()
        }
        at += 1
        return readValue(nameStart: nameStart, nameEnd: nameEnd, equals: at - 1)
    }

    /// Reads pieces joined with `#` and the comma after them; on return `at` is where the next field may begin.
    private mutating func readValue(nameStart: Int, nameEnd: Int, equals: Int) -> Outcome? {
        skipGap()
        var field = BibField(
            style: .empty, nameStart: relative(nameStart), nameEnd: relative(nameEnd), equals: relative(equals),
            valueStart: relative(at), valueEnd: relative(at), itemEnd: relative(at))
        while true {
            guard at < bytes.end else { return .ranOut }
            let pieceStart = at
            let style: BibField.Style
            switch bytes[at] {
            case BibByte.openBrace:
                at += 1
                if let stop = skipBraces() { return stop }
                style = .braces
            case BibByte.quote:
                switch skipQuote() {
                case .stopped(let stop): return stop
                case .broken: return brokenQuote(what(nameStart, nameEnd), at: pieceStart)
                case .closed: style = .quotes
                }
            case let byte where BibByte.isName(byte):
                skipName()
                style = .bare
            default:
                note(.missingValue, "expected a value for \(what(nameStart, nameEnd)), found \(found())")
                return endOfItem(field, from: pieceStart)
            }
            field.style = field.style == .empty ? style : .joined
            field.valueEnd = relative(at)
            skipGap()
            guard at < bytes.end else { return .ranOut }
            guard bytes[at] == BibByte.hash else { return endOfItem(field, from: pieceStart) }
            at += 1
            skipGap()
        }
    }

    /// After a value: a comma, the end, or something that should not be there.
    private mutating func endOfItem(_ field: BibField, from pieceStart: Int) -> Outcome? {
        var field = field
        field.itemEnd = field.valueEnd
        let byte = bytes[at]
        if byte == BibByte.comma {
            at += 1
            field.itemEnd = relative(at)
        } else if byte != closer, byte != BibByte.closeBrace, byte != BibByte.at || !startsBlockHere() {
            let what = what(start + Int(field.nameStart), start + Int(field.nameEnd))
            if field.style == .empty { return resynchronise() }
            if bytes.startsField(at: at) {
                note(.missingComma, "expected ',' after \(what), found \(found())")
            } else if bytes[pieceStart] == BibByte.quote {
                return brokenQuote(what, at: pieceStart)
            } else {
                note(.unexpected, "expected ',' after \(what), found \(found())")
                fields.append(field)
                return resynchronise()
            }
        }
        fields.append(field)
        return nil
    }

    private mutating func brokenQuote(_ what: String, at quote: Int) -> Outcome? {
        at = quote
        note(.unclosedQuote, "the quotes of \(what) do not pair up")
        at += 1
        return resynchronise()
    }

    /// Goes on to where a field may begin again: after a comma or a line break that a `name =` follows, or at the end.
    private mutating func resynchronise() -> Outcome? {
        while at < bytes.end {
            let byte = bytes[at]
            if byte == closer || byte == BibByte.closeBrace { return nil }
            if byte == BibByte.at, startsBlockHere() { return .cut(at) }
            at += 1
            if byte == BibByte.openBrace {
                if let stop = skipBraces() { return stop }
            } else if byte == BibByte.comma || BibByte.isBreak(byte) {
                while at < bytes.end, BibByte.isWhite(bytes[at]) { at += 1 }
                if bytes.startsField(at: at) { return nil }
            }
        }
        return .ranOut
    }
}

// MARK: - Steps

extension BibBodyScanner {
    /// White space and `%` comments.
    @inline(__always) mutating func skipGap(commas: Bool = false) {
        while at < bytes.end {
            let byte = bytes[at]
            if BibByte.isWhite(byte) || (commas && byte == BibByte.comma) {
                at += 1
            } else if byte == BibByte.percent {
                at = bytes.lineEnd(from: at)
            } else {
                return
            }
        }
    }

    @inline(__always) mutating func skipName() {
        while at < bytes.end, BibByte.isName(bytes[at]) { at += 1 }
    }

    /// From after a `{` to after its `}`.
    mutating func skipBraces(inComment: Bool = false) -> Outcome? {
        let (base, end) = (bytes.base, bytes.end)
        var depth = 1
        var index = at
        while index < end {
            let byte = base[index]
            index += 1
            // One compare turns away nearly every byte: only '@' and what lies above 'z' can matter.
            if byte != BibByte.at, byte < BibByte.openBrace { continue }
            if byte == BibByte.openBrace || byte == BibByte.closeBrace, skipsEscape(at: index - 1) { continue }
            if byte == BibByte.openBrace {
                depth += 1
            } else if byte == BibByte.closeBrace {
                depth -= 1
                if depth == 0 {
                    at = index
                    return nil
                }
            } else if byte == BibByte.at, endsUnclosed(at: index - 1, inComment: inComment) {
                return .cut(index - 1)
            }
        }
        at = end
        return .ranOut
    }

    /// Whether a byte is behind a backslash, and to be read as part of a value for that.
    @inline(__always) private mutating func skipsEscape(at index: Int) -> Bool {
        guard isEscaped(index) else { return false }
        hasEscapes = true
        return skipsEscapes
    }

    /// Whether an odd number of backslashes stands before a byte.
    @inline(__always) private func isEscaped(_ index: Int) -> Bool {
        guard index > start, bytes.base[index - 1] == BibByte.backslash else { return false }
        var first = index - 1
        while first > start, bytes.base[first - 1] == BibByte.backslash { first -= 1 }
        return (index - first) % 2 == 1
    }

    enum Quote { case closed, broken, stopped(Outcome) }

    /// From a `"` to after the one that ends it; those within braces are part of the value.
    mutating func skipQuote() -> Quote {
        var depth = 0
        at += 1
        while at < bytes.end {
            let byte = bytes[at]
            at += 1
            switch byte {
            case BibByte.quote where depth == 0:
                if skipsEscape(at: at - 1) { continue }
                return .closed
            case BibByte.openBrace:
                if skipsEscape(at: at - 1) { continue }
                depth += 1
            case BibByte.closeBrace:
                if skipsEscape(at: at - 1) { continue }
                if depth == 0 { return .broken }
                depth -= 1
            case BibByte.at where endsUnclosed(at: at - 1, inComment: false): return .stopped(.cut(at - 1))
            default: break
            }
        }
        return .stopped(.ranOut)
    }

    mutating func skipParentheses() -> Outcome? {
        var depth = 1
        while at < bytes.end {
            let byte = bytes[at]
            at += 1
            switch byte {
            case BibByte.openParenthesis: depth += 1
            case BibByte.closeParenthesis:
                depth -= 1
                if depth == 0 { return nil }
            case BibByte.at where endsUnclosed(at: at - 1, inComment: true): return .cut(at - 1)
            default: break
            }
        }
        return .ranOut
    }

    /// Does the `@` within a value or comment show that the block was never closed? At the start of a line it does in a
    /// value; if indented, or in a comment (which often holds whole entries), only if no end is found further on.
    private mutating func endsUnclosed(at index: Int, inComment: Bool) -> Bool {
        let startsLine = index > start && BibByte.isBreak(bytes[index - 1])
        if startsLine && (!inComment || hasty) { return bytes.startsBlock(at: index) }
        guard doubtfulEnd == nil, startsLine || bytes.onlyBlanks(before: index, notBefore: start) else { return false }
        guard bytes.startsBlock(at: index) else { return false }
        if hasty { return true }
        doubtfulEnd = index
        return false
    }

    func startsBlockHere() -> Bool {
        bytes.onlyBlanks(before: at, notBefore: start) && bytes.startsBlock(at: at)
    }
}
