import BackupKit

/// Rows whose columns line up. On a terminal the last column is cut to what fits; in a pipe nothing is.
///
///     var table = Table([.left("NAME"), .right("SIZE")])
///     table.add(["library.bib", HumanText.bytes(size)])
///     table.print(to: output)
struct Table {
    struct Column {
        let title: String
        let isRight: Bool

        static func left(_ title: String) -> Column { Column(title: title, isRight: false) }
        static func right(_ title: String) -> Column { Column(title: title, isRight: true) }
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

    func print(to output: Output) {
        for line in lines(columns: output.out.columns, style: output.out.style) {
            if output.isClosed { return }
            output.print(line)
        }
    }

    /// The table for a terminal of so many columns, or of none.
    func lines(columns limit: Int?, style: Style) -> [String] {
        [style.bold(line(columns.map(\.title), limit))] + rows.map { line($0, limit) }
    }

    private func line(_ cells: [String], _ limit: Int?) -> String {
        var text = ""
        var used = 0
        for (index, cell) in cells.enumerated() {
            let isLast = index == cells.count - 1
            if !isLast {
                text += padded(cell, to: widths[index], right: columns[index].isRight) + "  "
                used += widths[index] + 2
                continue
            }
            // A terminal too narrow for the other columns wraps them; half a word more would not help.
            let shown = limit.map { truncated(cell, to: max($0 - used, 8)) } ?? cell
            text += columns[index].isRight ? padded(shown, to: widths[index], right: true) : shown
        }
        while text.last == " " { text.removeLast() }
        return text
    }
}
