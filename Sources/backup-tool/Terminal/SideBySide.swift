import BackupKit

/// Two versions of something, next to each other, field by field. What is too long for its column goes on in the next
/// line: nothing is cut off, because somebody decides by what is shown.
///
///       FIELD    EXISTING                   INCOMING
///       title    Old or New, Never Half     Old or New, Never Half
///     ~ year     2020                       2021
struct SideBySide {
    private typealias Row = (mark: Character, field: String, left: String, right: String)

    private var rows: [Row] = []
    private let titles: [String]

    init(_ left: String, _ right: String) { titles = ["FIELD", left, right] }

    /// `~` differs, `-` only left, `+` only right.
    mutating func add(_ field: String, _ left: String?, _ right: String?, differs: Bool) {
        let mark: Character = !differs ? " " : left == nil ? "+" : right == nil ? "-" : "~"
        rows.append((mark, printable(field), printable(left ?? ""), printable(right ?? "")))
    }

    func lines(columns: Int, style: Style) -> [String] {
        let name = min(rows.map { displayWidth($0.field) }.max() ?? 0, 20)
        let fieldWidth = max(name, titles[0].count)
        // Two columns for the mark, two between the others.
        let width = (columns - 2 - fieldWidth - 4) / 2
        guard width >= 16 else { return rows.flatMap { stacked($0, columns: columns).map(coloured($0.mark, style)) } }
        func line(_ mark: Character, _ field: String, _ left: String, _ right: String) -> String {
            var text = "\(mark) \(padded(field, to: fieldWidth))  \(padded(left, to: width))  \(right)"
            while text.last == " " { text.removeLast() }
            return text
        }
        var lines = [style.bold(line(" ", titles[0], titles[1], titles[2]))]
        for row in rows {
            let cells = [
                cellLines(row.field, to: fieldWidth), cellLines(row.left, to: width), cellLines(row.right, to: width),
            ]
            lines += (0..<(cells.map(\.count).max() ?? 0)).map { index in
                let cell = cells.map { index < $0.count ? $0[index] : "" }
                return line(index == 0 ? row.mark : " ", cell[0], cell[1], cell[2])
            }.map(coloured(row.mark, style))
        }
        return lines
    }

    /// For a narrow terminal: the values below the field, one after the other.
    private func stacked(_ row: Row, columns: Int) -> [String] {
        let indent = 6 + (titles.dropFirst().map(\.count).max() ?? 0)
        let values = zip(titles.dropFirst(), [row.left, row.right]).filter { !$0.1.isEmpty }
        return ["\(row.mark) \(row.field)"]
            + values.flatMap { title, value in
                cellLines(value, to: max(columns - indent, 12)).enumerated().map { index, text in
                    padded(index == 0 ? "    \(title)" : "", to: indent) + text
                }
            }
    }

    private func coloured(_ mark: Character, _ style: Style) -> (String) -> String {
        { text in
            switch mark {
            case "~": style.changed(text)
            case "+": style.good(text)
            case "-": style.bad(text)
            default: text
            }
        }
    }
}

/// Broken at spaces where there are some, else wherever the line is full.
func cellLines(_ text: String, to columns: Int) -> [String] {
    guard displayWidth(text) > columns else { return [text] }
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
        let longer = line.isEmpty ? String(word) : "\(line) \(word)"
        if displayWidth(longer) <= columns {
            line = longer
            continue
        }
        if !line.isEmpty { lines.append(line) }
        line = ""
        for character in word {
            if displayWidth(line + String(character)) > columns {
                lines.append(line)
                line = ""
            }
            line.append(character)
        }
    }
    return line.isEmpty ? lines : lines + [line]
}
