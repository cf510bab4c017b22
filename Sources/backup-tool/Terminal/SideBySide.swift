import BackupKit

/// Two versions of something, next to each other, field by field. What is too long for its column goes on in the next
/// line: nothing is cut off, because somebody decides by what is shown.
///
///       FIELD    EXISTING                   INCOMING
///       title    Old or New, Never Half     Old or New, Never Half
///     ~ year     2020                       2021
struct SideBySide {
    private var rows: [(mark: Character, field: String, left: String, right: String)] = []
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
        let width = max((columns - 2 - fieldWidth - 4) / 2, 12)
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
            for index in 0..<(cells.map(\.count).max() ?? 0) {
                let cell = cells.map { index < $0.count ? $0[index] : "" }
                let text = line(index == 0 ? row.mark : " ", cell[0], cell[1], cell[2])
                switch row.mark {
                case "~": lines.append(style.changed(text))
                case "+": lines.append(style.good(text))
                case "-": lines.append(style.bad(text))
                default: lines.append(text)
                }
            }
        }
        return lines
    }
}

/// Broken at spaces where there are some, else wherever the line is full.
private func cellLines(_ text: String, to columns: Int) -> [String] {
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
