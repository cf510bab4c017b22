extension Store {
    /// What waits for a decision, in the order of the numbers.
    public func conflicts() throws -> [Conflict] {
        let all = try knownConflicts()
        // One of this device alone, and one that has come since, can speak of the same two works.
        var seen = Set(try all.filter(isSettled).map(Pair.init))
        return try all.filter { try !seen.contains(Pair($0)) && pointless($0) == nil && seen.insert(Pair($0)).inserted }
    }

    /// Whether somebody has decided about its works, in this record or in another one about them.
    func isDecided(_ conflict: Conflict) throws -> Bool {
        try isSettled(conflict)
            || knownConflicts().contains { try Pair($0) == Pair(conflict) && isSettled($0) }
    }

    /// Whether what this record says is decided is about its works as they are now.
    private func isSettled(_ conflict: Conflict) throws -> Bool {
        guard conflict.isDecided, let decision = conflict.fileDecision else { return conflict.isDecided }
        return try counts(decision, at: [conflict.existing, conflict.incoming])
    }

    /// The conflict of this number, also one that is decided or pointless.
    public func conflict(_ id: Int64) throws -> Conflict? { try knownConflicts().first { $0.id == id } }

    /// Records of conflicts whose works are gone, or do not clash any more.
    func pointlessConflicts() throws -> [RecordID] {
        try knownConflicts().filter { try pointless($0) != nil }.map(\.recordID)
    }

    /// Makes conflicts of this device alone everybody's, decided or not, once both works are: else no other device would
    /// hear of the decision. Must run inside `write`.
    func shareConflicts() throws {
        for conflict in try knownConflicts() where conflict.recordID.name.hasPrefix(Conflict.localPrefix) {
            guard try isEverybodys(conflict), let local = try record(conflict.recordID) else { continue }
            try share(local, conflict)
        }
    }

    /// Whether every device knows both works. Of a publication that was deleted, all have the tombstone.
    private func isEverybodys(_ conflict: Conflict) throws -> Bool {
        let works = [conflict.existing, conflict.incoming]
        if try conflictPlace(conflict.kind, works[0], works[1]).isLocalOnly { return false }
        if conflict.isAboutAssets { return try pointless(conflict) == nil }
        return try works.allSatisfy { work in
            if let living = try livePublication(work) { return !living.record.isLocalOnly }
            return try record(RecordID(zone: conflict.recordID.zone, name: work))?.record.isDeleted == true
        }
    }

    func moveConflicts(of old: String, to new: String) throws {
        for conflict in try knownConflicts(with: old) where !conflict.isAboutAssets {
            guard let stored = try record(conflict.recordID), try !isKnownToHub(stored.change),
                let moved = try Conflict.following(stored.record, works: [old: new]),
                moved.id != stored.record.id
            else { continue }
            if try record(moved.id) != nil {
                try takeOut(stored.change, stored.record)
            } else {
                try renameRecord(of: conflict, stored, to: moved)
            }
        }
    }

    /// Gives the record of a conflict another name; its number stays.
    private func renameRecord(of conflict: Conflict, _ stored: StoredRecord, to record: Record) throws {
        try reidentify(stored.change, stored.record, to: record)
        // A row that REPLACE removes tells no trigger.
        try database.statement("DELETE FROM conflict_number WHERE record_zone = ? AND record_name = ? AND id <> ?")
            .bind(1, record.id.zone).bind(2, record.id.name).bind(3, conflict.id).run()
        try database.statement("UPDATE conflict_number SET record_name = ? WHERE id = ?")
            .bind(1, record.id.name).bind(2, conflict.id).run()
    }

    private func share(_ local: StoredRecord, _ conflict: Conflict) throws {
        var shared = local.record.identified(as: String(local.record.id.name.dropFirst(Conflict.localPrefix.count)))
        shared.isLocalOnly = false
        guard let known = try record(shared.id) else {
            try renameRecord(of: conflict, local, to: shared)
            // An undo of the decision is everybody's, too.
            return try database.statement("UPDATE batch_record SET local_only = 0, row_hash = NULL WHERE after = ?")
                .bind(1, record(shared.id)?.change).run()
        }
        if known.record.isDeleted {
            shared.modifiedAt = timeAfter(known.record)
            try put(shared, replacing: known)
        } else if conflict.isDecided, Conflict.isUndecided(known.record) {
            try decide(known, conflict.fileDecision)
        }
        try takeOut(local.change, local.record)
    }

    private struct Pair: Hashable {
        let kind: String
        let works: Set<String>

        init(_ conflict: Conflict) { (kind, works) = (conflict.kind, [conflict.existing, conflict.incoming]) }
    }

    /// Without the text in their fields they are not looked at.
    private func knownConflicts(with text: String = "") throws -> [Conflict] {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns), id FROM \(rowsByType)
            JOIN conflict_number ON record_zone = zone AND record_name = ifnull(name, local_id)
            WHERE type = ?1 AND type <> 'PuppyEvent' AND deleted_at IS NULL AND instr(fields, ?2) ORDER BY id
            """
        ).bind(1, RecordType.conflict).bind(2, text)
        var found: [Conflict] = []
        while try query.step() {
            guard let record = try ifSound({ try RowReader.record(query) })?.record,
                let conflict = try Conflict(record, number: query.integer(13), subject: subject)
            else { continue }
            found.append(conflict)
        }
        return found
    }

    /// Not in the record: it would outlive what bore it.
    private func subject(_ kind: String, _ works: [String]) throws -> String {
        guard kind == Conflict.publication else { return works[0] }
        for work in works {
            if let key = try livePublication(work).flatMap({ try citeKey(of: $0.record) }) { return key }
        }
        return ""
    }

    private func citeKey(of record: Record) throws -> String? {
        try Fields.strings(named: [Self.citeKeyField], of: record.fields)[0]
    }

    /// Why there is nothing to decide; nil while there is.
    func pointless(_ conflict: Conflict) throws -> String? {
        func gone(_ existing: Bool, _ incoming: Bool) -> String? {
            switch (existing, incoming) {
            case (true, true): "both are gone"
            case (true, false): "the existing one is gone"
            case (false, true): "the incoming one is gone"
            case (false, false): nil
            }
        }
        guard !conflict.isAboutAssets else {
            // Where a row is damaged, its file waits for a repair.
            let files = try ifSound { (try asset(conflict.existing), try asset(conflict.incoming)) }
            guard let (existing, incoming) = files else { return nil }
            guard let existing, let incoming else { return gone(existing == nil, incoming == nil) }
            return existing.digest == incoming.digest ? "both are the same by now" : nil
        }
        let existing = try livePublication(conflict.existing)?.record
        let incoming = try livePublication(conflict.incoming)?.record
        guard let existing, let incoming else { return gone(existing == nil, incoming == nil) }
        guard let key = try citeKey(of: existing), let other = try citeKey(of: incoming), sameBytes(key, other) else {
            return "they have different cite keys by now"
        }
        return nil
    }

    /// The live publication with this local id.
    func livePublication(_ localID: String) throws -> StoredRecord? {
        try records(localID: localID).first { $0.record.type == RecordType.publication && !$0.record.isDeleted }
    }

    /// Notes that two works clash, unless that is noted already, be it decided or not: then it returns false. Must run
    /// inside `write`.
    @discardableResult public func noteConflict(
        kind: String, subject: String, existing: String, incoming: String, ofOneFile: Bool = true
    ) throws -> Bool {
        if sameBytes(existing, incoming) { return false }
        let place = try conflictPlace(kind, existing, incoming)
        try reopen(existing, incoming)
        if try hasConflict(kind: kind, existing, incoming, zone: place.zone) { return false }
        var record = Conflict.record(
            kind: kind, existing: existing, incoming: incoming, zone: place.zone, isLocalOnly: place.isLocalOnly,
            ofOneFile: ofOneFile, at: now())
        let before = try self.record(record.id)
        if let before {
            guard before.record.type == RecordType.conflict else { return false }
            record.modifiedAt = timeAfter(before.record)
        }
        try put(record, replacing: before)
        return true
    }

    /// A file that a decision had removed is here again: somebody has to decide anew. Must run inside `write`.
    func reopenConflict(of path: String) throws {
        guard let existing = RecordFiles.formerPath(path) else { return }
        try reopen(existing, path)
    }

    private func reopen(_ existing: String, _ incoming: String) throws {
        for id in Conflict.ids(kind: Conflict.attachment, existing, incoming, zone: RecordType.libraryZone) {
            guard let stored = try record(id), stored.record.type == RecordType.conflict, !stored.record.isDeleted,
                let decision = try Conflict.fileDecision(in: stored.record.fields), decision.choice != .keepBoth,
                // What a backup brings with the file has been decided about that file.
                stored.change < currentBatch?.firstChange ?? .max, try counts(decision, at: [existing, incoming])
            else { continue }
            try put(Conflict.reopened(stored.record, at: timeAfter(stored.record)), replacing: stored)
        }
    }

    /// Conflicts of works that not everybody may see stay on this device; others find their own.
    private func conflictPlace(
        _ kind: String, _ existing: String, _ incoming: String
    ) throws -> (zone: String, isLocalOnly: Bool) {
        guard kind == Conflict.publication else {
            // Of a damaged row nobody knows who may see it.
            let isLocalOnly = try [existing, incoming].contains { path in
                try ifSound { try asset(path)?.isLocalOnly == true } ?? true
            }
            return (RecordType.libraryZone, isLocalOnly)
        }
        guard let first = try livePublication(existing)?.record, let second = try livePublication(incoming)?.record
        else { return (RecordType.libraryZone, false) }
        let isShared = sameBytes(first.id.zone, second.id.zone) && !first.isLocalOnly && !second.isLocalOnly
        return (first.id.zone, !isShared)
    }

    /// Whether it is noted that two works clash, in whatever order.
    func hasConflict(kind: String = Conflict.publication, _ first: String, _ second: String) throws -> Bool {
        try hasConflict(kind: kind, first, second, zone: conflictPlace(kind, first, second).zone)
    }

    private func hasConflict(kind: String, _ first: String, _ second: String, zone: String) throws -> Bool {
        try Conflict.ids(kind: kind, first, second, zone: zone).contains { id in
            let stored = try record(id)?.record
            return stored?.type == RecordType.conflict && stored?.isDeleted == false
        }
    }

    /// Decides that both publications stay as they are. Must run inside `batch`.
    func keepBoth(_ conflict: Conflict) throws {
        if let stored = try record(conflict.recordID) { try decide(stored, nil) }
    }

    /// Writes down what is decided about two files. Must run inside `batch`.
    func note(_ decision: FileDecision, about conflict: Conflict) throws {
        if let stored = try record(conflict.recordID) { try decide(stored, decision) }
    }

    private func decide(_ stored: StoredRecord, _ decision: FileDecision?) throws {
        let time = timeAfter(stored.record)
        try put(
            decision.map { try Conflict.decided(stored.record, $0, at: time) }
                ?? Conflict.keptBoth(stored.record, at: time), replacing: stored)
    }

    /// Where a publication gave way to another one, those that it had a conflict with now have one with the other. Must
    /// run inside `batch`.
    func passOnConflicts(of gone: String, to other: String) throws {
        for conflict in try knownConflicts() where !conflict.isAboutAssets {
            guard sameBytes(conflict.existing, gone) || sameBytes(conflict.incoming, gone) else { continue }
            let third = sameBytes(conflict.existing, gone) ? conflict.incoming : conflict.existing
            guard let rival = try livePublication(third), let stays = try livePublication(other),
                let key = try citeKey(of: rival.record), try sameBytes(key, citeKey(of: stays.record) ?? "")
            else { continue }
            try noteConflict(kind: conflict.kind, subject: key, existing: other, incoming: third)
        }
    }

    /// Gives a conflict the next number, for people to type. A number that a damaged row has made too large is ignored.
    func number(_ id: RecordID) throws {
        try database.statement(
            """
            INSERT OR IGNORE INTO conflict_number SELECT 1 + max(0,
            ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'conflict_number' AND seq BETWEEN 0 AND ?3), 0),
            ifnull((SELECT id FROM conflict_number WHERE id <= ?3 ORDER BY id DESC LIMIT 1), 0)), ?1, ?2
            """
        ).bind(1, id.zone).bind(2, id.name).bind(3, Self.highestConflictNumber).run()
    }

    private static let highestConflictNumber: Int64 = 1 << 40

    /// Conflicts of two versions of a file, decided or not.
    func conflictsOfFiles() throws -> [Conflict] { try knownConflicts().filter(\.isAboutAssets) }

    /// Those of two files that somebody has decided about.
    func fileDecisions() throws -> [(Conflict, FileDecision)] {
        try knownConflicts(with: Conflict.decisionMark).compactMap { conflict in
            conflict.fileDecision.map { (conflict, $0) }
        }
    }

    /// Must run inside `write`.
    func noteConflicts(settledBy batch: Batch) throws {
        for settled in batch.settledConflicts {
            try noteConflict(
                kind: settled.kind, subject: settled.subject, existing: settled.existing, incoming: settled.incoming)
        }
    }

    func setSettledConflicts(_ settled: [SettledConflict], of batch: Batch) throws {
        let members = try JSON(parsing: batch.summary).members ?? []
        let summary = JSON.object(
            members.map { $0.key == SettledConflict.member ? .init($0.key, .array(settled.map(\.json))) : $0 })
        try database.statement("UPDATE batch SET summary = ? WHERE id = ?").bind(1, summary.compact).bind(2, batch.id)
            .run()
    }
}

/// A conflict that a decision has settled: version 0.1.0 took it away and wrote it into its batch.
struct SettledConflict {
    static let member = "settled"

    let kind, subject, existing, incoming: String
    fileprivate let json: JSON

    fileprivate init?(_ json: JSON) {
        guard let kind = json["kind"]?.string, let subject = json["subject"]?.string,
            let existing = json["existing"]?.string, let incoming = json["incoming"]?.string
        else { return nil }
        (self.kind, self.subject, self.existing, self.incoming, self.json) = (kind, subject, existing, incoming, json)
    }
}

extension Batch {
    /// Those that can be read.
    var settledConflicts: [SettledConflict] {
        ((try? JSON(parsing: summary))?[SettledConflict.member]?.array ?? []).compactMap(SettledConflict.init)
    }
}

extension Conflict {
    private static let place = Query(
        """
        SELECT zone, local_only \(Store.byKey) AND local_id = ?2 AND type = 'Publication' AND deleted_at IS NULL
        """)
    private static let isThere = Query("SELECT 1 \(Store.byKey) AND local_id = ?2 AND zone = ?3")

    /// The step of the store's schema that turns the table of conflicts into records. Those that a sync has brought from
    /// newer devices are records already.
    static func makeRecords(in database: SQLite) throws {
        try database.execute(
            """
            -- Short numbers for records of type Conflict: what people type.
            CREATE TABLE conflict_number (id INTEGER PRIMARY KEY AUTOINCREMENT, record_zone TEXT NOT NULL,
                record_name TEXT NOT NULL, UNIQUE (record_zone, record_name)) STRICT
            """)
        let hasher = try RecordHasher(database)
        var change = try database.integer("SELECT value FROM counter")
        var names: Set<RecordID> = []
        let old = try database.prepare("SELECT id, kind, existing, incoming, detected_at FROM conflict ORDER BY id")
        while try old.step() {
            let works = [old.text(2), old.text(3)]
            let places = try works.compactMap { work -> (String, Bool)? in
                let query = try database.statement(place).bind(1, hasher.key(work)).bind(2, work)
                defer { query.reset() }
                return try query.step() ? (query.text(0), query.integer(1) != 0) : nil
            }
            let isApart = places.count == 2 && (places[0].0 != places[1].0 || places.contains { $0.1 })
            let record = record(
                kind: old.text(1), existing: works[0], incoming: works[1],
                zone: places.first?.0 ?? RecordType.libraryZone, isLocalOnly: isApart,
                at: Timestamp(milliseconds: old.integer(4)))
            guard names.insert(record.id).inserted else { continue }
            try database.statement("INSERT INTO conflict_number VALUES (?, ?, ?)")
                .bind(1, old.integer(0)).bind(2, record.id.zone).bind(3, record.id.name).run()
            let known = try database.statement(isThere).bind(1, hasher.key(record.localID)).bind(2, record.localID)
                .bind(3, record.id.zone)
            defer { known.reset() }
            if try known.step() { continue }
            change += 1
            let row = try database.statement(Store.insert)
            Store.bind(record, change: change, to: row)
            try row.bind(14, hasher.row(record, change)).run()
            try database.statement("INSERT INTO local_key VALUES (?, ?, ?)")
                .bind(1, hasher.key(record.localID)).bind(2, change).bind(3, hasher.content(record)).run()
        }
        old.reset()
        try database.execute(
            """
            INSERT OR IGNORE INTO conflict_number (record_zone, record_name)
            SELECT zone, ifnull(name, local_id) FROM record WHERE type = '\(RecordType.conflict)'
            """)
        try database.statement("UPDATE counter SET value = ?").bind(1, change).run()
        try database.execute("DROP TABLE conflict")
    }
}
