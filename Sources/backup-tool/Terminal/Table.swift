import BackupKit

/// Rows whose columns line up. On a terminal the last column is cut to what fits, unless people type what stands there,
/// and so are others that are wide; where that is not enough, each row becomes a block in which each column has lines of
/// its own. Nothing is cut there, nor in a pipe.
///
///     var table = Table([.left("NAME"), .right("SIZE")])
///     table.add(["library.bib", HumanText.bytes(size)])
///     table.print(to: output)
struct Table {
    struct Column {
        let title: String
        let isRight: Bool
        var isWhole = false

        static func left(_ title: String) -> Column { Column(title: title, isRight: false) }
        static func right(_ title: String) -> Column { Column(title: title, isRight: true) }
        /// Is never cut; must be the last column.
        static func whole(_ title: String) -> Column { Column(title: title, isRight: false, isWhole: true) }
    }

    private let columns: [Column]
    private var rows: [[String]] = []
    private var widths: [Int]

    init(_ columns: [Column]) {
        self.columns = columns
        widths = columns.map { displayWidth($0.title) }
    }

    /// Cells are made printable here. Missing ones are empty, further ones are left out.
    mutating func add(_ cells: [String]) {
        let row = columns.indices.map { $0 < cells.count ? printable(cells[$0]) : "" }
        for (index, cell) in row.enumerated() { widths[index] = max(widths[index], displayWidth(cell)) }
        rows.append(row)
    }

    /// The table for a terminal of so many columns, or of none.
    func lines(columns limit: Int?, style: Style) -> [String] {
        guard let limit else { return lines(widths, last: nil, style) }
        guard let fitted = fitted(to: limit) else { return blocks(limit, style) }
        if columns.last?.isWhole == true { return lines(fitted, last: nil, style) }
        return lines(fitted, last: limit - fitted.dropLast().reduce(0) { $0 + $1 + 2 }, style)
    }

    /// Of columns that are wider than an id or a time, the widest is narrowed first. Nil where that is not enough.
    private func fitted(to limit: Int) -> [Int]? {
        var fitted = widths
        let (wide, narrowest) = (20, 10)
        fitted[fitted.count - 1] = min(wide, fitted[fitted.count - 1])
        while case let excess = fitted.reduce(2 * (fitted.count - 1), +) - limit, excess > 0 {
            let candidates = fitted.indices.dropLast().filter {
                widths[$0] > wide && fitted[$0] > narrowest && !columns[$0].isRight
            }
            guard let widest = candidates.max(by: { fitted[$0] < fitted[$1] }) else { return nil }
            fitted[widest] -= 1
        }
        return fitted
    }

    private func lines(_ widths: [Int], last: Int?, _ style: Style) -> [String] {
        [style.bold(line(columns.map(\.title), widths, last))] + rows.map { line($0, widths, last) }
    }

    private func line(_ cells: [String], _ widths: [Int], _ last: Int?) -> String {
        var text = ""
        for (index, cell) in cells.enumerated() {
            let isLast = index == cells.count - 1
            let room = isLast ? last : widths[index]
            let shown = room.map { truncated(cell, to: $0) } ?? cell
            let width = isLast ? min(self.widths[index], last ?? .max) : widths[index]
            let isPadded = !isLast || columns[index].isRight
            text += isPadded ? padded(shown, to: width, right: columns[index].isRight) : shown
            if !isLast { text += "  " }
        }
        while text.last == " " { text.removeLast() }
        return text
    }

    /// Each row by itself: a line with title and value for each column that is not empty.
    private func blocks(_ limit: Int, _ style: Style) -> [String] {
        // Some titles begin with the space of a mark.
        let titles = columns.map { String($0.title.drop { $0 == " " }) }
        let width = titles.map(displayWidth).max() ?? 0
        let blocks = rows.map { row in
            zip(titles, row).filter { !$1.isEmpty }.flatMap { title, cell in
                cellLines(cell, to: max(8, limit - width - 2)).enumerated().map { number, part in
                    "\(style.bold(padded(number == 0 ? title : "", to: width)))  \(part)"
                }
            }
        }
        return Array(blocks.joined(separator: [""]))
    }
}
