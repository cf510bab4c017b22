/// The start of a block: `@`, a word, and what opens its body.
struct BibHeader {
    enum Body { case braces, parentheses, restOfLine }

    let kind: BibBlock.Kind
    let typeStart: Int
    let typeEnd: Int
    let open: Int
    let body: Body
}

/// What stands before an `@` on its line decides how much it takes for the `@` to begin a block.
enum BibLineState {
    /// Nothing but blanks, or the end of another block.
    case clean
    /// Other text: only what looks just like an entry begins one ("ask@example.org {soon}" does not), and behind a letter
    /// only what has a field, too.
    case dirty
    /// A `%`: nothing begins here.
    case commented
}

enum BibLookup<Found> {
    case found(Found)
    case nothing
    /// The bytes at hand end before it can be told.
    case undecided
}

/// Bytes as they are scanned. Every look at a byte is guarded by `end`.
struct BibBytes {
    let base: UnsafePointer<UInt8>
    let end: Int

    /// Longer words, gaps and keys are not looked at: a look ahead stays short, and so does what a stream must hold back.
    private static let longestWord = 128
    private static let longestKey = 512

    @inline(__always) subscript(index: Int) -> UInt8 { base[index] }

    func header(at start: Int, on line: BibLineState) -> BibLookup<BibHeader> {
        guard line != .commented else { return .nothing }
        let mayBeAddress = line == .dirty && start > 0 && belongsToAddress(self[start - 1])
        let typeStart = line == .clean ? skip(from: start + 1, BibByte.isBlank) : start + 1
        let typeEnd = skip(from: typeStart, BibByte.isName)
        guard typeEnd < end else { return .undecided }
        guard typeEnd > typeStart, typeEnd - typeStart < Self.longestWord else { return .nothing }
        let kind = kind(of: UnsafeRawBufferPointer(start: base + typeStart, count: typeEnd - typeStart))
        let open = skip(from: typeEnd, kind == .comment ? BibByte.isBlank : BibByte.isWhite)
        guard open < end else { return .undecided }
        let header = { BibHeader(kind: kind, typeStart: typeStart, typeEnd: typeEnd, open: open, body: $0) }
        switch (self[open], line) {
        case (BibByte.openBrace, .clean): return .found(header(.braces))
        case (BibByte.openParenthesis, .clean): return .found(header(.parentheses))
        case (_, .clean) where kind == .comment: return .found(header(.restOfLine))
        case (BibByte.openBrace, _):
            switch beginsBody(at: open + 1, of: kind, mayBeAddress: mayBeAddress) {
            case .found: return .found(header(.braces))
            case .nothing: return .nothing
            case .undecided: return .undecided
            }
        default: return .nothing
        }
    }

    /// Whether what follows a brace on a line with other text is the body of a block. An address has no field behind it.
    private func beginsBody(at start: Int, of kind: BibBlock.Kind, mayBeAddress: Bool) -> BibLookup<Void> {
        guard kind == .entry else {
            return !mayBeAddress ? .found(()) : kind == .string ? field(from: start) : .nothing
        }
        switch keyAndComma(from: start) {
        case .found(let comma): return mayBeAddress ? field(from: comma + 1) : .found(())
        case .nothing: return .nothing
        case .undecided: return .undecided
        }
    }

    /// For recovery within a body: does a block with braces or parentheses begin here?
    func startsBlock(at start: Int) -> Bool {
        guard case .found(let header) = header(at: start, on: .clean) else { return false }
        return header.body != .restOfLine
    }

    /// A name, white space and `=`: the start of a field.
    func startsField(at start: Int) -> Bool {
        var index = start
        while index < end, BibByte.isName(self[index]) { index += 1 }
        guard index > start else { return false }
        while index < end, BibByte.isWhite(self[index]) { index += 1 }
        return index < end && self[index] == BibByte.equals
    }

