/// Splits BibTeX into blocks and fields. A value without global state: as many as there are threads may run at once.
///
/// Hand it windows of a file, each beginning where the last one's answer said; or use `BibReader`, which does that for
/// chunks as they come. What is emitted does not depend on how the file was cut into windows. Any bytes are taken.
public struct BibParser {
    /// A longer block is a problem, not an entry; this bounds what a reader must hold.
    public static let usualLimit = 16 << 20
    /// Free text comes in pieces of at most this.
    static let textLimit = 1 << 20

    private let limit: Int
    /// Where the next block begins, and the column there.
    public private(set) var offset = 0
    public private(set) var line = 1
    private var column = 1
    private var lineState = BibLineState.clean
    private var followsEntry = false
    /// Bytes scanned in vain behind blocks that were never closed. Beyond a share of the file such blocks end at the first
    /// sign of another, so that no file takes quadratic time.
    private var scannedInVain = 0
    private var scanner: BibBodyScanner?

    public init(limit: Int = usualLimit) {
        self.limit = min(max(limit, 1 << 10), 1 << 30)
    }

    /// Emits the blocks of a whole file.
    public static func parse(_ file: UnsafeRawBufferPointer, emit: (BibBlock) throws -> Void) rethrows {
        var parser = BibParser()
        _ = try parser.parse(file, isLast: true, emit: emit)
    }

    /// Emits the blocks of `window` that can be told; returns how many bytes that took. The next window begins with the rest.
    public mutating func parse(
        _ window: UnsafeRawBufferPointer, isLast: Bool, emit: (BibBlock) throws -> Void
    ) rethrows -> Int {
        guard let base = window.bindMemory(to: UInt8.self).baseAddress else { return 0 }
        var scanner = self.scanner.take() ?? BibBodyScanner(bytes: BibBytes(base: base, end: 0))
        defer { self.scanner = scanner }
        var start = 0
        while start < window.count {
            scanner.fields.removeAll(keepingCapacity: true)
            scanner.notes.removeAll()
            scanner.head = BibHead()
            let bytes = BibBytes(base: base, end: window.count)
            guard let block = next(in: bytes, from: start, isLast: isLast, &scanner) else { break }
            let raw = UnsafeRawBufferPointer(rebasing: window[start..<block.end])
            let problems = scanner.notes.isEmpty ? [] : problems(scanner.notes, from: start, in: bytes)
            try scanner.fields.withUnsafeBufferPointer { fields in
                try emit(
                    BibBlock(
                        kind: block.kind, raw: raw, offset: offset, line: line, fields: fields, problems: problems,
                        head: scanner.head))
            }
            advance(over: start..<block.end, in: bytes)
            lineState = block.lineState
            followsEntry = block.kind == .entry
            start = block.end
        }
        return start
    }

    private struct Found {
        let kind: BibBlock.Kind
        let end: Int
        var lineState = BibLineState.clean
    }

    private mutating func next(
        in bytes: BibBytes, from start: Int, isLast: Bool, _ scanner: inout BibBodyScanner
    ) -> Found? {
        if offset == 0, bytes[start] == 0xEF {
            guard bytes.end - start >= 3 || isLast else { return nil }
            if Self.isMark(bytes, at: start) { return Found(kind: .byteOrderMark, end: start + 3) }
        }
        if bytes[start] == BibByte.at {
            switch bytes.header(at: start, on: lineState) {
            case .found(let header): return body(header, in: bytes, from: start, isLast: isLast, &scanner)
            case .undecided where !isLast: return nil
            default: break
            }
        }
        guard let text = text(in: bytes, from: start, isLast: isLast) else { return nil }
        scanner.bytes = bytes
        scanner.start = start
        noteStrayText(in: bytes, start..<text.end, &scanner)
        noteLostEntries(in: BibBytes(base: bytes.base, end: text.end), from: start, &scanner)
        return text
    }

    private mutating func body(
        _ header: BibHeader, in bytes: BibBytes, from start: Int, isLast: Bool, _ scanner: inout BibBodyScanner
    ) -> Found? {
        let tooLong = bytes.end - start > limit
        let bounded = BibBytes(base: bytes.base, end: tooLong ? start + limit : bytes.end)
        let hasty = scannedInVain > 4 * limit + 4 * offset
        let outcome = scanner.scan(header, from: start, in: bounded, hasty: hasty)
        if header.kind == .entry, scanner.hasEscapes, !hasty {
            if outcome == .ranOut, !tooLong, !isLast { return nil }
            switch escaped(header, outcome, from: start, in: tooLong ? bounded : bytes, isLast: isLast, &scanner) {
            case .found(let end): return Found(kind: .entry, end: end)
            case .undecided: return nil
            case .nothing: _ = scanner.scan(header, from: start, in: bounded, hasty: hasty)
            }
        }
        switch outcome {
        case .closed(let end): return Found(kind: header.kind, end: end)
        case .cut(let end): return unclosed(header, at: end, &scanner)
        case .ranOut where !tooLong && !isLast: return nil
        case .ranOut:
            if let end = scanner.doubtfulEnd {
                scannedInVain += bounded.end - end
                return unclosed(header, at: end, &scanner)
            }
            if header.body == .restOfLine { return Found(kind: .comment, end: bounded.end, lineState: .dirty) }
            guard tooLong else { return unclosed(header, at: bounded.end, &scanner) }
            let end = Self.seam(near: bounded.end, in: bytes)
            scanner.at = start
            scanner.note(.tooLong, "\(Self.name(header, scanner)) is longer than \(limit) bytes and was not read")
            return Found(kind: .unreadable, end: end, lineState: .dirty)
        }
    }

