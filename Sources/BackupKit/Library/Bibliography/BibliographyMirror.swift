/// `import --mirror`: the file is the library. What it has brought, and does not hold any more, goes; what other files
/// hold, and what somebody has written elsewhere, stays.
extension BibliographyIntake {
    /// What the files remember of a publication.
    func memory(of localID: String) -> Brought.Record {
        Brought.Record(store.hasher, memories[localID] ?? localID)
    }

    /// Whether the file brought that publication in an earlier import.
    func hasBrought(_ localID: String, _ state: FileState) -> Bool {
        state.broughtBefore.contains(memory(of: localID).everBrought)
    }

    /// Whether the file held that publication when it was imported last.
    func hasHeld(_ localID: String, _ state: FileState) -> Bool {
        state.broughtBefore.contains(memory(of: localID).held)
    }

    /// Notes what the entry that the pen has written brings to the publication that it is. Strangers share cite keys, so the
    /// record counts and not the key. `besides` names a field that it does not bring, `known` is what the store had of it.
    func noteBrought(to localID: String, besides: String? = nil, known: Match? = nil, _ state: inout FileState) {
        namedFiles?.note(owner: localID, of: state.wishes)
        worksByKey?[state.key, default: []].append(localID)
        noteSaid(of: localID, besides: besides, known: known, &state)
    }

    /// The pen has written an entry that stays deleted here. The file still holds it, and an undo may bring it back with any
    /// id that the file knows it by.
    func noteStillHeld(_ work: WorkID, _ incoming: [Field], besides noted: String, _ state: inout FileState) throws {
        for id in work.made where id != noted {
            guard hasHeld(id, state), try live(id) == nil else { continue }
            noteSaid(of: id, &state)
            if mirrors { state.held[id] = incoming }
        }
    }

    /// An entry that is new in this file and written after the version that the mirror of another file has removed: somebody
    /// has moved it here. It is newer than that removal, whichever of the two files is mirrored first.
    func movedHere(_ version: Record, _ state: FileState) throws -> Record {
        guard mirrors, state.realPath != nil, !hasBrought(version.localID, state),
            let removed = try store.records(localID: version.localID).first(where: { $0.record.isDeleted }),
            removed.record.hadNotHeard(of: version), try store.isOfBatch(removed.change, kind: "import")
        else { return version }
        var version = version
        version.modifiedAt = max(version.modifiedAt, removed.record.modifiedAt.next)
        return version
    }

    private func noteSaid(
        of localID: String, besides: String? = nil, known: Match? = nil, _ state: inout FileState
    ) {
        guard state.memory != nil else { return }
        let record = memory(of: localID)
        let merged = memoriesOfMerged(into: localID, state)
        state.brought.append(record.everBrought)
        state.brought.append(record.held)
        let bytes = pen.written
        let values = known.map { Fields.values($0.fields) } ?? [:]
        for member in pen.members {
            let name = UnsafeRawBufferPointer(rebasing: bytes[member.name])
            if let besides, name.elementsEqual(besides.utf8) { continue }
            let field = record.field(name)
            let bytes = UnsafeRawBufferPointer(rebasing: bytes[member.value])
            let value = field.everBrought(bytes)
            let before = merged.map { $0.field(name).everBrought(bytes) }
            note(said: value, before: before, known: known.flatMap { time(of: name, bytes, $0.record, values) }, &state)
            if Publication.isText(name) { continue }
            state.brought += [field.held, field.everHeld, value]
        }
        noteKeywords(record, &state)
    }

    /// Since when the store has a value that a file says.
    private func time(
        of name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ known: Record, _ values: [ByteName: String]
    ) -> Timestamp? {
        let name = String(decoding: name, as: UTF8.self)
        guard let stored = values[ByteName(name)], value.elementsEqual(stored.utf8) else { return nil }
        return known.fieldTimes[name] ?? known.modifiedAt
    }

    func noteBrought(part raw: UnsafeRawBufferPointer, _ kind: BibBlock.Kind, _ state: inout FileState) {
        guard state.memory != nil else { return }
        let marks = marks(ofPart: Array(raw), kind.rawValue)
        state.brought += [marks.everBrought, marks.held]
    }

    func marks(ofPart raw: [UInt8], _ kind: String) -> Brought.Part {
        Brought.Part(
            store.hasher, shown: BibliographyPart.shown(raw, isText: kind == BibBlock.Kind.text.rawValue))
    }

