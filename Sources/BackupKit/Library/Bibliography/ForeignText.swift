/// Tells files that are named like a bibliography and are something else, such as the login page that a download gave.
enum ForeignText {
    /// Why nothing of this file is imported; nil for a bibliography. BibTeX takes all that is no entry for comment, so a
    /// page of HTML would be kept as one.
    static func refusal(ofBibliography path: String) throws -> String? {
        let file = try FileHandle.openText(path)
        guard let kind = kind(of: try file.head(4096)), try !holdsBibTeX(file) else { return nil }
        return "is \(kind), not BibTeX; nothing of it was imported"
    }

    private static func kind(of head: [UInt8]) -> String? {
        let text = head.starts(with: [0xEF, 0xBB, 0xBF]) ? head[3...] : head[...]
        let start = text.drop { $0 <= 0x20 && $0 != 0 }
        let marks: [(String, String)] = [
            ("<", "a web page or XML"), ("%PDF-", "a PDF"), ("PK\u{3}\u{4}", "a zip archive"),
            ("SQLite format 3", "an SQLite database"), ("{\\rtf", "an RTF document"), ("[", "JSON"), ("{", "JSON"),
            ("TY  -", "RIS"),
        ]
        if let mark = marks.first(where: { start.starts(with: $0.0.utf8) }) { return mark.1 }
        return head.contains(0) ? "binary data, or text in an unknown encoding" : nil
    }

    /// Style sheets have blocks that look like entries, but no `name = value`.
    private static func holdsBibTeX(_ file: FileHandle) throws -> Bool {
        var found = false
        var reader = BibReader()
        func look(_ block: BibBlock) {
            found = found || block.kind == .string || block.kind == .entry && !block.fields.isEmpty
        }
        try file.forEachChunk { reader.feed($0, emit: look) }
        reader.finish(emit: look)
        return found
    }
}

extension BibliographyIntake {
    /// Names what a file system leaves of text that was not written before the power went.
    func noteZeros(in block: BibBlock, _ state: inout FileState) {
        let count = block.raw.count { $0 == 0 }
        guard count > 0 else { return }
        state.isDamaged = true
        intake.note(
            Finding(
                .malformed, .warning, "\(state.path):\(block.line)",
                "has \(count == 1 ? "a zero byte" : "\(count) zero bytes") where text should be",
                remedy: "an older copy of the file may have that text"))
    }
}
