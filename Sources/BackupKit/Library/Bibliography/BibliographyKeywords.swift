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
    /// Those of `lostEntries` stay.
    func keywordsLeft(
        _ stored: [Field], _ held: [[Field]], _ ids: [Brought.Record], besides lostEntries: [Brought.Record],
        _ others: Brought, _ state: FileState
    ) throws -> String? {
        guard let text = Fields.string(Keywords.field, in: stored) else { return nil }
        let here = Set(held.flatMap { words(of: $0) }.map { ByteName($0) })
        let gone = Keywords(text).items.filter { word in
            let marks = ids.map { $0.keyword(word) }
            return !here.contains(ByteName(word)) && marks.contains { state.broughtBefore.contains($0.everBrought) }
                && !marks.contains { others.contains($0.held) }
                && !lostEntries.contains { state.broughtBefore.contains($0.keyword(word).everBrought) }
        }
        return gone.isEmpty ? nil : Keywords.without(gone, in: text)
    }

    /// The stored keywords that the entry removes by not having them: what the file itself has brought and no other one
    /// holds. An export has those of all files, so that it removes what no file holds. Nil where nothing is known of the
    /// file, or nothing is missing in it. Of what was merged into the publication the file may hold another entry.
    func removableKeywords(
        _ match: Match, _ incoming: [Field], _ work: WorkID, _ state: inout FileState
    ) throws -> [String]? {
        guard state.realPath != nil || intake.isEdit,
            let stored = match.fields.first(where: { $0.name == Keywords.field }),
            !incoming.contains(where: { $0.name == Keywords.field && sameBytes($0.value, stored.value) })
        else { return nil }
        let said = Set(words(of: incoming).map { ByteName($0) })
        let missing = words(of: match.fields).filter { !said.contains(ByteName($0)) }
        guard !missing.isEmpty else { return nil }
        let others = try state.realPath.map { try otherFiles(than: $0, &state).brought } ?? Brought([])
        let merged = (mergedInto[match.localID] ?? []).filter(work.all.contains)
        let ids = ([match.localID] + merged).map(memory)
        let saidAll = ids.contains { state.broughtBefore.contains($0.everBrought(stored)) }
        let isAllOwn = state.isExport || saidAll
        return missing.filter { word in
            let marks = ids.map { $0.keyword(word) }
            return (isAllOwn || marks.contains { state.broughtBefore.contains($0.everBrought) })
                && !marks.contains { others.contains($0.held) }
        }
    }

    /// The field of keywords where the store has all that the entry says, and has kept none that the entry removes.
    func keywordsTaken(_ match: Match, _ incoming: [Field]) -> Set<String> {
        let (stored, said) = (words(of: match.fields), words(of: incoming))
        let known = Set(stored.map { ByteName($0) })
        let isAll = said.allSatisfy { known.contains(ByteName($0)) }
        let hasKept = known.count > Set(said.map { ByteName($0) }).count && store.removableKeywords?.isEmpty != true
        return isAll && !hasKept ? [Keywords.field] : []
    }

    func words(of fields: [Field]) -> [String] {
        Fields.string(Keywords.field, in: fields).map { Keywords($0).items } ?? []
    }
}
