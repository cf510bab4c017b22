/// Something that nobody may decide silently; it waits for a person.
public struct Conflict: Sendable, Equatable {
    public let id: Int64
    /// `publication`: two of them under one cite key. `attachment` or `asset`: two versions of one file.
    public let kind: String
    /// The cite key, or the path.
    public let subject: String
    /// A local id, or a path.
    public var existing: String
    public var incoming: String
    public let detectedAt: Timestamp
    /// The batch that found it, whose undo takes it away.
    let batch: Int64?

    public var isAboutAssets: Bool { kind == "attachment" || kind == "asset" }
}

/// The queue of conflicts. What a resolution takes off it is written into the summary of its batch, so that an undo
/// can put it back.
extension Store {
    private static let conflictColumns = "id, kind, subject, existing, incoming, detected_at, batch"

    private static func conflict(_ row: Statement) -> Conflict {
        Conflict(
            id: row.integer(0), kind: row.text(1), subject: row.text(2), existing: row.text(3), incoming: row.text(4),
            detectedAt: Timestamp(milliseconds: row.integer(5)), batch: row.optionalInteger(6))
    }

    /// Oldest first.
    public func conflicts() throws -> [Conflict] {
        let query = try database.prepare("SELECT \(Self.conflictColumns) FROM conflict ORDER BY id")
        var found: [Conflict] = []
        while try query.step() { found.append(Self.conflict(query)) }
        return found
    }

    public func conflict(_ id: Int64) throws -> Conflict? {
        let query = try database.statement("SELECT \(Self.conflictColumns) FROM conflict WHERE id = ?").bind(1, id)
        defer { query.reset() }
        return try query.step() ? Self.conflict(query) : nil
    }

    /// Takes conflicts off the queue: the one that was decided, and whatever its decision made pointless. In the others
    /// `gone` stands no longer for the subject, `stays` does. Returns what the batch's summary must say. Must run inside
    /// `batch`.
    func settle(_ decided: Conflict, gone: String?, stays: String?) throws -> [SettledConflict] {
        var settled = [SettledConflict(was: decided, became: nil)]
        var known = try conflicts().filter { $0.kind == decided.kind && $0.subject == decided.subject }
        known.removeAll { $0.id == decided.id }
        if let gone, let stays {
            for (index, other) in known.enumerated() where other.existing == gone || other.incoming == gone {
                var moved = other
                if moved.existing == gone { moved.existing = stays }
                if moved.incoming == gone { moved.incoming = stays }
                let isPointless =
                    moved.existing == moved.incoming
                    || known.contains { $0.existing == moved.existing && $0.incoming == moved.incoming }
                settled.append(SettledConflict(was: other, became: isPointless ? nil : moved))
                if !isPointless { known[index] = moved }
            }
        }
        for entry in settled {
            if let moved = entry.became {
                try database.statement("UPDATE conflict SET existing = ?, incoming = ? WHERE id = ?")
                    .bind(1, moved.existing).bind(2, moved.incoming).bind(3, moved.id).run()
            } else {
                try database.statement("DELETE FROM conflict WHERE id = ?").bind(1, entry.was.id).run()
            }
        }
        // That somebody has decided is a change, though no record may show it.
        _ = nextChange()
        return settled
    }

    /// Takes a conflict off the queue that an undo had put back on it; part of a redo.
    func settleAgain(_ entry: SettledConflict) throws -> [SettledConflict] {
        let waiting = try conflicts().last {
            ($0.kind, $0.subject, $0.existing, $0.incoming)
                == (entry.was.kind, entry.was.subject, entry.was.existing, entry.was.incoming)
        }
        guard let waiting else { return [] }
        if let moved = entry.became {
            try database.statement("UPDATE conflict SET existing = ?, incoming = ? WHERE id = ?")
                .bind(1, moved.existing).bind(2, moved.incoming).bind(3, waiting.id).run()
        } else {
            try database.statement("DELETE FROM conflict WHERE id = ?").bind(1, waiting.id).run()
        }
        return [SettledConflict(was: waiting, became: entry.became)]
    }

    /// Puts back what a batch took off the queue; part of its undo.
    func reviveConflicts(of batch: Batch) throws -> Int {
        let settled = SettledConflict.read(batch.summary)
        for entry in settled.reversed() {
            let was = entry.was
            if let moved = entry.became {
                try database.statement(
                    "UPDATE conflict SET existing = ?, incoming = ? WHERE id = ? AND existing = ? AND incoming = ?"
                ).bind(1, was.existing).bind(2, was.incoming).bind(3, was.id).bind(4, moved.existing)
                    .bind(5, moved.incoming).run()
                if database.changes > 0 { continue }
            }
            // Another conflict may have got the number meanwhile.
            let isTaken = try conflict(was.id) != nil
            // What a redo finds again belongs to it, for the batch that found it first is undone.
            let isUndone = try batches().contains { $0.id == was.batch && $0.undoneAt != nil }
            try database.statement("INSERT INTO conflict (\(Self.conflictColumns)) VALUES (?, ?, ?, ?, ?, ?, ?)")
                .bind(1, isTaken ? nil : was.id).bind(2, was.kind).bind(3, was.subject).bind(4, was.existing)
                .bind(5, was.incoming).bind(6, was.detectedAt.milliseconds)
                .bind(7, isUndone ? currentBatch?.id : was.batch).run()
        }
        return settled.count
    }
}

/// One line of the queue before a resolution, and after it where it is still there.
struct SettledConflict: Equatable {
    let was: Conflict
    let became: Conflict?

    private static let member = "settled"
    /// What an undo has put back on the queue, in its summary.
    static let revived = "revived"

    /// The summary of a batch that settled these.
    static func summary(_ settled: [SettledConflict], _ more: [JSON.Member]) -> String {
        JSON.object(more + [JSON.Member(member, .array(settled.map(\.json)))]).compact
    }

    var json: JSON {
        [
            "id": JSON(was.id), "kind": .string(was.kind), "subject": .string(was.subject),
            "existing": .string(was.existing), "incoming": .string(was.incoming),
            "detectedAt": JSON(was.detectedAt.milliseconds), "batch": was.batch.map { JSON($0) } ?? .null,
            "became": became.map { [.string($0.existing), .string($0.incoming)] } ?? .null,
        ]
    }

    /// What a batch settled; nothing for batches of other kinds.
    static func read(_ summary: String, member: String = member) -> [SettledConflict] {
        guard let list = (try? JSON(parsing: summary))?[member]?.array else { return [] }
        return list.compactMap { entry in
            guard let id = entry["id"]?.integer, let kind = entry["kind"]?.string,
                let subject = entry["subject"]?.string, let existing = entry["existing"]?.string,
                let incoming = entry["incoming"]?.string, let time = entry["detectedAt"]?.integer
            else { return nil }
            let was = Conflict(
                id: id, kind: kind, subject: subject, existing: existing, incoming: incoming,
                detectedAt: Timestamp(milliseconds: time), batch: entry["batch"]?.integer)
            var became: Conflict?
            if let sides = entry["became"]?.array?.compactMap(\.string), sides.count == 2 {
                became = was
                became?.existing = sides[0]
                became?.incoming = sides[1]
            }
            return SettledConflict(was: was, became: became)
        }
    }
}
