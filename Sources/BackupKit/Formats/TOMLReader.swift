/// Recursive descent over the bytes of a document; `peek` answers nil past the end, so nothing here can trap.
struct TOMLReader {
    let bytes: [UInt8]
    var offset = 0
    /// Whether the statement at hand has something that may go on over lines.
    var isOpen = false
    /// Where the next statement begins, when a mistake has shown that.
    var next: Int?
    /// The last place whose line and column were asked for; the next question usually lies after it.
    private var known = (offset: 0, line: 1, column: 1)

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// Reads all of it, but for what there are mistakes in.
    mutating func readDocument() -> (table: TOMLTable, mistakes: [TOMLMistake]) {
        let root = TOMLTableBuilder(.header)
        var mistakes = linesOfOtherEncodings()
        if !mistakes.isEmpty { return (root.finish(), mistakes) }
        var current = root
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { offset = 3 }
        while true {
            skipBlanks()
            guard let byte = peek() else { return (root.finish(), mistakes) }
            (isOpen, next) = (false, nil)
            do throws(TOMLMistake) {
                switch byte {
                case UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "#"): break
                case UInt8(ascii: "["):
                    // Where the header cannot be read, nobody knows whose the lines below it are.
                    current = TOMLTableBuilder(.header)
                    current = try readHeader(root)
                default: try readKeyAndValue(into: current, depth: 0)
                }
                try endLine()
            } catch {
                mistakes.append(error)
                if mistakes.count == TOML.maximumMistakes { return (root.finish(), mistakes) }
                skipStatement()
            }
        }
    }

    // MARK: Tables

    private mutating func readHeader(_ root: TOMLTableBuilder) throws(TOMLMistake) -> TOMLTableBuilder {
        let start = offset
        offset += 1
        let isArray = take(UInt8(ascii: "["))
        skipBlanks()
        let path = try readKeyPath()
        try expect(UInt8(ascii: "]"), "']' after the table's name")
        if isArray { try expect(UInt8(ascii: "]"), "']]' after the table's name") }
        guard let name = path.last else { throw problem("a table needs a name", at: start) }
        let parent = try descend(path.dropLast(), from: root, creating: .implied)
        let position = position(at: name.offset)
        switch (parent[name.key], isArray) {
        case (nil, false):
            let table = TOMLTableBuilder(.header)
            parent.add(name.key, at: position, .table(table))
            return table
        case (nil, true):
            let list = TOMLTableBuilder.List()
            parent.add(name.key, at: position, .tables(list))
            return list.add()
        case (.tables(let list), true):
            return list.add()
        case (.table(let table), false) where table.origin == .implied:
            table.origin = .header
            return table
        default:
            throw problem("'\(name.key)' is defined twice", at: name.offset)
        }
    }

    private mutating func descend(
        _ path: ArraySlice<KeyPart>, from start: TOMLTableBuilder, creating origin: TOMLTableBuilder.Origin
    ) throws(TOMLMistake) -> TOMLTableBuilder {
        var table = start
        for part in path {
            switch table[part.key] {
            case nil:
                let next = TOMLTableBuilder(origin)
                table.add(part.key, at: position(at: part.offset), .table(next))
                table = next
            case .table(let next) where next.origin != .inline && (origin == .implied || next.origin == origin):
                table = next
            case .tables(let list) where origin == .implied:
                guard let next = list.tables.last else { throw problem("'\(part.key)' is empty", at: part.offset) }
                table = next
            default:
                throw problem("'\(part.key)' is defined already and cannot be added to here", at: part.offset)
            }
        }
        return table
    }

    private mutating func readKeyAndValue(into table: TOMLTableBuilder, depth: Int) throws(TOMLMistake) {
        let path = try readKeyPath()
        guard let name = path.last else { throw problem("expected a key", at: offset) }
        try expect(UInt8(ascii: "="), "'=' after the key")
        skipBlanks()
        let parent = try descend(path.dropLast(), from: table, creating: .dotted)
        guard parent[name.key] == nil else { throw problem("'\(name.key)' is defined twice", at: name.offset) }
        let position = position(at: name.offset)
        // A table's own keys need its builder for `a.b = 1` in it, so inline tables come back as one.
        if peek() == UInt8(ascii: "{") {
            parent.add(name.key, at: position, .table(try readInlineTable(depth: depth + 1)))
        } else {
            parent.add(name.key, at: position, .value(try readValue(depth: depth + 1)))
        }
    }

    // MARK: Keys

    private struct KeyPart {
        let key: String
        let offset: Int
    }

    private mutating func readKeyPath() throws(TOMLMistake) -> [KeyPart] {
        var parts: [KeyPart] = []
        repeat {
            skipBlanks()
            let start = offset
            guard parts.count < TOML.maximumDepth else { throw problem("nested too deeply", at: start) }
            parts.append(KeyPart(key: try readSimpleKey(), offset: start))
            skipBlanks()
        } while take(UInt8(ascii: "."))
        return parts
    }

    private mutating func readSimpleKey() throws(TOMLMistake) -> String {
        let start = offset
        switch peek() {
        case UInt8(ascii: "\""), UInt8(ascii: "'"):
            if starts(with: "\"\"\"") || starts(with: "'''") {
                throw problem("a key cannot be a string of several lines", at: start)
            }
            return try readString()
        default:
            while let byte = peek(), isBareKey(byte) { offset += 1 }
            guard offset > start else { throw problem("expected a key", at: start) }
            return text(start..<offset)
        }
    }

    // MARK: Values

    private mutating func readValue(depth: Int) throws(TOMLMistake) -> TOMLValue.Content {
        guard depth <= TOML.maximumDepth else { throw problem("nested too deeply", at: offset) }
        switch peek() {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): return .string(try readString())
        case UInt8(ascii: "["): return try readArray(depth: depth)
        case UInt8(ascii: "{"): return .table(try readInlineTable(depth: depth).finish())
        default: return try readScalar()
        }
    }

    private mutating func readArray(depth: Int) throws(TOMLMistake) -> TOMLValue.Content {
        let start = offset
        offset += 1
        isOpen = true
        var values: [TOMLValue] = []
        while true {
            try skipBlankLines()
            if take(UInt8(ascii: "]")) { return .array(values) }
            try mustGoOn(array: start)
            let position = position(at: offset)
            values.append(TOMLValue(content: try readValue(depth: depth + 1), position: position))
            try skipBlankLines()
            if take(UInt8(ascii: ",")) { continue }
            try mustGoOn(array: start)
            guard peek() == UInt8(ascii: "]") else { throw problem("expected ',' or ']' in the array", at: offset) }
        }
    }

    private mutating func mustGoOn(array start: Int) throws(TOMLMistake) {
        next = startOfStatement()
        guard peek() != nil, next == nil else { throw problem("this array has no ']'", at: start) }
    }

    private mutating func readInlineTable(depth: Int) throws(TOMLMistake) -> TOMLTableBuilder {
        guard depth <= TOML.maximumDepth else { throw problem("nested too deeply", at: offset) }
        offset += 1
        isOpen = true
        let table = TOMLTableBuilder(.inline)
        skipBlanks()
        if peek() == UInt8(ascii: "\n") || peek() == UInt8(ascii: "\r") {
            throw problem("a table in braces must end on its line", at: offset)
        }
        if take(UInt8(ascii: "}")) { return table }
        while true {
            try readKeyAndValue(into: table, depth: depth)
            skipBlanks()
            if take(UInt8(ascii: "}")) { return table }
            guard take(UInt8(ascii: ",")) else { throw problem("expected ',' or '}' in the table", at: offset) }
        }
    }

    private mutating func readScalar() throws(TOMLMistake) -> TOMLValue.Content {
        let start = offset
        skipScalar()
        // RFC 3339 lets a space stand for the T between date and time.
        if offset - start == 10, peek() == UInt8(ascii: " "), isDigit(peek(1)), isDigit(peek(2)),
            peek(3) == UInt8(ascii: ":"), TOMLScalar.isDate(bytes[start..<offset])
        {
            offset += 1
            skipScalar()
        }
        guard offset > start else { throw problem("expected a value", at: start) }
        let written = text(start..<offset)
        guard let value = TOMLScalar.read(written) else {
            throw problem("'\(printable(written))' is not a value; text needs quotes", at: start)
        }
        return value
    }

    private mutating func skipScalar() {
        while let byte = peek(), byte > 0x20, byte != UInt8(ascii: ","), byte != UInt8(ascii: "]"),
            byte != UInt8(ascii: "}"), byte != UInt8(ascii: "#")
        {
            offset += 1
        }
    }

    // MARK: White space and ends of lines

    @discardableResult
    mutating func skipBlanks() -> Bool {
        while let byte = peek(), byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") { offset += 1 }
        return true
    }

    private mutating func skipBlankLines() throws(TOMLMistake) {
        repeat {
            skipBlanks()
            try skipComment()
        } while takeNewline()
    }

    private mutating func skipComment() throws(TOMLMistake) {
        guard take(UInt8(ascii: "#")) else { return }
        while let byte = peek(), byte >= 0x20 && byte != 0x7F || byte == UInt8(ascii: "\t") { offset += 1 }
        guard let byte = peek(), byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r") else { return }
        throw problem("a control character in a comment", at: offset)
    }

    private mutating func endLine() throws(TOMLMistake) {
        skipBlanks()
        try skipComment()
        guard peek() == nil || takeNewline() else { throw problem("expected the end of the line", at: offset) }
    }

    mutating func takeNewline() -> Bool {
        if take(UInt8(ascii: "\n")) { return true }
        guard peek() == UInt8(ascii: "\r"), peek(1) == UInt8(ascii: "\n") else { return false }
        offset += 2
        return true
    }

    // MARK: Bytes

    func peek(_ ahead: Int = 0) -> UInt8? {
        offset + ahead < bytes.count ? bytes[offset + ahead] : nil
    }

    func starts(with prefix: StaticString) -> Bool {
        prefix.withUTF8Buffer { bytes[offset...].starts(with: $0) }
    }

    mutating func take(_ byte: UInt8) -> Bool {
        guard peek() == byte else { return false }
        offset += 1
        return true
    }

    private mutating func expect(_ byte: UInt8, _ what: String) throws(TOMLMistake) {
        guard take(byte) else { throw problem("expected \(what)", at: offset) }
    }

    private func text(_ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }

    private func isDigit(_ byte: UInt8?) -> Bool {
        byte.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
    }

    func isBareKey(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }

    // MARK: Places and problems

    private mutating func position(at offset: Int) -> TOMLPosition {
        var (place, line, column) = offset >= known.offset ? known : (0, 1, 1)
        while place < offset, place < bytes.count {
            if bytes[place] == UInt8(ascii: "\n") {
                line += 1
                column = 1
            } else if bytes[place] & 0xC0 != 0x80 {
                column += 1
            }
            place += 1
        }
        known = (place, line, column)
        return TOMLPosition(line: line, column: column)
    }

    mutating func problem(_ message: String, at offset: Int) -> TOMLMistake {
        let place = position(at: offset)
        return TOMLMistake(position: place, message: message)
    }

    private mutating func linesOfOtherEncodings() -> [TOMLMistake] {
        guard String(validating: bytes, as: UTF8.self) == nil else { return [] }
        var mistakes: [TOMLMistake] = []
        var start = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            if String(validating: line, as: UTF8.self) == nil { mistakes.append(problem("not UTF-8", at: start)) }
            if mistakes.count == TOML.maximumMistakes { break }
            start += line.count + 1
        }
        return mistakes
    }
}
