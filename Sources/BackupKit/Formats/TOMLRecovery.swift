/// How reading goes on after a mistake. What is said of the lines below should be true of them: better to pass over one too
/// many than to call the rest of a broken value a mistake of its own.
extension TOMLReader {
    /// Goes on to where something new begins: past this line, and past those below that may be the rest of its value.
    mutating func skipStatement() {
        if let next { return offset = next }
        skipLine()
        guard isOpen else { return }
        offset = lineBehindClosingBrace() ?? offset
        while peek() != nil, !beginsStatement(offset) { skipLine() }
    }

    private mutating func skipLine() {
        while let byte = peek() {
            offset += 1
            if byte == UInt8(ascii: "\n") { return }
        }
    }

    /// The line behind a brace that closes what was opened on an earlier one, where the lines between are not of something
    /// else.
    private func lineBehindClosingBrace() -> Int? {
        var place = offset
        while place < bytes.count, !isHeader(place) {
            let line = bytes[place...].prefix { $0 != UInt8(ascii: "\n") }
            place = min(line.endIndex + 1, bytes.count)
            if line.first(where: { $0 > 0x20 }) == UInt8(ascii: "}") { return place }
        }
        return nil
    }

    /// The start of this line, when it is the first thing on it that is read, and can be nothing but a new statement.
    func startOfStatement() -> Int? {
        var start = offset
        while start > 0, bytes[start - 1] == UInt8(ascii: " ") || bytes[start - 1] == UInt8(ascii: "\t") { start -= 1 }
        guard start > 0, bytes[start - 1] == UInt8(ascii: "\n"), beginsStatement(start) else { return nil }
        return start
    }

    /// Whether a line begins with a key and '=', or is a header; keys in quotes may as well be values.
    private func beginsStatement(_ line: Int) -> Bool {
        if isHeader(line) { return true }
        var place = skippingBlanks(line)
        guard place < bytes.count, isBareKey(bytes[place]) else { return false }
        place = skippingKey(place)
        return place < bytes.count && bytes[place] == UInt8(ascii: "=")
    }

    /// Whether a line is a header with nothing behind it, and no array of one word.
    private func isHeader(_ line: Int) -> Bool {
        var place = skippingBlanks(line)
        var depth = 0
        while place < bytes.count, bytes[place] == UInt8(ascii: "["), depth < 2 {
            (place, depth) = (place + 1, depth + 1)
        }
        guard depth > 0 else { return false }
        place = skippingBlanks(place)
        let end = skippingKey(place)
        let name = bytes[place..<end].filter { $0 > 0x20 }
        guard let first = name.first, isBareKey(first), !(48...57).contains(first), first != UInt8(ascii: "-"),
            TOMLScalar.read(String(decoding: name, as: UTF8.self)) == nil
        else { return false }
        place = end
        while place < bytes.count, bytes[place] == UInt8(ascii: "]"), depth > 0 {
            (place, depth) = (place + 1, depth - 1)
        }
        place = skippingBlanks(place)
        let isAlone = place == bytes.count || [0x0A, 0x0D, UInt8(ascii: "#")].contains(bytes[place])
        return depth == 0 && isAlone
    }

    private func skippingBlanks(_ place: Int) -> Int {
        bytes[place...].firstIndex { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") } ?? bytes.count
    }

    /// Past the parts of a bare key, the dots and the blanks between and behind them.
    private func skippingKey(_ place: Int) -> Int {
        bytes[place...].firstIndex { !isBareKey($0) && ![0x20, 0x09, UInt8(ascii: ".")].contains($0) } ?? bytes.count
    }
}
