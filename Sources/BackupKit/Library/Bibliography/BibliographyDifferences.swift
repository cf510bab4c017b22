/// Values that two imported files give one publication. The store has one of them, whichever file is imported next, so this
/// is said once and not at each import.
extension BibliographyIntake {
    /// What the other files say, and all differences that were reported.
    struct OtherFiles {
        let files: [(path: String, said: HeldSince)]
        let brought: Brought
    }

    /// A field of which the store has the value of another file.
    struct Difference {
        let field: Field
        let path: String
        /// How the other file says its value, and how this import remembers that it has reported the difference.
        let marks: [UInt64]
        let mark: UInt64
        let isReported: Bool
    }

    /// Differences of one kind.
    struct DifferenceGroup: Hashable {
        /// The file at hand, as it is called and as it lies, and the other one.
        let file: String
        let realPath: String
        let path: String
        /// Whether the store has the values of the file at hand now.
        let isTaken: Bool
    }

    /// A difference that is to be reported.
    struct Report {
        let key: String
        let name: String
        let marks: [UInt64]
        let mark: UInt64
    }

    /// The fields of the entry at hand that have another value in the store, which another file gives them.
    func differences(of match: Match, _ incoming: [Field], _ state: inout FileState) throws -> [Difference] {
        guard let path = state.realPath, intake.policy == .honor, !intake.overwrite, !intake.isEdit else { return [] }
        var found: [Difference] = []
        for (own, said) in try differing(match.fields, incoming) {
            guard let own, let said else { continue }
            let others = try otherFiles(than: path, &state)
            let ids = [match.localID] + (mergedInto[match.localID] ?? [])
            let marks = ids.map { memory(of: $0).everBrought(own) }
            guard let other = others.files.first(where: { file in marks.contains { file.said[$0] != nil } }) else {
                continue
            }
            let mark = difference(match.localID, own, said)
            let isReported = try !isNew(mark, &state)
            found.append(Difference(field: said, path: other.path, marks: marks, mark: mark, isReported: isReported))
        }
        return found
    }

    /// The fields of BibTeX that two versions say differently. Keywords are joined.
    func differing(_ own: [Field], _ said: [Field]) throws -> [(own: Field?, said: Field?)] {
        func values(_ fields: [Field]) -> [Field] {
            fields.filter {
                Publication.isBibTeXField($0.name) && !Publication.isText($0.name)
                    && !MergePolicy.setFields.contains($0.name)
            }
        }
        let (mine, theirs) = (values(own), values(said))
        let known = Dictionary(mine.map { (ByteName($0.name), $0) }, uniquingKeysWith: { first, _ in first })
        var found: [(own: Field?, said: Field?)] = []
        for field in theirs {
            let own = known[ByteName(field.name)]
            if try own.map({ try Fields.same($0.value, field.value) }) != true { found.append((own, field)) }
        }
        let names = Set(theirs.map { ByteName($0.name) })
        let rest = mine.filter { !names.contains(ByteName($0.name)) }
        return found + rest.map { ($0, nil) }
    }

    /// The mark of a difference, whichever of the two values the store has.
    func difference(_ localID: String, _ own: Field?, _ said: Field?) -> UInt64 {
        let record = memory(of: localID)
        let marks = [own, said].map { $0.map(record.everBrought) ?? record.everBrought }.sorted()
        return store.hasher.text("\(marks)", after: record.everBrought) & ~1
    }

    /// Nobody needs to hear that the file does not say what somebody has written elsewhere.
    func noteKnown(_ field: Field, of localID: String, _ state: inout FileState) throws {
        _ = try isNew(difference(localID, field, nil), &state)
    }

    /// Whether no import has reported that difference; notes that this one does.
    func isNew(_ mark: UInt64, _ state: inout FileState) throws -> Bool {
        guard let path = state.realPath, !state.broughtBefore.contains(mark) else { return false }
        guard try !otherFiles(than: path, &state).brought.contains(mark) else { return false }
        state.brought.append(mark)
        return state.reported.insert(mark).inserted
    }

    func otherFiles(than path: String, _ state: inout FileState) throws -> OtherFiles {
        if let others = state.others { return others }
        let others = try store.importedFiles(otherThan: path)
        let found = OtherFiles(
            files: try others.filter { try FileStatus.ofName($0.path) != nil }.map { ($0.path, $0.said) },
            brought: Brought(joining: others.map(\.brought)))
        state.others = found
        return found
    }

    /// Notes what has become of the differences. `stored` is what the store has now.
    func noteDifferences(_ found: [Difference], _ key: String, stored: [Field], _ state: inout FileState) throws {
        for difference in found where !difference.isReported {
            let field = difference.field
            let now = stored.first { sameBytes($0.name, field.name) }
            let isTaken = try now.map { try Fields.same($0.value, field.value) } ?? false
            let group = DifferenceGroup(
                file: state.path, realPath: state.realPath ?? "", path: difference.path, isTaken: isTaken)
            differing[group, default: []].append(
                Report(key: key, name: field.name, marks: difference.marks, mark: difference.mark))
        }
    }

    /// Comes after the last file: another file of the same import may say by now what the first one said.
    func reportDifferences() throws {
        let groups = differing.sorted {
            ($0.key.file, $0.key.path, $0.key.isTaken ? 1 : 0) < ($1.key.file, $1.key.path, $1.key.isTaken ? 1 : 0)
        }
        differing = [:]
        for (group, reports) in groups {
            let said = try store.heldSince(by: group.path)
            let found = reports.filter { $0.marks.contains { said[$0] != nil } }
            let settled = reports.filter { report in !found.contains { $0.mark == report.mark } }
            try store.forget(Set(settled.map(\.mark)), broughtBy: group.realPath)
            guard !found.isEmpty else { continue }
            let keys = found.reduce(into: [String]()) { if $0.last != $1.key { $0.append($1.key) } }
            let isOne = keys.count == 1
            let names = Set(found.map(\.name)).sorted().joined(separator: ", ")
            let command = TypedCommand.quoted("import --overwrite", [group.isTaken ? group.path : group.file])
            intake.note(
                Finding(
                    .protected, .warning, group.file,
                    "\(Self.list(keys)) \(isOne ? "has" : "have") other values in \(group.path) (\(names)); the "
                        + "store \(group.isTaken ? "has those of this file now" : "keeps those of the other file")",
                    remedy: "\(command) takes the values of \(group.isTaken ? "the other" : "this") file; "
                        + "to end the difference, write the same in both and import them"))
        }
    }

    /// "'a'", or "'a' and 2 more entries".
    static func list(_ keys: [String]) -> String {
        guard let first = keys.first, keys.count > 1 else { return "'\(keys.first ?? "")'" }
        return "'\(first)' and \(keys.count - 1) more \(keys.count == 2 ? "entry" : "entries")"
    }

    /// Whether the store has a record as the file has it, or an import has reported already what is different. `isOthers`
    /// tells fields that other files or entries hold: these are reported where the file loses them.
    func isKnownDifference(
        _ localID: String, _ stored: [Field], _ held: [Field], isOthers: (Field) -> Bool, _ state: inout FileState
    ) throws -> Bool {
        var isKnown = true
        for (own, said) in try differing(stored, held) {
            if said == nil, let own, isOthers(own) { continue }
            if try isNew(difference(localID, own, said), &state) { isKnown = false }
        }
        return isKnown
    }
}
