/// How a conflict can be decided.
public enum ConflictChoice: String, Sendable, CaseIterable {
    case renameIncoming = "rename-incoming"
    case renameExisting = "rename-existing"
    case merge
    case keepBoth = "keep-both"
    case keepExisting = "keep-existing"
    case keepIncoming = "keep-incoming"

    /// A file has its second name already, and two files cannot be merged.
    static let forAssets: [ConflictChoice] = [.keepBoth, .keepExisting, .keepIncoming]
}

/// A conflict with both of its sides as they are now.
public struct ConflictView: Sendable {
    public struct Side: Sendable {
        /// `zone/name` of a record, or a path.
        public let id: String
        /// What a person calls it.
        public let label: String
        public let modifiedAt: Timestamp
        /// Facts by name, in the order in which to show them; the values are JSON text.
        public let fields: [Field]
    }

    /// One line of a comparison.
    public struct Row: Sendable, Equatable {
        public let field: String
        public let existing: String?
        public let incoming: String?
        public let differs: Bool
    }

    public let conflict: Conflict
    /// Nil when it is not there any more.
    public let existing: Side?
    public let incoming: Side?
    /// Why there is nothing left to decide.
    public let isMoot: String?
    public let choices: [ConflictChoice]
    /// The cite key that a rename gives when none is named; only looked for when one conflict is shown.
    public let newKey: String?

    /// Both sides, field by field: those of the existing side in their order, then those that only the other has.
    public func rows() throws -> [Row] {
        let left = existing?.fields ?? []
        let right = incoming?.fields ?? []
        var rows: [Row] = []
        for field in left + right where !rows.contains(where: { sameBytes($0.field, field.name) }) {
            let mine = Fields.value(field.name, in: left)
            let theirs = Fields.value(field.name, in: right)
            var differs = mine == nil || theirs == nil
            if let mine, let theirs { differs = try !Fields.same(mine, theirs) }
            rows.append(Row(field: field.name, existing: mine, incoming: theirs, differs: differs))
        }
        return rows
    }
}

/// Looks at the queue of conflicts.
public enum ConflictDesk {
    /// All that waits, oldest first; what it takes a look at the whole library to say is left out.
    public static func all(in store: Store) throws -> [ConflictView] {
        try store.conflicts().map { try view(of: $0, in: store, nil, isMoot: nil) }
    }

    public static func view(_ id: Int64, in store: Store) throws -> ConflictView {
        try view(of: conflict(id, in: store), in: store, LibraryIndex(store))
    }

    static func conflict(_ id: Int64, in store: Store) throws -> Conflict {
        if let conflict = try store.conflict(id) { return conflict }
        try store.checkTypeIndex()
        throw BackupError(
            .failed, "there is no conflict of this number", at: String(id),
            remedy: "'backup-tool conflicts list' shows those that wait")
    }

    /// The decision that keeps a work, which is named by `zone/name`, its local id or its path.
    public static func choice(keeping work: String, of id: Int64, in store: Store) throws -> ConflictChoice {
        let view = try view(of: conflict(id, in: store), in: store, nil)
        let sides = [
            (view.conflict.existing, view.existing?.id, ConflictChoice.keepExisting),
            (view.conflict.incoming, view.incoming?.id, .keepIncoming),
        ]
        if let side = sides.first(where: { sameBytes($0.0, work) || sameBytes($0.1 ?? $0.0, work) }) { return side.2 }
        throw BackupError(
            .failed, "is not in conflict \(id)", at: work,
            remedy: "name one of its sides: \(sides.map { $0.1 ?? $0.0 }.joined(separator: " or "))")
    }

    static func view(of conflict: Conflict, in store: Store, _ index: LibraryIndex?) throws -> ConflictView {
        try view(of: conflict, in: store, index, isMoot: whyMoot(conflict, store))
    }

    private static func view(
        of conflict: Conflict, in store: Store, _ index: LibraryIndex?, isMoot: String?
    ) throws -> ConflictView {
        if conflict.isAboutAssets {
            func side(_ path: String) throws -> ConflictView.Side? {
                try store.ifSound { try store.asset(path).map { try Self.side($0, store, index) } } ?? nil
            }
            return ConflictView(
                conflict: conflict, existing: try side(conflict.existing), incoming: try side(conflict.incoming),
                isMoot: isMoot, choices: ConflictChoice.forAssets, newKey: nil)
        }
        func side(of localID: String) throws -> ConflictView.Side? {
            guard let stored = try store.livePublication(localID) else { return nil }
            try store.noteIfChanged(stored)
            return try Self.side(stored.record)
        }
        return ConflictView(
            conflict: conflict, existing: try side(of: conflict.existing), incoming: try side(of: conflict.incoming),
            isMoot: isMoot, choices: ConflictChoice.allCases,
            newKey: index?.freeKey(like: conflict.subject))
    }

    private static func whyMoot(_ conflict: Conflict, _ store: Store) throws -> String? {
        if let reason = try store.pointless(conflict) { return reason }
        guard try store.isDecided(conflict) else { return nil }
        let keepsOne = conflict.fileDecision.map { $0.choice != .keepBoth } ?? false
        return keepsOne ? "it was decided which of the two stays" : "it was decided to keep both as they are"
    }

    private static func side(_ record: Record) throws -> ConflictView.Side {
        ConflictView.Side(
            id: record.id.description, label: RecordLabel.text(of: record), modifiedAt: record.modifiedAt,
            fields: try Fields.parse(record.fields))
    }

    private static func side(_ asset: Asset, _ store: Store, _ index: LibraryIndex?) throws -> ConflictView.Side {
        let modified = Timestamp(milliseconds: asset.modifiedNanoseconds / 1_000_000)
        var fields = [
            Field("size", JSON(asset.size)), Field("modified", .string(modified.iso8601)),
            Field("sha256", .string(asset.digest.hex)),
            Field("localOnly", .bool(asset.isLocalOnly)),
        ]
        if let keys = index?.keysOfOwners(asset.path) {
            fields.append(Field("linkedFrom", .array(keys.map { .string($0) })))
        }
        if try store.assetStatus(asset.path) == nil {
            fields.append(Field("file", .string("is missing")))
        }
        return ConflictView.Side(id: asset.path, label: asset.path, modifiedAt: modified, fields: fields)
    }
}
