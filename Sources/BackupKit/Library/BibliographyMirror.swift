/// `import --mirror`: the file is the library. What it has brought, and does not hold any more, goes; what other files have
/// brought, and what somebody has written elsewhere, stays.
extension BibliographyIntake {
    /// Notes what the entry that the pen has written brings.
    func noteBrought(by key: String, _ state: inout FileState) throws {
        guard state.realPath != nil else { return }
        let start = store.hasher.text(key)
        state.brought.append(Int64(bitPattern: start))
        let bytes = pen.written
        var scanner = JSONScanner(bytes)
        try scanner.forEachMember { name, _, value in
            let hash = store.hasher.text(UnsafeRawBufferPointer(rebasing: bytes[name]), after: start)
            state.brought.append(
                Int64(bitPattern: store.hasher.text(UnsafeRawBufferPointer(rebasing: bytes[value]), after: hash)))
        }
    }

    func noteBrought(part raw: UnsafeRawBufferPointer, _ state: inout FileState) {
        guard state.realPath != nil else { return }
        state.brought.append(hash(ofPart: raw))
    }

    private func hash(ofPart raw: UnsafeRawBufferPointer) -> Int64 {
        Int64(bitPattern: store.hasher.text(raw, after: store.hasher.text("part")))
    }

    private func hash(_ key: String, _ field: Field) -> Int64 {
        let name = store.hasher.text(field.name, after: store.hasher.text(key))
        return Int64(bitPattern: store.hasher.text(field.value, after: name))
    }

    /// Takes away what the file has brought before and does not hold any more.
    func mirror(_ state: FileState) throws {
        guard let path = state.realPath else { return }
        guard !state.isDamaged, state.items.contains(where: { $0.hasPrefix("key:") }) else {
            throw BackupError(
                .refused, state.isDamaged ? "cannot be read in full, so nothing can be mirrored" : "holds no entries",
                at: state.path, remedy: "mend the file, or import it without --mirror")
        }
        let (own, others) = (try store.brought(by: path), try store.brought(by: path, others: true))
        var publications: [Store.StoredRecord] = []
        try store.forEachLive(type: RecordType.publication) { stored in
            if !state.renamed.contains(stored.record.localID) { publications.append(stored) }
        }
        for stored in publications {
            let fields = try Fields.parse(stored.record.fields)
            let key = Fields.string(Publication.citeKey, in: fields) ?? ""
            let mark = Int64(bitPattern: store.hasher.text(key))
            let held = state.held[stored.record.localID]
            guard held != nil || own.contains(mark) else { continue }
            let gone = fields.filter { field in
                Publication.isBibTeXField(field.name) && held?.contains { $0.name == field.name } != true
                    && own.contains(hash(key, field)) && !others.contains(hash(key, field))
            }
            if let held {
                try drop(gone, of: stored, fields, held)
            } else if others.contains(mark) {
                try drop(gone, of: stored, fields, fields)
            } else {
                try remove(stored, isUntouched: gone.count == fields.count { Publication.isBibTeXField($0.name) })
            }
        }
        try mirrorParts(state, own)
    }

    /// Removes an entry that the file has lost, unless somebody has written something into it elsewhere.
    private func remove(_ stored: Store.StoredRecord, isUntouched: Bool) throws {
        let id = stored.record.id
        guard isUntouched, !stored.record.isLocalOnly else {
            intake.result.protected += 1
            return intake.note(
                Finding(
                    .skipped, .warning, RecordLabel.text(of: stored.record),
                    stored.record.isLocalOnly
                        ? "is not in the file any more, but is kept on this device only; it stays"
                        : "is not in the file any more, but was changed elsewhere since; it stays",
                    remedy: "'backup-tool store delete' removes it"))
        }
        intake.plan(.remove, stored.record, id: id, reason: "the file does not hold it any more")
        intake.result.removed += 1
        try store.bury(stored)
    }

    private func drop(_ gone: [Field], of stored: Store.StoredRecord, _ before: [Field], _ held: [Field]) throws {
        guard !gone.isEmpty, !stored.record.isLocalOnly else { return }
        let rest = before.filter { field in !gone.contains { $0.name == field.name } }
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
        intake.result.updated += 1
        intake.plan(
            .update, record, id: record.id, changes: changes, reason: "the file does not hold these fields any more")
    }

    /// Macros, comments, groups and text.
    private func mirrorParts(_ state: FileState, _ own: Set<Int64>) throws {
        let items = Set(state.items)
        var gone: [Store.StoredRecord] = []
        try store.forEachLive(type: RecordType.bibliographyPart) { stored in
            let fields = try Fields.parse(stored.record.fields)
            guard Fields.string("kind", in: fields) != BibliographyPart.order,
                Fields.string("file", in: fields) == state.name,
                !items.contains(BibliographyPart.item + stored.record.localID),
                try Publication.bytes(of: fields).withUnsafeBytes({ own.contains(hash(ofPart: $0)) })
            else { return }
            gone.append(stored)
        }
        for stored in gone where !stored.record.isLocalOnly {
            intake.plan(.remove, stored.record, id: stored.record.id, reason: "the file does not hold it any more")
            intake.result.removed += 1
            try store.bury(stored)
        }
    }
}
