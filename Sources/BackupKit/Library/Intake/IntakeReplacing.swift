/// What `--mode replace` knows of the records that were judged.
struct RecordsReplaced {
    /// Records of the store that stay as they are, whatever the backup's version says.
    var left: Set<RecordID> = []
    /// Records that are the store's version and the backup's, merged.
    var joined: Set<RecordID> = []
    /// Records that are taken last: others were merged into the store's versions of them, or deleted because these stay,
    /// and the backup may bring those others back.
    var postponed: [Record] = []
    var takesPostponed = false
    /// Files that were taken away because the backup does not have them.
    var filesRemoved: Set<ByteName> = []
    /// The local ids of records that the backup has and that stay deleted.
    private(set) var stayDeleted: Set<ByteName> = []
    /// Such works, by each id that they may have. No other record of them is removed.
    private(set) var worksThatStayDeleted: [String: [WorkIdentity]] = [:]

    mutating func noteStaysDeleted(_ record: Record) {
        stayDeleted.insert(ByteName(record.localID))
        guard record.type == RecordType.publication, let work = try? WorkID(record) else { return }
        for id in work.all { worksThatStayDeleted[id, default: []].append(work.identity) }
    }
}

/// What `--mode replace` takes out: what the backup does not have.
extension Intake {
    /// `--mode replace`: attachments that the backup does not have go, before others take names that may fall together
    /// with theirs. What is in quarantine stays, and what records name that stay. So does a file of the backup that lies
    /// beside one of those.
    func removeOtherAssets(than files: [Asset], _ others: [String]) throws {
        let wanted = Set(try (others + files.map(\.path) + filesBesideRemaining(files)).map(ByteName.init))
        var unwanted: [Asset] = []
        let kept = try store.keptChanges()
        try store.forEachAsset { asset in
            guard !asset.path.hasPrefix(Self.quarantined("")), !wanted.contains(ByteName(asset.path)),
                !kept.contains(ByteName(asset.path)), !remaining.all.contains(ByteName(asset.path))
            else { return }
            unwanted.append(asset)
        }
        for asset in unwanted {
            try store.removeAsset(asset)
            replacing.filesRemoved.insert(ByteName(asset.path))
            result.attachmentsRemoved += 1
            plan(.remove, asset.path, reason: "not in the backup")
        }
    }

    /// The names that a backup's files have here where records that stay name files under their paths, or under paths that
    /// fall together with these.
    private func filesBesideRemaining(_ files: [Asset]) throws -> [String] {
        var names = EntryNameSet()
        for path in remaining.own where try store.hasAsset(path.text) { _ = try? names.insert(path.text) }
        return try files.compactMap { file in
            if remaining.own.contains(ByteName(file.path)) {
                let known = try store.ifSound { try store.asset(file.path) } ?? nil
                guard known?.digest != file.digest, case .known(let path) = try store.nameBesideAnother(file) else {
                    return nil
                }
                return path
            }
            return names.isTaken(file.path) ? try store.knownApart(file) : nil
        }
    }

    /// The store was to become what the backup says, and does not say all of it.
    func noteStaysDeleted(of backup: String) {
        let count = result.stayedDeleted - result.stayedPurged
        guard resurrects == nil, policy == .honor, count > 0 else { return }
        let isOne = count == 1
        note(
            Finding(
                .protected, .warning, backup,
                "\(count) \(isOne ? "record of it stays" : "records of it stay") deleted, because the "
                    + "\(isOne ? "delete is" : "deletes are") newer",
                remedy: "\(TypedCommand.quoted("restore --mode replace --resurrect", [backup])) "
                    + "brings \(isOne ? "it" : "them") back"))
    }

    /// The second half of `--mode replace`: records that the backup does not have go. Local-only records stay. Its orders of
    /// files are taken when their entries have gone.
    func removeOthers(kinds: Set<Kind>) throws {
        var others: [Record] = []
        try store.forEachStored(order: .change) { stored in
            let record = stored.record
            if unsoundRows?.isUnsound(stored) == true { return }
            guard kinds.contains(record.kind), !record.isDeleted, !touched.contains(record.id) else {
                return
            }
            others.append(record)
        }
        var gone: [String] = []
        for record in others where !BibliographyPart.isOrder(record) { try removeOther(record, &gone) }
        try takeOrders()
        for record in others where BibliographyPart.isOrder(record) && !touched.contains(record.id) {
            try removeOther(record, &gone)
        }
        guard kinds.contains(.publications) else { return }
        // Whatever gets such an id from now on is another work than the one that a file has brought.
        try store.noteBrought(gone, areThere: false)
        for conflict in try store.pointlessConflicts() where !touched.contains(conflict) { try store.remove(conflict) }
    }

