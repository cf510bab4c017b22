/// The keywords of a publication, which several files and people may have written: each file adds and removes its own.
extension BibliographyIntake {
    /// Notes each keyword of the entry that the pen has written.
    func noteKeywords(_ record: Brought.Record, _ state: inout FileState) {
        let bytes = pen.written
        for member in pen.members where bytes[member.name].elementsEqual(Keywords.field.utf8) {
            guard bytes[member.value.lowerBound] == UInt8(ascii: "\"") else { continue }
            let text = jsonUnescape(bytes, member.value.dropFirst().dropLast())
            for word in Keywords(text).items {
                let marks = record.keyword(word)
                state.brought += [marks.everBrought, marks.held]
            }
        }
    }

    /// The keywords of a publication without those that the file has lost and no other one holds; nil where there are none.
    func keywordsLeft(
        _ stored: [Field], _ held: [[Field]], _ ids: [Brought.Record], _ others: Brought, _ state: FileState
    ) throws -> String? {
        guard let text = Fields.string(Keywords.field, in: stored) else { return nil }
        let here = Set(held.flatMap { words(of: $0) }.map { ByteName($0) })
        let gone = Keywords(text).items.filter { word in
            let marks = ids.map { $0.keyword(word) }
            return !here.contains(ByteName(word)) && marks.contains { state.broughtBefore.contains($0.everBrought) }
                && !marks.contains { others.contains($0.held) }
        }
        return gone.isEmpty ? nil : Keywords.without(gone, in: text)
    }

    /// Whether the store has keywords of a publication that the file does not say and never said, or that others hold.
    func hasOthersKeywords(_ match: Match, _ incoming: [Field], _ state: inout FileState) throws -> Bool {
        let said = Set(words(of: incoming).map { ByteName($0) })
        let more = words(of: match.fields).filter { !said.contains(ByteName($0)) }
        guard !said.isEmpty, !more.isEmpty else { return false }
        let others = try state.realPath.map { try otherFiles(than: $0, &state).brought } ?? Brought([])
        let record = memory(of: match.localID)
        return more.contains {
            let marks = record.keyword($0)
            return others.contains(marks.held) || !state.broughtBefore.contains(marks.everBrought)
        }
    }

    private func words(of fields: [Field]) -> [String] {
        Fields.string(Keywords.field, in: fields).map { Keywords($0).items } ?? []
    }
}