    /// Takes away what the file has brought before and does not hold any more.
    func mirror(_ state: inout FileState) throws {
        guard let path = state.realPath else { return }
        if let row = state.damagedRow, !state.isDamaged { return noteNotMirrored(state, row) }
        guard !state.isDamaged, state.items.contains(where: { $0.hasPrefix("key:") }) else {
            throw BackupError(
                .refused, state.isDamaged ? "cannot be read in full, so nothing can be mirrored" : "holds no entries",
                at: state.path, remedy: "mend the file, or import it without --mirror")
        }
        try takeOverMoved(to: path, &state)
        let (own, others) = (state.broughtBefore, try store.heldByOthers(than: path))
        let everElsewhere = try otherFiles(than: path, &state).brought
        var publications: [Store.StoredRecord] = []
        try store.forEachLive(type: RecordType.publication) { stored in
            if !state.renamed.contains(stored.record.localID) { publications.append(stored) }
        }
        let refused = try worksNotTaken(state)
        var staying: [(record: Record, fields: [String])] = []
        var lost: [Store.StoredRecord] = []
        for stored in publications {
            let record = memory(of: stored.record.localID)
            // What the file says of this publication. After a merge several of its entries may be this one.
            let ids = try ids(of: stored.record.localID)
            // Before a correction the file said it of another record.
            let before = corrected[stored.record.localID] ?? []
            let memories = ids.filter { $0 == stored.record.localID || before.contains($0) }.map(memory)
            let held = ids.compactMap { state.held[$0] }
            guard !held.isEmpty || own.contains(record.everBrought) else {
                noteLostPart(of: stored.record, ids.filter { !before.contains($0) }, state)
                continue
            }
            let fields = try Fields.parse(stored.record.fields)
            // Two files may have worded a field; the store has the words of one of them.
            let brought = fields.filter { field in
                memories.contains { record in
                    own.contains(record.everBrought(field))
                        || own.contains(record.everHeld(field)) && everElsewhere.contains(record.everBrought(field))
                }
            }
            let merged = ids.map(memory)
            let isOthers = merged.contains { others.contains($0.held) }
            // Told in the import in which the file loses the entry, and not again.
            if !held.isEmpty {
                noteLostPart(of: stored.record, ids.filter { !before.contains($0) }, state)
            } else if isOthers, own.contains(record.held) {
                noteStays(stored.record, .leftOut, Self.inAnotherFile)
            }
            if !held.isEmpty || isOthers {
                let lostEntries = lostEntries(among: ids.filter { !before.contains($0) }, state)
                let dropped = brought.filter { field in
                    Publication.isBibTeXField(field.name)
                        && !held.contains { $0.contains { sameBytes($0.name, field.name) } }
                        && !lostEntries.contains { own.contains($0.everBrought(field)) }
                }
                let stay = dropped.filter { field in merged.contains { others.contains($0.held(field)) } }
                let gone = dropped.filter { !stay.contains($0) }
                let left = try keywordsLeft(
                    fields.filter { !gone.contains($0) }, held, merged, besides: lostEntries, others, state)
                try drop(gone, keywords: left, of: stored, fields, held.first ?? fields, state)
                // Of a whole entry that was said above.
                if !held.isEmpty, stay.contains(where: { own.contains(record.held($0)) }) {
                    staying.append((stored.record, stay.map(\.name).sorted()))
                }
            } else if try !isRefused(stored.record, fields, refused, &state) {
                lost.append(stored)
            }
        }
        try remove(lost, everElsewhere, &state)
        noteFieldsStay(staying)
        try noteOtherPlace(path, state)
        try mirrorParts(state, path)
        notePartsLeftOut(state)
        try notePassedOver(others, &state)
    }

    /// What the file says of a damaged row is not known, and so not which of the others it has lost.
    private func noteNotMirrored(_ state: FileState, _ row: String) {
        noteLeftOut(state)
        intake.note(
            Finding(
                .leftOut, .warning, state.path, "was imported, and nothing was removed: \(row) is damaged in the store",
                remedy: "'backup-tool store repair --from BACKUP' first, then "
                    + "\(TypedCommand.quoted("import --mirror", [state.path]))"))
    }

    /// The id of a publication, and those of others that were merged into it and have not come back since.
    private func ids(of localID: String) throws -> [String] {
        try [localID] + (mergedInto[localID] ?? []).filter { try live($0) == nil }
    }

    /// What the file remembers of entries that it has no more, where it has another one of the publication that they were
    /// merged into. What they brought stays: nobody has said which of the entries is meant.
    private func lostEntries(among ids: [String], _ state: FileState) -> [Brought.Record] {
        guard ids.contains(where: { state.held[$0] != nil }) else { return [] }
        return ids.filter { state.held[$0] == nil && hasBrought($0, state) }.map(memory)
    }

