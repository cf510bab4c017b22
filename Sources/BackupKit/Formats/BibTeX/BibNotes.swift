/// What the scanner has to say about what it cannot read.
extension BibBodyScanner {
    mutating func note(_ code: BibProblem.Code, _ message: String) {
        guard notes.count <= Self.mostNotes else { return }
        let isLast = notes.count == Self.mostNotes
        notes.append(
            isLast
                ? Note(code: .tooMany, position: at, message: "more problems in this block are not listed")
                : Note(code: code, position: at, message: message))
    }

    func name(_ from: Int, _ to: Int) -> String {
        // Nobody will read it, and a file of garbage would spend its time on it.
        guard notes.count < Self.mostNotes else { return "" }
        let shown = UnsafeRawBufferPointer(start: bytes.base + from, count: min(to - from, 60))
        return printable(BibText.decode(shown).text) + (to - from > 60 ? "…" : "")
    }

    func what(_ nameStart: Int, _ nameEnd: Int) -> String {
        nameStart == nameEnd ? "@preamble" : "field '\(name(nameStart, nameEnd))'"
    }

    /// The character at `at`, for a message.
    func found() -> String {
        guard at < bytes.end else { return "the end" }
        let lead = bytes[at]
        let length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
        return "'\(name(at, min(at + length, bytes.end)))'"
    }
}