    /// What BibTeX cannot read, or ends too early, may be an entry of JabRef's or Zotero's, for whom a brace behind a
    /// backslash is none, or of somebody who wrote `"M\"uller"`. It is one if it is sound that way, to its last brace.
    private mutating func escaped(
        _ header: BibHeader, _ outcome: BibBodyScanner.Outcome, from start: Int, in bytes: BibBytes, isLast: Bool,
        _ scanner: inout BibBodyScanner
    ) -> BibLookup<Int> {
        if case .closed(let end) = outcome, scanner.notes.isEmpty {
            switch Self.strayFields(from: end, in: bytes, isLast: isLast) {
            case .found: break
            case .nothing: return .nothing
            case .undecided: return .undecided
            }
        }
        let other = scanner.scan(header, from: start, in: bytes, hasty: true, skippingEscapes: true)
        if other == .ranOut, !isLast, bytes.end - start <= limit { return .undecided }
        guard case .closed(let end) = other, scanner.notes.isEmpty else {
            scannedInVain += max(0, scanner.at - start)
            return .nothing
        }
        scanner.at = start
        scanner.note(
            .escapedBrace,
            "\(Self.name(header, scanner)) holds a brace or quote behind a backslash: BibTeX cannot read it; it was read as part of the value"
        )
        return .found(end)
    }

    /// Whether what follows the end of an entry looks like the rest of it.
    private static func strayFields(from end: Int, in bytes: BibBytes, isLast: Bool) -> BibLookup<Void> {
        var at = end
        while at < bytes.end, BibByte.isWhite(bytes[at]) { at += 1 }
        guard at < bytes.end else { return isLast ? .nothing : .undecided }
        if bytes[at] == BibByte.closeBrace { return .found(()) }
        guard bytes[at] == BibByte.comma else { return .nothing }
        at += 1
        while at < bytes.end, BibByte.isWhite(bytes[at]) { at += 1 }
        // A name may be long; what looks at it must not wait for ever.
        if !isLast, bytes.end - at < 256 { return .undecided }
        return bytes.startsField(at: at) ? .found(()) : .nothing
    }

    private func unclosed(_ header: BibHeader, at end: Int, _ scanner: inout BibBodyScanner) -> Found {
        scanner.head.close = scanner.relative(end)
        scanner.at = scanner.start
        scanner.note(.unclosed, "\(Self.name(header, scanner)) is never closed")
        return Found(kind: .unreadable, end: end)
    }

    private static func name(_ header: BibHeader, _ scanner: BibBodyScanner) -> String {
        guard header.kind == .entry else { return "@\(header.kind.rawValue)" }
        let (from, to) = (scanner.start + Int(scanner.head.keyStart), scanner.start + Int(scanner.head.keyEnd))
        if from < to { return "entry '\(scanner.name(from, to))'" }
        return "an entry of type '\(scanner.name(header.typeStart, header.typeEnd))'"
    }

    private static func isMark(_ bytes: BibBytes, at index: Int) -> Bool {
        bytes.end - index >= 3 && bytes[index] == 0xEF && bytes[index + 1] == 0xBB && bytes[index + 2] == 0xBF
    }
}

// MARK: - Text between blocks

extension BibParser {
    /// Text up to the next block. Nil: the window ends before it is known where that is.
    private func text(in bytes: BibBytes, from start: Int, isLast: Bool) -> Found? {
        let stop = min(bytes.end, start + Self.textLimit)
        var state = lineState
        var index = start
        while index < stop {
            let byte = bytes[index]
            if BibByte.isBreak(byte) {
                state = .clean
            } else if byte == BibByte.at, index > start {
                switch bytes.header(at: index, on: state) {
                case .found: return Found(kind: .text, end: index, lineState: state)
                case .undecided where !isLast: return nil
                default: state = state == .commented ? state : .dirty
                }
            } else if byte == BibByte.percent {
                state = .commented
            } else if !BibByte.isBlank(byte), state == .clean {
                if Self.isMark(bytes, at: index) { index += 2 } else { state = .dirty }
            }
            index += 1
        }
        if bytes.end > stop { return Found(kind: .text, end: Self.seam(near: stop, in: bytes), lineState: state) }
        return isLast ? Found(kind: .text, end: bytes.end, lineState: state) : nil
    }

