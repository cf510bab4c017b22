/// What other records and the list of batches say of purged records and files: cite keys and paths.
extension Purge {
    mutating func removeMentions() throws {
        keys = try store.withoutLivingKeys(keys.union(forgottenKeys()))
        try store.markPurged(citeKeys: keys)
        try removeKeysFromOrders()
        try removeConflictsOfFiles()
        try removeNamesFromBatches()
    }

    /// The keys in orders of which the store has no version: their works were deleted on another device, or long ago.
    private func forgottenKeys() throws -> Set<String> {
        var listed: Set<String> = []
        var known: Set<String> = []
        func note(_ text: String) throws {
            guard let fields = try store.ifReadable({ try Fields.parse(text) }) else { return }
            listed.formUnion(BibliographyPart.keys(in: fields))
            if let key = Fields.string(Publication.citeKey, in: fields) { known.insert(key) }
        }
        try store.forEachLive(type: RecordType.bibliographyPart) { try note($0.record.fields) }
        for table in ["batch_record", "ancestor"] {
            let query = try store.database.prepare("SELECT fields FROM \(table) WHERE fields <> '{}'")
            while try query.step() { try note(query.text(0)) }
        }
        try store.forEachLive(type: Quarantine.type) { stored in
            guard let inside = try store.ifReadable({ try Quarantine.content(of: stored.record) }) else { return }
            if let inside { try note(inside.fields) }
        }
        return listed.subtracting(known)
    }

    /// The order of a file lists the cite keys of its entries.
    private func removeKeysFromOrders() throws {
        guard !keys.isEmpty else { return }
        try removeKeysFromOrdersInQuarantine()
        for (old, fields) in try store.orders(withoutKeys: keys) {
            var record = old.record
            record.fields = fields
            record.modifiedAt = store.timeAfter(record)
            if record.fieldTimes["items"] != nil { record.fieldTimes["items"] = record.modifiedAt }
            // Still what its import has brought, so that an undo of that import finds it.
            try store.rewrite(old, as: record)
        }
        try removeKeysFromOldOrders()
    }

    private func removeKeysFromOrdersInQuarantine() throws {
        var changed: [(old: Store.StoredRecord, fields: String)] = []
        try store.forEachLive(type: Quarantine.type) { stored in
            if let fields = try withoutKeys(envelope: stored.record.fields) { changed.append((stored, fields)) }
        }
        for (old, fields) in changed {
            var record = old.record
            record.fields = fields
            try store.rewrite(old, as: record)
        }
    }

    private func removeKeysFromOldOrders() throws {
        for table in ["batch_record", "ancestor"] {
            let query = try store.database.prepare(
                "SELECT DISTINCT fields FROM \(table) WHERE instr(fields, '\"items\"')")
            var changed: [(old: String, new: String)] = []
            while try query.step() {
                let fields = query.text(0)
                if let new = try withoutKeys(fields) ?? withoutKeys(envelope: fields) { changed.append((fields, new)) }
            }
            if changed.isEmpty { continue }
            let sound = table == "ancestor" ? try store.soundAncestors() : []
            for (old, new) in changed {
                try store.database.statement(
                    "UPDATE \(table) SET fields = ?, row_hash = NULL WHERE fields = ?"
                ).bind(1, new).bind(2, old).run()
            }
            if !sound.isEmpty { try store.sealAncestors(sound) }
        }
    }

    private func withoutKeys(_ text: String) throws -> String? {
        try store.ifReadable { try BibliographyPart.fields(text, withoutKeys: keys) } ?? nil
    }

    /// The same for an order in quarantine.
    private func withoutKeys(envelope text: String) throws -> String? {
        guard var inside = try store.ifReadable({ try Quarantine.content(ofEnvelope: text) }) ?? nil,
            let fields = try withoutKeys(inside.fields)
        else { return nil }
        inside.fields = fields
        return try Quarantine.envelope(of: inside).fields
    }

    /// A conflict of files names them.
    private mutating func removeConflictsOfFiles() throws {
        var gone: Set<RecordID> = []
        for conflict in try store.conflictsOfFiles()
        where !Set(result.files).isDisjoint(with: [conflict.existing, conflict.incoming]) {
            let id = conflict.recordID
            gone.insert(id)
            if let stored = try store.record(id) { try store.bury(stored) }
            try store.dropAncestor(id)
        }
        _ = try clearHistory { gone.contains($0.id) }
    }

    /// `undo --list` shows what a decision was about, and which files were adopted.
    private func removeNamesFromBatches() throws {
        for batch in try store.batches() {
            for kind in ["resolve", "adopt"] where batch.kind == kind || batch.source.hasPrefix("\(kind) of ") {
                let names = kind == "adopt" ? Set(result.files) : keys.union(result.files)
                guard names.contains(where: { batch.source.contains($0) }) else { continue }
                let prefix = batch.kind == kind ? "" : "\(kind) of "
                let choice = kind == "adopt" ? nil : batch.source.lastIndex(of: "(").map { " \(batch.source[$0...])" }
                try store.database.statement("UPDATE batch SET source = ? WHERE id = ?")
                    .bind(1, "\(prefix)a purged record\(choice ?? "")").bind(2, batch.id).run()
            }
        }
    }
}

extension Store {
    /// Those of the cite keys that no living publication has.
    fileprivate func withoutLivingKeys(_ keys: Set<String>) throws -> Set<String> {
        var keys = keys
        try forEachLive(type: RecordType.publication) { stored in
            if let key = CiteKeys.key(of: stored.record) { keys.remove(key) }
        }
        return keys
    }
}