    /// Whether the file has a publication that it lost in a version which the store did not import.
    private func isRefused(
        _ record: Record, _ fields: [Field], _ refused: [(work: WorkIdentity, wasHeld: Bool)], _ state: inout FileState
    ) throws -> Bool {
        let (work, wasHeld) = (WorkIdentity(fields), hasHeld(record.localID, state))
        let version = refused.first { !($0.wasHeld && wasHeld) && work.isCorrected(to: $0.work) }?.work
        guard let version else { return false }
        intake.result.protected += 1
        if isToldFirst(record.localID, &state) { noteRefused(record, hasOtherKey: version.key != work.key, state) }
        return true
    }

    /// Works of the file that the store did not import, because that publication was deleted here later. What the file held at
    /// its last import, too, is an entry beside all others that it held then.
    private func worksNotTaken(_ state: FileState) throws -> [(work: WorkIdentity, wasHeld: Bool)] {
        try state.held.filter { try live($0.key) == nil }.map { (WorkIdentity($0.value), hasHeld($0.key, state)) }
    }

    private func noteRefused(_ record: Record, hasOtherKey: Bool, _ state: FileState) {
        let what =
            hasOtherKey
            ? "under another key, and the publication with that key was deleted here later"
            : "in another version, which was deleted here later"
        intake.note(
            Finding(
                .skipped, .warning, RecordLabel.text(of: record),
                "stays: the file has it \(what)",
                remedy:
                    "\(TypedCommand.quoted("import --mirror --overwrite", [state.path])) takes it as the file has it")
        )
    }

    /// Names a merged publication where the file has lost one of the merged entries since its last import.
    private func noteLostPart(of record: Record, _ ids: [String], _ state: FileState) {
        guard ids.contains(where: { state.held[$0] == nil && hasHeld($0, state) })
        else { return }
        intake.note(
            Finding(
                .leftOut, .warning, RecordLabel.text(of: record),
                "was merged with an entry that is not in the file any more; it stays, with what both have brought",
                remedy: "\(TypedCommand.quoted("store delete", [record.id.description])) removes both"))
    }

    /// Names a publication that a person may want to remove.
    func noteStays(_ record: Record, _ code: Finding.Code, _ reason: String) {
        intake.note(
            Finding(
                code, .warning, RecordLabel.text(of: record), "\(reason); it stays",
                remedy: "\(TypedCommand.quoted("store delete", [record.id.description])) removes it"))
    }

    /// The file is the library: what it says and the store does not take was left out.
    private func notePassedOver(_ others: Brought, _ state: inout FileState) throws {
        let left = try intake.passedOver.keys.filter { try !isAsHeld($0.text, others, &state) }
        guard !left.isEmpty else { return }
        let one = left.count == 1
        let keys = left.compactMap { state.held[$0.text].flatMap { Fields.string(Publication.citeKey, in: $0) } }
            .sorted()
        intake.note(
            Finding(
                .protected, .warning, state.path,
                "\(left.count) \(one ? "record of it is" : "records of it are") not newer than the store's, "
                    + "or deleted there since; \(one ? "it was" : "they were") left out"
                    + (keys.isEmpty ? "" : ": \(Self.list(keys))"),
                remedy:
                    "\(TypedCommand.quoted("import --mirror --overwrite", [state.path])) makes the store say what "
                    + "the file says"))
    }

    /// Whether the store has a record as the file has it, after what the file has lost was removed from it, or an import has
    /// said already that it has not.
    private func isAsHeld(_ localID: String, _ others: Brought, _ state: inout FileState) throws -> Bool {
        let record = try store.records(localID: localID).map(\.record).first { !$0.isDeleted }
        guard let held = state.held[localID] else {
            return record.map { $0.type != RecordType.publication } ?? false
        }
        guard let record else {
            return try isTakenIn(localID, held)
                || isKnownDifference(localID, [], held, isOthers: { _ in false }, &state)
        }
        let (ids, before) = (try ids(of: localID), state.broughtBefore)
        return try isKnownDifference(
            localID, Fields.parse(record.fields), held,
            isOthers: { field in
                ids.contains { id in
                    let memory = memory(of: id)
                    // A merge has taken it from another entry.
                    return others.contains(memory.held(field))
                        || id != localID && before.contains(memory.everBrought(field))
                }
            }, &state)
    }

