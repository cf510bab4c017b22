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
    /// Why there is nothing left to decide; then `keepBoth` takes the conflict off the list.
    public let isMoot: String?
    public let choices: [ConflictChoice]
    /// The cite key that a rename gives when none is named.
    public let newKey: String?

    /// Both sides, field by field: those of the existing side in their order, then those that only the other has.
    public func rows() throws -> [Row] {
        let left = existing?.fields ?? []
        let right = incoming?.fields ?? []
        var rows: [Row] = []
        for field in left + right where !rows.contains(where: { $0.field == field.name }) {
            let mine = left.first { $0.name == field.name }?.value
            let theirs = right.first { $0.name == field.name }?.value
            var differs = mine == nil || theirs == nil
            if let mine, let theirs { differs = try !Fields.same(mine, theirs) }
            rows.append(Row(field: field.name, existing: mine, incoming: theirs, differs: differs))
        }
        return rows
    }
}

/// Looks at the queue of conflicts.
public enum ConflictDesk {
    /// All that waits, oldest first.
    public static func all(in store: Store) throws -> [ConflictView] {
        var keys: Set<String>?
        return try store.conflicts().map { try view(of: $0, in: store, &keys) }
    }

    public static func view(_ id: Int64, in store: Store) throws -> ConflictView {
        var keys: Set<String>?
        return try view(of: conflict(id, in: store), in: store, &keys)
    }

    static func conflict(_ id: Int64, in store: Store) throws -> Conflict {
        if let conflict = try store.conflict(id) { return conflict }
        throw BackupError(
            .failed, "there is no conflict of this number", at: String(id),
            remedy: "'backup-tool conflicts list' shows those that wait")
    }

    private static func view(of conflict: Conflict, in store: Store, _ keys: inout Set<String>?) throws -> ConflictView
    {
        if conflict.isAboutAssets {
            let existing = try store.asset(conflict.existing)
            let incoming = try store.asset(conflict.incoming)
            var moot = gone(existing == nil, incoming == nil)
            if let existing, let incoming, existing.digest == incoming.digest { moot = "both are the same by now" }
            return ConflictView(
                conflict: conflict, existing: try existing.map { try side($0, store) },
                incoming: try incoming.map { try side($0, store) }, isMoot: moot, choices: ConflictChoice.forAssets,
                newKey: nil)
        }
        let existing = try publication(conflict.existing, in: store)
        let incoming = try publication(conflict.incoming, in: store)
        let sides = try [existing, incoming].map { try $0.map { try Fields.parse($0.record.fields) } }
        var moot = gone(existing == nil, incoming == nil)
        if let left = sides[0], let right = sides[1],
            Fields.string(Publication.citeKey, in: left) != Fields.string(Publication.citeKey, in: right)
        {
            moot = "they have different cite keys by now"
        }
        if keys == nil, moot == nil { keys = try citeKeys(in: store) }
        return ConflictView(
            conflict: conflict, existing: try existing.map { try side($0.record) },
            incoming: try incoming.map { try side($0.record) }, isMoot: moot, choices: ConflictChoice.allCases,
            newKey: keys.map { freeKey(like: conflict.subject, $0) })
    }

    private static func gone(_ existing: Bool, _ incoming: Bool) -> String? {
        switch (existing, incoming) {
        case (true, true): "both are gone"
        case (true, false): "the existing one is gone"
        case (false, true): "the incoming one is gone"
        case (false, false): nil
        }
    }

    /// The live publication with this local id.
    static func publication(_ localID: String, in store: Store) throws -> Store.StoredRecord? {
        try store.records(localID: localID)
            .first { $0.record.type == RecordType.publication && !$0.record.isDeleted }
    }

    static func side(_ record: Record) throws -> ConflictView.Side {
        ConflictView.Side(
            id: record.id.description, label: RecordLabel.text(of: record), modifiedAt: record.modifiedAt,
            fields: try Fields.parse(record.fields))
    }

    private static func side(_ asset: Asset, _ store: Store) throws -> ConflictView.Side {
        let status = try FileStatus.ofName("\(store.assetFolder)/\(asset.path)")
        let modified = Timestamp(milliseconds: asset.modifiedNanoseconds / 1_000_000)
        var fields = [
            Field("path", .string(asset.path)), Field("size", JSON(asset.size)),
            Field("modified", .string(modified.iso8601)), Field("sha256", .string(asset.digest.hex)),
            Field("localOnly", .bool(asset.isLocalOnly)),
            Field("linkedFrom", .array(try links(to: asset.path, in: store).map { .string($0.key) })),
        ]
        if status == nil { fields.append(Field("file", .string("is missing"))) }
        return ConflictView.Side(id: asset.path, label: asset.path, modifiedAt: modified, fields: fields)
    }

    /// The live publications that link a file, with their cite keys.
    static func links(to path: String, in store: Store) throws -> [(key: String, stored: Store.StoredRecord)] {
        var found: [(String, Store.StoredRecord)] = []
        try store.forEachLive(type: RecordType.publication) { stored in
            var text = stored.record.fields
            // Most have none, and looking is cheaper than parsing.
            guard text.withUTF8({ contains("\"linkedFiles\"", in: UnsafeRawBufferPointer($0)) }) else {
                return
            }
            let fields = try Fields.parse(stored.record.fields)
            guard Fields.strings(Publication.linkedFiles, in: fields).contains(path) else { return }
            found.append((Fields.string(Publication.citeKey, in: fields) ?? stored.record.localID, stored))
        }
        return found
    }

    /// The cite keys in use, in lower case: BibTeX tells keys apart by case, and warns when only case differs.
    static func citeKeys(in store: Store) throws -> Set<String> {
        var keys: Set<String> = []
        try store.forEachLive(type: RecordType.publication) { stored in
            let found = try Fields.strings(named: [Publication.citeKey], of: stored.record.fields)
            if let key = found[0] { keys.insert(key.lowercased()) }
        }
        return keys
    }

    /// `Smith2020` → `Smith2020a`, as authors do; the first that nobody has.
    static func freeKey(like key: String, _ taken: Set<String>) -> String {
        for letter in "abcdefghijklmnopqrstuvwxyz" where !taken.contains("\(key)\(letter)".lowercased()) {
            return "\(key)\(letter)"
        }
        var number = 2
        while taken.contains("\(key)-\(number)".lowercased()) { number += 1 }
        return "\(key)-\(number)"
    }
}