    /// What is wrong with what looks like an entry at the start of a line: a word, a bracket, a key, a comma and a field.
    func lostEntry(at start: Int) -> String? {
        guard start < end else { return nil }
        let hasMark = self[start] == BibByte.at
        let typeStart = hasMark ? skip(from: start + 1, BibByte.isBlank) : start
        let typeEnd = skip(from: typeStart, BibByte.isLetter)
        let open = skip(from: typeEnd, BibByte.isBlank)
        guard open < end else { return nil }
        let isOpen = self[open] == BibByte.openBrace
        let isBracket = self[open] == UInt8(ascii: "[") || self[open] == UInt8(ascii: "<")
        let hasType = typeEnd > typeStart
        guard hasMark && hasType ? isBracket : isOpen && hasMark != hasType,
            case .found(let comma) = keyAndComma(from: open + 1),
            case .found = field(from: comma + 1)
        else { return nil }
        if !hasType { return "it has no type" }
        return hasMark ? "it begins with '\(Character(Unicode.Scalar(self[open])))' instead of '{'" : "it has no '@'"
    }

    private static let commonTypes: Set = [
        "article", "book", "booklet", "conference", "electronic", "inbook", "incollection", "inproceedings", "manual",
        "mastersthesis", "misc", "online", "phdthesis", "proceedings", "report", "string", "techreport", "thesis",
        "unpublished",
    ]

    /// Where an entry of a common type seems to begin behind other text of a line, in a form that nothing is read in there.
    func hiddenEntry(from start: Int) -> Int? {
        let limit = lineEnd(from: start)
        for index in start..<limit {
            if self[index] == BibByte.percent { return nil }
            guard self[index] == BibByte.at, index > start, !belongsToAddress(self[index - 1]) else { continue }
            let typeStart = skip(from: index + 1, BibByte.isBlank)
            let typeEnd = skip(from: typeStart, BibByte.isLetter)
            let open = skip(from: typeEnd, BibByte.isBlank)
            guard open < limit, self[open] == BibByte.openBrace || self[open] == BibByte.openParenthesis else {
                continue
            }
            let type = String(decoding: (typeStart..<typeEnd).map { self[$0] }, as: UTF8.self).lowercased()
            if Self.commonTypes.contains(type) { return index }
        }
        return nil
    }

    /// Are there only blanks between `index` and the line break (or `start`) before it?
    func onlyBlanks(before index: Int, notBefore start: Int) -> Bool {
        var index = index
        while index > start, BibByte.isBlank(self[index - 1]) { index -= 1 }
        return index == start || BibByte.isBreak(self[index - 1])
    }

    func lineEnd(from start: Int) -> Int {
        var index = start
        while index < end, !BibByte.isBreak(self[index]) { index += 1 }
        return index
    }

    private func skip(from start: Int, _ belongs: (UInt8) -> Bool) -> Int {
        let limit = min(end, start + Self.longestWord)
        var index = start
        while index < limit, belongs(self[index]) { index += 1 }
        return index
    }

    /// Where the comma behind a key is.
    private func keyAndComma(from start: Int) -> BibLookup<Int> {
        let limit = min(end, start + Self.longestKey)
        var index = start
        while index < limit, BibByte.isName(self[index]) { index += 1 }
        guard index < limit else { return limit == end ? .undecided : .nothing }
        return index > start && self[index] == BibByte.comma ? .found(index) : .nothing
    }

    /// White space and a field: what an address has nowhere.
    private func field(from start: Int) -> BibLookup<Void> {
        let name = skip(from: start, BibByte.isWhite)
        let nameEnd = skip(from: name, BibByte.isName)
        let sign = skip(from: nameEnd, BibByte.isWhite)
        guard sign < end else { return .undecided }
        return nameEnd > name && self[sign] == BibByte.equals ? .found(()) : .nothing
    }

    /// "me" in me@example.org.
    private func belongsToAddress(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x2B, 0x2D, 0x2E, 0x5F: true  // + - . _
        default: BibByte.isDigit(byte) || BibByte.isLetter(byte)
        }
    }

    private func kind(of type: UnsafeRawBufferPointer) -> BibBlock.Kind {
        switch type.count {
        case 6 where BibText.sameIgnoringCase(type, "string" as StaticString): .string
        case 7 where BibText.sameIgnoringCase(type, "comment" as StaticString): .comment
        case 8 where BibText.sameIgnoringCase(type, "preamble" as StaticString): .preamble
        default: .entry
        }
    }
}