    /// Whether a living publication has taken in the deleted one that an entry is. A correction in another file says nothing
    /// of this entry.
    private func isTakenIn(_ localID: String, _ entry: [Field]) throws -> Bool {
        let ids = Set(WorkID(bibTeX(entry), hasher).made + [localID])
        return try mergedInto.contains { survivor, taken in
            let merged = ids.subtracting(corrected[survivor] ?? [])
            return try !merged.isDisjoint(with: taken) && live(survivor) != nil
        }
    }

    /// Names fields that the file has lost and another one holds; in the import in which it loses them, and not again.
    private func noteFieldsStay(_ staying: [(record: Record, fields: [String])]) {
        for (record, fields) in staying {
            let isOne = fields.count == 1
            intake.note(
                Finding(
                    .leftOut, .warning, RecordLabel.text(of: record),
                    "\(fields.joined(separator: ", ")) \(isOne ? "is" : "are") not in the file any more, but in another "
                        + "file that was imported; \(isOne ? "it stays" : "they stay")",
                    remedy: "remove \(isOne ? "it" : "them") from that file, too, and import that with --mirror"))
        }
    }

    private func drop(
        _ lost: [Field], keywords: String?, of stored: Store.StoredRecord, _ before: [Field], _ held: [Field],
        _ state: FileState
    ) throws {
        let links = linksLeft(of: stored.record.localID, before, without: lost, state)
        guard !lost.isEmpty || keywords != nil || links != nil, !stored.record.isLocalOnly else { return }
        let gone = lost + (keywords == "" ? before.filter { $0.name == Keywords.field } : [])
        let kept = before.filter { field in !gone.contains { sameBytes($0.name, field.name) } }.map { field in
            field.name == Keywords.field ? keywords.map { Field(Keywords.field, .string($0)) } ?? field : field
        }
        let rest = links.map { RecordFiles.linking($0, in: kept) } ?? kept
        let after = try Publication.derive(merged: rest, local: before, other: held)
        var record = stored.record
        record.fields = Fields.text(after)
        record.modifiedAt = store.timeAfter(stored.record)
        for field in before {
            record.fieldTimes[field.name] = stored.record.fieldTimes[field.name] ?? stored.record.modifiedAt
        }
        let changes = FieldChange.list(from: before, to: after)
        for change in changes { record.fieldTimes[change.name] = change.after == nil ? record.modifiedAt : nil }
        try store.put(record, replacing: stored)
        if try differing(after, held).isEmpty { intake.takeBackPassedOver(record) }
        intake.result.updated += 1
        intake.plan(
            .update, record, id: record.id, changes: changes, reason: "the file does not hold these fields any more")
    }

    /// Macros, comments, groups and text. An export holds those of all files, and any other file its own.
    private func mirrorParts(_ state: FileState, _ path: String) throws {
        var gone: [(stored: Store.StoredRecord, isOthers: Bool)] = []
        var others: [String: Brought] = [:]
        try store.forEachLive(type: RecordType.bibliographyPart) { stored in
            let fields = try stored.record.fieldsWithOneText()
            let (kind, file) = (Fields.string("kind", in: fields) ?? "", BibliographyPart.file(of: fields))
            let isOfOldPlace = file == state.nameAtOldPlace && file != state.name
            guard kind != BibliographyPart.order else {
                return isOfOldPlace ? gone.append((stored, false)) : ()
            }
            guard state.isExport || file == state.name || isOfOldPlace,
                !state.parts.contains(stored.record.localID)
            else { return }
            let marks = marks(ofPart: Publication.writtenBytes(of: fields) ?? [], kind)
            guard state.broughtBefore.contains(marks.everBrought) else { return }
            let held = try others[file] ?? partsHeldByOthers(than: path, of: file)
            others[file] = held
            let isOthers = held.contains(marks.held)
            // Told in the import in which the file loses it, and not again.
            if !isOthers || state.broughtBefore.contains(marks.held) { gone.append((stored, isOthers)) }
        }
        for (stored, isOthers) in gone where !stored.record.isLocalOnly {
            if isOthers {
                noteStays(stored.record, .leftOut, Self.inAnotherFile)
                continue
            }
            intake.plan(.remove, stored.record, id: stored.record.id, reason: "the file does not hold it any more")
            intake.result.removed += 1
            try store.bury(stored)
        }
    }

    /// Files have parts of their own; only exports, and copies of one file, share them.
    private func partsHeldByOthers(than path: String, of file: String) throws -> Brought {
        try store.heldByOthers(than: path) { name in
            let name = BibliographyPart.fileName(name)
            return name == file || name.hasPrefix(BibliographyPart.exported)
        }
    }

    private static let inAnotherFile = "is not in the file any more, but in another file that was imported"
}
