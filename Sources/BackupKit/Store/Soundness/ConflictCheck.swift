/// A record of a conflict that cannot be decided as it is. One whose work was deleted is not among them: it comes back with
/// the work.
struct OddConflict {
    enum Defect {
        /// Nobody can name it.
        case hasNoNumber
        case hasSeveralNumbers
        /// It does not say which two works clash.
        case namesNoWorks
        /// Neither work is in the store, not even deleted.
        case worksAreUnknown
        /// The same, before the first sync has come to its end.
        case worksMayCome
        case decisionIsUnknown
    }

    let id: RecordID
    let defect: Defect

    var finding: Finding {
        let (message, remedy) =
            switch defect {
            case .hasNoNumber:
                ("the conflict has no number, so 'backup-tool conflicts list' does not show it", StoreRemedy.repair)
            case .hasSeveralNumbers: ("the conflict has several numbers", StoreRemedy.repair)
            case .namesNoWorks:
                (
                    "the conflict does not say which two works clash",
                    "\(TypedCommand.quoted("store delete", ["\(id)"])) removes it on all devices"
                )
            case .worksAreUnknown:
                (
                    "the store has neither of the two works of the conflict",
                    "'backup-tool store repair' removes it from this store only; there is no undo"
                )
            case .worksMayCome:
                (
                    "the works of the conflict are not here yet: the first sync did not finish",
                    "'backup-tool sync' brings them"
                )
            case .decisionIsUnknown:
                (
                    "the conflict has a decision that this version of backup-tool does not know, so it waits",
                    "'backup-tool conflicts list' shows it"
                )
            }
        return Finding(.conflict, .warning, "\(id)", message, remedy: remedy)
    }
}

extension Store {
    func oddConflicts() throws -> [OddConflict] {
        var numbers: [RecordID: Int] = [:]
        let rows = try database.prepare(
            "SELECT record_zone, record_name FROM conflict_number NOT INDEXED")
        while try rows.step() {
            numbers[RecordID(zone: rows.text(0), name: rows.text(1)), default: 0] += 1
        }
        var conflicts: [StoredRecord] = []
        try forEachLive(type: RecordType.conflict) { conflicts.append($0) }
        return try conflicts.flatMap { stored in
            let record = stored.record
            let count = numbers[record.id] ?? 0
            let defects = [
                count == 0 ? .hasNoNumber : nil, count > 1 ? .hasSeveralNumbers : nil,
                try defect(of: stored),
            ]
            return defects.compactMap(\.self).map { OddConflict(id: record.id, defect: $0) }
        }
    }

    private func defect(of stored: StoredRecord) throws -> OddConflict.Defect? {
        let record = stored.record
        guard let conflict = try Conflict(record) else {
            return .namesNoWorks
        }
        if !conflict.isDecided, !Conflict.isUndecided(record) { return .decisionIsUnknown }
        // What is held may bring a work with the next sync.
        let mayCome =
            try database.integer(
                "SELECT EXISTS (SELECT 1 FROM held WHERE kind IN ('damaged', 'missing', 'newer'))") != 0
        if try mayCome || isKnown(conflict.existing, conflict) || isKnown(conflict.incoming, conflict) { return nil }
        // What the hub has is not for this store to judge: others have the works.
        guard try hubVersion(stored.change) != nil else { return .worksAreUnknown }
        return try hubLink()?.syncedAt == nil ? .worksMayCome : nil
    }

    /// Whether the store has a work, in whatever state, or may have it again after an undo.
    private func isKnown(_ work: String, _ conflict: Conflict) throws -> Bool {
        let query = try database.prepare(
            conflict.isAboutAssets
                ? """
                SELECT 1 FROM asset WHERE path = ?1 UNION ALL SELECT 1 FROM batch_asset WHERE path = ?1
                UNION ALL SELECT 1 FROM asset_sync WHERE path = ?1
                """
                : """
                SELECT 1 FROM record WHERE type = 'Publication' AND ?1 IN (local_id, name)
                UNION ALL SELECT 1 FROM batch_record WHERE type = 'Publication' AND ?1 IN (local_id, name)
                """
        ).bind(1, work)
        return try query.step()
    }

    /// Gives each conflict one number. Must run inside `write`, and before SQLite makes its indexes again.
    func removeSurplusNumbers() throws {
        try database.execute(
            """
            DELETE FROM conflict_number WHERE id NOT IN
            (SELECT min(id) FROM conflict_number NOT INDEXED GROUP BY +record_zone, +record_name)
            """)
    }
}
