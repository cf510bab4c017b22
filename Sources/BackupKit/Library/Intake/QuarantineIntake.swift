/// Into quarantine.
extension Intake {
    /// Puts a version aside that the store does not show just so. Nothing that the store shows is touched.
    func putAside(_ record: Record) throws -> Outcome {
        if record.isDeleted {
            // A quarantine takes nothing away.
            result.unchanged += 1
            return Outcome(id: record.id, localID: record.localID, decision: .unchanged)
        }
        let planned = try store.decision(on: record)
        if planned.decision == .unchanged {
            result.unchanged += 1
            try heard(record, planned)
            return planned
        }
        // A purge removes versions from quarantine, too.
        if try isPurged(record, planned) {
            let outcome = Outcome(id: planned.id, localID: planned.localID, decision: .protect(.purged))
            try count(record, outcome)
            try heard(record, outcome)
            return outcome
        }
        var files: [ByteName: SHA256Digest] = [:]
        for path in try Store.links(of: record) {
            files[ByteName(path)] = backupLinks?.digest(of: path)
        }
        let envelope = try Quarantine.envelope(of: record, files: files)
        let isKnown = try store.record(envelope.id)?.record.isDeleted == false
        if isKnown {
            result.unchanged += 1
        } else {
            _ = try store.ingest(envelope)
            result.quarantined += 1
            plan(.quarantine, record, id: envelope.id, reason: reason(planned.decision))
        }
        let outcome = Outcome(id: envelope.id, localID: envelope.localID, decision: .protect(.quarantined))
        try heard(record, outcome)
        return outcome
    }

    private func reason(_ decision: Decision) -> String {
        switch decision {
        case .protect(let reason): reason.rawValue
        case .update: "differs from the one in the store"
        case .add, .unchanged: "is not in the store"
        }
    }

    /// The path that a file has in quarantine.
    static func quarantined(_ path: String) -> String { "\(Quarantine.zone)/\(path)" }

    /// The file as one that stays here under a name of its own; nil when the store has it already under its name.
    func aside(_ asset: Asset) throws -> Asset? {
        if let known = try store.asset(asset.path), known.digest == asset.digest, try store.isInPlace(known) {
            return nil
        }
        return Asset(
            path: Self.quarantined(asset.path), size: asset.size, digest: asset.digest, isLocalOnly: true,
            modifiedNanoseconds: asset.modifiedNanoseconds)
    }
}

/// Out of quarantine.
extension Quarantine {
    /// Gives local-only records back to the cloud. What comes out of quarantine becomes the newest version of its record,
    /// in one step that can be undone, with the files that it links.
    public static func enableCloud(_ ids: [String], in store: Store, dryRun: Bool = false) throws -> Store.Curated {
        let envelopes = try ids.map { try envelope(named: $0, in: store) }
        guard envelopes.contains(where: { $0 != nil }) else {
            return try store.curate(.enableCloud, ids, dryRun: dryRun)
        }
        return try store.withIncomingFolder { folder in
            let (released, batch) = try store.batch(
                kind: "release", source: ids.joined(separator: ", "), dryRun: dryRun
            ) {
                let released = try zip(ids, envelopes).map { text, envelope in
                    try envelope.map { try release($0, in: store, folder) } ?? store.giveBack(text)
                }
                return (released, summary: JSON.object([JSON.Member("released", JSON(released.count))]).compact)
            }
            return Store.Curated(ids: released, batch: batch?.id, findings: store.fileFindings)
        }
    }

    /// The one envelope that a person means: by its own name, or by what the record in it is called.
    private static func envelope(named text: String, in store: Store) throws -> Record? {
        var found: [Record] = []
        try store.forEachLive(type: type) { stored in
            let record = stored.record
            if sameBytes(record.localID, text) || record.id.description == text { found = [record] }
        }
        if let exact = found.first { return exact }
        // A record that is alive under this name is meant first.
        guard try !store.find(text).contains(where: { !$0.isDeleted }) else { return nil }
        try store.forEachLive(type: type) { stored in
            guard let inside = try content(of: stored.record) else { return }
            if [inside.localID, inside.id.name, inside.id.description].contains(where: { sameBytes($0, text) }) {
                found.append(stored.record)
            }
        }
        guard found.count < 2 else {
            let names = found.map(\.id.description).joined(separator: ", ")
            throw BackupError(
                .failed, "is in quarantine in more than one version: \(names)", at: text, remedy: "name one of them")
        }
        return found.first
    }

    private static func release(_ envelope: Record, in store: Store, _ folder: String) throws -> RecordID {
        guard let record = try content(of: envelope) else {
            throw BackupError(.damaged, "holds no record", at: envelope.id.description)
        }
        if let finding = SchemaVersion.finding(about: record) {
            throw BackupError(.refused, finding.message, at: finding.subject, remedy: finding.remedy)
        }
        let files = ReleasedFiles(store, folder, digests: try files(of: envelope))
        let linked = try files.linked(by: record)
        let outcome = try store.release(linked, derive: Intake.derive)
        if case .protect(let reason) = outcome.decision {
            throw BackupError(
                .refused, reason.rawValue, at: outcome.id.description,
                remedy: reason == .purged ? Intake.howPurgedReturn(outcome.id) : nil)
        }
        try store.remove(envelope.id)
        return outcome.id
    }
}
