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

    func noteMacros(_ block: BibBlock, _ state: inout FileState) {
        if block.kind == .string {
            macros.defined.formUnion(block.fields.map { block.name(of: $0).lowercased() })
        }
        // An export says itself what its macros mean.
        guard block.kind == .entry, !state.isExport else { return }
        for field in block.fields where field.style == .bare || field.style == .joined {
            for name in BibValuePieces.macros(in: block.rawValue(of: field)) where state.macros.value(of: name) == nil {
                state.unknownMacros.insert(name.lowercased())
            }
        }
    }

    /// What is defined further down is no other file's.
    func noteUnknown(_ state: FileState) {
        macros.unknown.append((state.shownPath, state.unknownMacros.filter { state.macros.value(of: $0) == nil }))
    }

    /// Names macros that a file uses and that others define: BibTeX may be given these before it. Comes after the last file.
    func reportUnknownMacros() {
        let defined = macros.defined.union(partIDs.macros)
        for (path, unknown) in macros.unknown {
            let names = unknown.intersection(defined).sorted()
            if names.isEmpty { continue }
            intake.note(
                Finding(
                    .malformed, .warning, path,
                    "uses macros that only other files define (\(firstNames(names))); their names became the values",
                    remedy: "copy their @string lines to the beginning of it, and import it again"))
        }
        macros.unknown = []
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