    /// `gone`: gets the local id of a publication that went.
    private func removeOther(_ record: Record, _ gone: inout [String]) throws {
        func leave(_ reason: String, because message: String? = nil) {
            result.protected += 1
            plan(.protect, record, id: record.id, reason: reason)
            if let message { noteLeft(record.id, "is not in the backup, but was left: \(message)", .returnsInstead) }
        }
        // It goes with its works, and one that was found just now is in no backup.
        if record.type == RecordType.conflict { return }
        if record.isLocalOnly { return leave(Protection.localOnly.rawValue) }
        if result.stayedDeleted > 0, try store.holdsAlone(record) {
            return leave(
                Protection.hasTakenIn.rawValue, because: "another record that stays deleted was merged into it")
        }
        if record.keptInstead().keys.contains(where: { replacing.stayDeleted.contains(ByteName($0)) }) {
            return leave(
                Protection.keptInstead.rawValue,
                because: "a decision has kept it and deleted another record instead, which stays deleted")
        }
        // The backup has the work under another id.
        if try isOnlyOneLeft(record) {
            let reason = "the backup's record of the same work stays deleted"
            return leave(reason, because: reason)
        }
        try store.remove(record.id)
        result.removed += 1
        plan(.remove, record, id: record.id)
        if record.type == RecordType.publication, try store.soundRecords(localID: record.localID).isEmpty {
            gone.append(record.localID)
        }
    }

    private func isOnlyOneLeft(_ record: Record) throws -> Bool {
        guard !replacing.worksThatStayDeleted.isEmpty, record.type == RecordType.publication else { return false }
        let work = try WorkID(record)
        return work.all.contains { id in
            replacing.worksThatStayDeleted[id, default: []].contains { $0.verdict(work.identity) == .same }
        }
    }

    /// A work that a decision has kept is taken last: whether it goes on to link the files of another one depends on whether
    /// that one comes back.
    func postponed(_ record: Record) throws -> Outcome? {
        guard !replacing.takesPostponed, !record.isDeleted,
            let known = try store.ifSound({ try store.record(record.id) }) ?? nil,
            !known.record.keptInstead(unknownTo: record).isEmpty
        else { return nil }
        return Outcome(id: record.id, localID: known.record.localID, decision: .protect(.hasTakenIn))
    }

    /// Replaces the postponed records. Must run after all other records of the backup.
    func takePostponed() throws {
        replacing.takesPostponed = true
        defer { replacing.takesPostponed = false }
        for record in replacing.postponed {
            var outcome = try put(record)
            if outcome.decision == .protect(.hasTakenIn) {
                let known = try store.record(outcome.id)?.record
                let advice = known.map { backupsVersion(of: $0, record) } ?? .deleteFirst
                if let known, record.hasTakenIn(unknownTo: known) {
                    // Either version alone would lose a record that was merged into the other.
                    outcome = try store.ingest(record, keepsID: true, derive: Intake.derive)
                    replacing.joined.insert(outcome.id)
                    noteLeft(
                        outcome.id, "was merged with the backup's version: each has taken in another record", advice)
                } else {
                    noteLeft(
                        outcome.id,
                        "was left as it is: another record was merged into it, and the backup's version would lose that one",
                        advice)
                }
            }
            try noteOutcome(record, outcome)
        }
        replacing.postponed = []
    }

    /// What somebody has to type who wants the backup's version of a record that was left.
    private enum WayBack {
        /// The backup has the deleted record alive, and not the one that was left.
        case returnsInstead
        /// The backup has both alive.
        case bothReturn
        /// The backup does not have what was merged into the record.
        case deleteFirst
    }

    /// Whether the backup has alive all that `known` has taken in and `version` knows nothing of.
    private func backupsVersion(of known: Record, _ version: Record) -> WayBack {
        let unknown = known.takenIn.filter { $0.value > version.fieldTimes[$0.key] ?? .distantPast }.keys
        let areInBackup = unknown.allSatisfy {
            replacing.stayDeleted.contains(ByteName(String($0.dropFirst(Record.takenInMark.count))))
        }
        return areInBackup ? .bothReturn : .deleteFirst
    }

    private func noteLeft(_ id: RecordID, _ message: String, _ way: WayBack) {
        let restore = "'backup-tool restore BACKUP --mode replace --resurrect'"
        let remedy =
            switch way {
            case .returnsInstead: "\(restore) brings that one back and removes this one"
            case .bothReturn: "\(restore) brings both back as the backup has them"
            case .deleteFirst:
                "to have the backup's version instead, which is without that one: "
                    + "\(TypedCommand.quoted("store delete", [id.description])), then \(restore)"
            }
        note(Finding(.protected, .warning, id.description, message, remedy: remedy))
    }
}
