/// Writes BibTeX so that it reads back as the same text.
public enum BibWriter {
    /// A fresh entry, for records that never had one: two spaces, braces, a field a line, no comma at the end.
    public static func entry(
        type: String, key: String, fields: [(name: String, value: String)]
    ) throws(BackupError) -> [UInt8] {
        var out = Array("@\(type){\(key)".utf8)
        for field in fields {
            out += Array(",\n  \(field.name) = ".utf8)
            out += try value(Array(field.value.utf8), of: field.name, style: .braces)
        }
        out += Array(fields.isEmpty ? ",\n}".utf8 : "\n}".utf8)
        let subject = "entry '\(printable(key))'"
        guard let written = BibEntryLayout(out), written.problems.isEmpty else {
            throw BackupError(
                .refused, "type, key or a field name cannot be written as BibTeX", at: subject,
                remedy: "use letters, digits and '-' in them")
        }
        let names = written.fields.map { written.text($0.nameStart, $0.nameEnd) }
        let values = written.fields.map { written.value(of: $0, macros: .standard) }
        let isSame =
            written.type == type && written.key == key && names == fields.map(\.name) && values == fields.map(\.value)
        guard isSame else {
            throw BackupError(
                .refused, "type, key or a field would read back differently as BibTeX", at: subject,
                remedy: "use letters, digits and '-' in type, key and field names")
        }
        return out
    }

    /// `text` with delimiters. `style` is what stood there before, and is kept where it can be.
    static func value(_ text: [UInt8], of field: String, style: BibField.Style) throws(BackupError) -> [UInt8] {
        let survey = try survey(text, of: field)
        if style == .bare, !text.isEmpty, text.allSatisfy({ BibByte.isDigit($0) }) { return text }
        let (open, close) =
            style == .quotes && !survey.hasBareQuote
            ? (BibByte.quote, BibByte.quote) : (BibByte.openBrace, BibByte.closeBrace)
        var out = [open]
        for (index, byte) in text.enumerated() {
            if survey.seams.contains(index) { out += [close] + Array(" # ".utf8) + [open] }
            out.append(byte)
        }
        out.append(close)
        return out
    }

    private struct Survey {
        /// A quote outside braces would end a value in quotes.
        var hasBareQuote = false
        /// Where an `@word{` starts a line: every reader that mends unclosed entries would take it for the next one, so
        /// the value is written in two pieces there.
        var seams: Set<Int> = []
    }

    private static func survey(_ text: [UInt8], of field: String) throws(BackupError) -> Survey {
        var survey = Survey()
        var depth = 0
        for (index, byte) in text.enumerated() {
            switch byte {
            case BibByte.openBrace: depth += 1
            case BibByte.closeBrace:
                depth -= 1
                if depth < 0 { throw unbalanced(field) }
            case BibByte.quote where depth == 0: survey.hasBareQuote = true
            case BibByte.at where index > 0 && BibByte.isBreak(text[index - 1]):
                guard startsBlock(text, at: index) else { continue }
                guard depth == 0 else {
                    throw BackupError(
                        .refused, "a line in braces within field '\(printable(field))' starts like an entry",
                        at: "field '\(printable(field))'", remedy: "put a space before its '@'")
                }
                survey.seams.insert(index)
            default: break
            }
        }
        if depth != 0 { throw unbalanced(field) }
        return survey
    }

    private static func startsBlock(_ text: [UInt8], at index: Int) -> Bool {
        text.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return false }
            return BibBytes(base: base, end: buffer.count).startsBlock(at: index)
        }
    }

    private static func unbalanced(_ field: String) -> BackupError {
        BackupError(
            .refused, "the braces in the value of field '\(printable(field))' do not pair up",
            at: "field '\(printable(field))'", remedy: "add the missing brace, or write it as \\textbraceleft{}")
    }
}
