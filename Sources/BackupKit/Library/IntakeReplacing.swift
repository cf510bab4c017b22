/// What `--mode replace` takes out: what the backup does not have.
extension Intake {
    /// `--mode replace`: attachments that the backup does not have go, before others take names that may fall together
    /// with theirs. What is in quarantine stays, and what records name that stay: those of kinds that are not replaced, and
    /// those that are kept on this device only. So does a file of the backup that lies beside one of those.
    func removeOtherAssets(than files: [Asset], _ others: [String], replacing kinds: Set<Kind>) throws {
        let wanted = Set(try (others + files.map(\.path) + filesBesideStaying(files)).map(ByteName.init))
        var unwanted: [Asset] = []
        var links = LivingLinks(store) { $0.isLocalOnly || !kinds.contains(Kind(recordType: $0.type)) }
        let kept = try store.keptChanges()
        try store.forEachAsset { asset in
            guard !asset.path.hasPrefix(Self.quarantined("")), !wanted.contains(ByteName(asset.path)),
                !kept.contains(ByteName(asset.path)), try !links.contains(asset.path)
            else { return }
            unwanted.append(asset)
        }
        for asset in unwanted {
            try store.removeAsset(asset)
            result.attachmentsRemoved += 1
            plan(.remove, file: asset, reason: "not in the backup")
        }
    }

    /// The names of a backup's files whose paths belong to records that are kept on this device only.
    private func filesBesideStaying(_ files: [Asset]) throws -> [String] {
        var links = LivingLinks(store) { $0.isLocalOnly }
        return try files.compactMap { file in
            guard try links.contains(file.path), let known = try store.ifSound({ try store.asset(file.path) }) ?? nil,
                known.digest != file.digest, case .known(let path) = try store.nameBesideAnother(file)
            else { return nil }
            return path
        }
    }

    /// The second half of `--mode replace`: records that the backup does not have go. Local-only records stay.
    func removeOthers(kinds: Set<Kind>) throws {
        var others: [Record] = []
        try store.forEachStored(order: .change) { stored in
            let record = stored.record
            if unsoundRows?.isUnsound(stored) == true { return }
            guard kinds.contains(Kind(recordType: record.type)), !record.isDeleted, !touched.contains(record.id) else {
                return
            }
            others.append(record)
        }
        var gone: [String] = []
        for record in others {
            // It goes with its works, and one that was found just now is in no backup.
            if record.type == RecordType.conflict { continue }
            if record.isLocalOnly {
                result.protected += 1
                plan(.protect, record, id: record.id, reason: Protection.localOnly.rawValue)
                continue
            }
            // Another record was merged into it, and stays deleted.
            if result.stayedDeleted > 0, try store.holdsAlone(record) {
                result.protected += 1
                plan(.protect, record, id: record.id, reason: Protection.hasTakenIn.rawValue)
                noteLeft(
                    record.id,
                    "is not in the backup, but was left: another record that stays deleted was merged into it")
                continue
            }
            // The backup has the work under another id, and that one stays deleted.
            if try isOnlyOneLeft(record) {
                result.protected += 1
                plan(.protect, record, id: record.id, reason: "the backup's record of the same work stays deleted")
                noteLeft(
                    record.id, "is not in the backup, but was left: the backup's record of the same work stays deleted",
                    resurrected: "that one")
                continue
            }
            try store.remove(record.id)
            result.removed += 1
            plan(.remove, record, id: record.id)
            if record.type == RecordType.publication, try store.soundRecords(localID: record.localID).isEmpty {
                gone.append(record.localID)
            }
        }
        guard kinds.contains(.publications) else { return }
        // Whatever gets such an id from now on is another work than the one that a file has brought.
        try store.noteBrought(gone, areThere: false)
        for conflict in try store.pointlessConflicts() where !touched.contains(conflict) { try store.remove(conflict) }
    }

    private func isOnlyOneLeft(_ record: Record) throws -> Bool {
        guard !worksThatStayDeleted.isEmpty, record.type == RecordType.publication else { return false }
        let work = try WorkID(record)
        return work.all.contains { id in
            worksThatStayDeleted[id, default: []].contains { $0.verdict(work.identity) == .same }
        }
    }

    /// Replaces the postponed records. Must run after all other records of the backup.
    func takePostponed() throws {
        for record in postponed {
            var outcome = try put(record)
            if outcome.decision == .protect(.hasTakenIn) {
                let known = try store.record(outcome.id)?.record
                if let known, record.hasTakenIn(unknownTo: known) {
                    // Either version alone would lose a record that was merged into the other.
                    outcome = try store.ingest(record, keepsID: true, derive: Intake.derive)
                    noteLeft(outcome.id, "was merged with the backup's version: each has taken in another record")
                } else {
                    noteLeft(
                        outcome.id,
                        "was left as it is: another record was merged into it, and the backup's version would lose that one"
                    )
                }
            }
            try noteOutcome(record, outcome)
        }
        postponed = []
    }

    private func noteLeft(_ id: RecordID, _ message: String, resurrected: String = "both") {
        note(
            Finding(
                .protected, .warning, id.description, message,
                remedy: "'backup-tool restore BACKUP --mode replace --resurrect' brings \(resurrected) back"))
    }
}
