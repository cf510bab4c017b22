/// One entry taken apart, with bytes of its own: what the editor works on.
struct BibEntryLayout {
    let bytes: [UInt8]
    let head: BibHead
    let fields: [BibField]
    let problems: [BibProblem]

    /// Nil unless the bytes are exactly one readable entry.
    init?(_ bytes: [UInt8]) {
        var (head, fields, problems): (BibHead?, [BibField], [BibProblem]) = (nil, [], [])
        var blocks = 0
        bytes.withUnsafeBytes { buffer in
            BibParser.parse(buffer) { block in
                blocks += 1
                guard block.kind == .entry else { return }
                head = block.head
                fields = Array(block.fields)
                problems = block.problems
            }
        }
        guard blocks == 1, let head else { return nil }
        (self.bytes, self.head, self.fields, self.problems) = (bytes, head, fields, problems)
    }

    var type: String { text(head.typeStart, head.typeEnd) }
    var key: String { text(head.keyStart, head.keyEnd) }

    /// Offsets come from the parser; those that do not fit give nothing rather than a trap.
    func slice(_ start: Int, _ end: Int) -> ArraySlice<UInt8> {
        guard start >= 0, start <= end, end <= bytes.count else { return [] }
        return bytes[start..<end]
    }

    func text(_ start: UInt32, _ end: UInt32) -> String { BibText.decode(Array(slice(Int(start), Int(end)))).text }

    func isNamed(_ field: BibField, _ name: String) -> Bool {
        Array(slice(Int(field.nameStart), Int(field.nameEnd))).withUnsafeBytes { BibText.sameIgnoringCase($0, name) }
    }

    func value(of field: BibField, macros: BibMacros) -> String {
        Array(slice(Int(field.valueStart), Int(field.valueEnd))).withUnsafeBytes { macros.resolve($0) }
    }

    func replacing(_ start: Int, _ end: Int, with new: [UInt8]) -> [UInt8] {
        slice(0, start) + new + slice(end, bytes.count)
    }

    // MARK: The entry's own style, for a field that is added

    /// "\r\n", "\n" or "\r", whichever the entry uses first.
    var lineBreak: [UInt8] {
        guard let index = bytes.firstIndex(where: { BibByte.isBreak($0) }) else { return [BibByte.lineFeed] }
        let isPair = bytes[index] == BibByte.carriageReturn && slice(index + 1, index + 2).first == BibByte.lineFeed
        return isPair ? [BibByte.carriageReturn, BibByte.lineFeed] : [bytes[index]]
    }

    /// What stands between two fields: the white space before the last one, from its last line break on.
    var separator: [UInt8] {
        guard let last = fields.last else { return lineBreak + [BibByte.space, BibByte.space] }
        var start = Int(last.nameStart)
        while start > 0, BibByte.isBlank(bytes[start - 1]) { start -= 1 }
        let blanks = Array(slice(start, Int(last.nameStart)))
        return start > 0 && BibByte.isBreak(bytes[start - 1]) ? lineBreak + blanks : blanks
    }

    var valueStyle: BibField.Style {
        let delimited = fields.filter { $0.style == .braces || $0.style == .quotes }
        return !delimited.isEmpty && delimited.allSatisfy { $0.style == .quotes } ? .quotes : .braces
    }

    /// `name = ` with the entry's spacing: a common column for the equals signs or the values, else as the last field has it.
    func nameAndEquals(_ name: [UInt8]) -> [UInt8] {
        let space = [BibByte.space]
        guard let last = fields.last else { return name + space + [BibByte.equals] + space }
        let before = blanks(Int(last.nameEnd), Int(last.equals))
        let after = blanks(Int(last.equals) + 1, Int(last.valueStart))
        func pad(_ count: Int) -> [UInt8] { [UInt8](repeating: BibByte.space, count: max(count, 1)) }
        if let column = commonColumn({ $0.equals }) {
            return name + pad(column - name.count) + [BibByte.equals] + after
        }
        if let column = commonColumn({ $0.valueStart }) {
            return name + before + [BibByte.equals] + pad(column - name.count - before.count - 1)
        }
        return name + before + [BibByte.equals] + after
    }

    private func blanks(_ start: Int, _ end: Int) -> [UInt8] {
        let between = slice(start, end)
        return between.allSatisfy { BibByte.isBlank($0) } ? Array(between) : [BibByte.space]
    }

    /// The distance from the names that all fields share although their names differ in length.
    private func commonColumn(_ position: (BibField) -> UInt32) -> Int? {
        let columns = Set(fields.map { Int(position($0)) - Int($0.nameStart) })
        let lengths = Set(fields.map { $0.nameEnd - $0.nameStart })
        return columns.count == 1 && lengths.count > 1 ? columns.first : nil
    }
}
