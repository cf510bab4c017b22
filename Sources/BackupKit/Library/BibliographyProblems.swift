/// What an import says of a file that cannot be read as it stands.
extension BibliographyIntake {
    func report(_ problem: BibProblem, _ block: BibBlock, _ state: FileState) {
        let place = "\(state.shownPath):\(problem.line):\(problem.column)"
        if block.kind == .unreadable {
            intake.reject(place, problem.message, remedy: "correct the file there, and import it again")
        } else {
            intake.note(
                Finding(.malformed, .warning, place, problem.message, remedy: "what could be read was imported"))
        }
    }

    func reportLongMacros(_ block: BibBlock, _ state: FileState) {
        guard block.kind == .entry || block.kind == .string else { return }
        for field in block.fields where field.style == .bare || field.style == .joined {
            guard state.macros.isTooLong(block.rawValue(of: field)) else { continue }
            intake.note(
                Finding(
                    .malformed, .error, "\(state.shownPath):\(block.line)",
                    "the macros in the field '\(block.name(of: field))' are longer than \(BibMacros.mostBytes) bytes; the field keeps their names",
                    remedy: "the entry's own text is kept as it was written"))
        }
    }

    /// An entry of an export was taken out or has another key now: nobody but the user can tell which.
    func noteLinesLeft(_ state: FileState) {
        let keys = state.lines.keysLeft
        guard let first = keys.first else { return }
        let which = keys.count == 1 ? "an entry '\(first)'" : "\(keys.count) entries, such as '\(first)',"
        intake.note(
            Finding(
                .unlinked, .warning, state.shownPath,
                "names files of \(which) that it does not hold; nothing was linked to them",
                remedy:
                    "give the entry that key again, or remove the lines '\(BibliographyWriter.mark)…' that name it"))
    }
}