    /// Where bytes may be cut apart: not within a CR LF, nor before an `@`, whose meaning depends on the byte before it.
    private static func seam(near index: Int, in bytes: BibBytes) -> Int {
        let splitsBreak = bytes[index] == BibByte.lineFeed && bytes[index - 1] == BibByte.carriageReturn
        return splitsBreak || bytes[index] == BibByte.at ? index - 1 : index
    }

    /// A surplus brace closes an entry early, and what was meant to be its fields becomes text: that must not go unnoticed.
    private func noteStrayText(in bytes: BibBytes, _ range: Range<Int>, _ scanner: inout BibBodyScanner) {
        scanner.at = range.lowerBound
        if offset == 0, range.count >= 2,
            (bytes[0] == 0xFF && bytes[1] == 0xFE) || (bytes[0] == 0xFE && bytes[1] == 0xFF)
        {
            scanner.note(.encoding, "the file is UTF-16; only UTF-8 and Windows-1252 can be read")
        }
        guard followsEntry else { return }
        while scanner.at < range.upperBound, BibByte.isWhite(bytes[scanner.at]) { scanner.at += 1 }
        guard scanner.at < range.upperBound else { return }
        if bytes[scanner.at] == BibByte.closeBrace {
            scanner.note(.strayText, "a '}' closes nothing")
        } else if bytes[scanner.at] == BibByte.comma {
            scanner.at += 1
            scanner.skipGap()
            guard scanner.at < range.upperBound else { return }
            if bytes[scanner.at] == BibByte.closeBrace {
                scanner.note(.strayText, "a '}' closes nothing")
            } else if bytes.startsField(at: scanner.at) {
                scanner.note(.strayText, "fields follow the end of an entry: it may have a '}' too many")
            }
        }
    }
}

extension BibParser {
    /// To BibTeX an entry without its `@`, or in other brackets, is a comment; whoever wrote it meant an entry.
    private func noteLostEntries(in text: BibBytes, from start: Int, _ scanner: inout BibBodyScanner) {
        var lineStart = lineState == .clean ? start : text.lineEnd(from: start)
        while lineStart < text.end {
            while lineStart < text.end, BibByte.isWhite(text[lineStart]) { lineStart += 1 }
            if let what = text.lostEntry(at: lineStart) {
                scanner.at = lineStart
                scanner.note(.strayText, "looks like an entry, and is none to BibTeX: \(what)")
            } else if let place = text.hiddenEntry(from: lineStart) {
                scanner.at = place
                scanner.note(
                    .strayText, "looks like an entry behind other text, and was not read: put it on a line of its own")
            }
            lineStart = text.lineEnd(from: lineStart)
        }
    }
}

// MARK: - Lines and columns

extension BibParser {
    private mutating func advance(over range: Range<Int>, in bytes: BibBytes) {
        let place = place(after: range, in: bytes, line: line, column: column)
        (line, column) = place
        offset += range.count
    }

    private func problems(_ notes: [BibBodyScanner.Note], from start: Int, in bytes: BibBytes) -> [BibProblem] {
        var (at, line, column) = (start, line, column)
        return notes.sorted { $0.position < $1.position }.map { note in
            let position = max(note.position, at)
            (line, column) = place(after: at..<position, in: bytes, line: line, column: column)
            at = position
            return BibProblem(
                code: note.code, line: line, column: column, offset: offset + at - start, message: note.message)
        }
    }

    /// Line and column behind `range`, given those at its start. LF, CR LF and a lone CR each end a line.
    private func place(
        after range: Range<Int>, in bytes: BibBytes, line: Int, column: Int
    ) -> (line: Int, column: Int) {
        let base = bytes.base
        var breaks = 0
        for index in range where base[index] == BibByte.lineFeed { breaks &+= 1 }
        // Carriage returns are rare: find out whether there are any before looking at their neighbours.
        var returns = 0
        for index in range where base[index] == BibByte.carriageReturn { returns &+= 1 }
        if returns > 0 {
            for index in range where base[index] == BibByte.carriageReturn {
                if index + 1 >= bytes.end || base[index + 1] != BibByte.lineFeed { breaks &+= 1 }
            }
        }
        var lineStart = range.upperBound
        while lineStart > range.lowerBound, !BibByte.isBreak(base[lineStart - 1]) { lineStart -= 1 }
        var characters = 0
        for index in lineStart..<range.upperBound where base[index] & 0xC0 != 0x80 { characters &+= 1 }
        let startsHere = lineStart > range.lowerBound
        return (line + breaks, (startsHere ? 1 : column) + characters)
    }
}
