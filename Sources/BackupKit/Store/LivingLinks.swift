/// The files that living records of a store name, also records that are kept on this device only. A file that one of them
/// names stays, whoever removes the record that it came with.
struct LivingLinks {
    /// What is known of a record without parsing its fields.
    struct Namer {
        let id: RecordID
        let type: String
        let isLocalOnly: Bool
        let change: Int64
    }

    private let store: Store
    private let counts: (Namer) -> Bool
    private var paths: Set<ByteName> = []
    private var readThrough: Int64 = 0

    init(_ store: Store, of counts: @escaping (Namer) -> Bool = { _ in true }) {
        (self.store, self.counts) = (store, counts)
    }

    /// Reads only what has changed since it was asked last, so a link that was removed since then still counts.
    mutating func contains(_ path: String) throws -> Bool { try all().contains(ByteName(path)) }

    mutating func all() throws -> Set<ByteName> {
        let query = try store.database.prepare(
            """
            SELECT change, zone, type, local_only, fields, deleted_at, ifnull(name, local_id) FROM record
            WHERE change > ? ORDER BY change
            """
        ).bind(1, readThrough)
        while try query.step() {
            // Also past tombstones, or each question would read those that came last again.
            readThrough = query.integer(0)
            guard query.isNull(5), RecordFiles.mayName(query.bytes(4)),
                counts(
                    Namer(
                        id: RecordID(zone: query.text(1), name: query.text(6)), type: query.text(2),
                        isLocalOnly: query.integer(3) != 0, change: query.integer(0))),
                let fields = try store.ifReadable({ try Fields.parse(query.text(4)) })
            else { continue }
            for path in RecordFiles.paths(in: fields) { paths.insert(ByteName(path)) }
        }
        return paths
    }
}

/// The files that living publications link, by the names without folders.
struct LinkedFileNames {
    private var links: LivingLinks
    private var paths: [ByteName: [String]] = [:]
    private var count = 0

    init(_ store: Store) { links = LivingLinks(store) { $0.type == RecordType.publication } }

    mutating func paths(named name: String) throws -> [String] {
        let all = try links.all()
        if all.count != count {
            paths = Dictionary(grouping: all.map(\.text)) { ByteName(lastComponent(of: $0)) }
            count = all.count
        }
        return (paths[ByteName(name)] ?? []).sorted(by: precedesBytewise)
    }
}

/// The files that living records link, where the hub does not know of the link yet. Read once, on first use.
struct UnsentLinks {
    private let store: Store
    private var paths: Set<ByteName>?

    init(_ store: Store) { self.store = store }

    mutating func contains(_ path: String) throws -> Bool {
        let all = try paths ?? read()
        paths = all
        return all.contains(ByteName(path))
    }

    private func read() throws -> Set<ByteName> {
        var found: Set<ByteName> = []
        // What the hub has as it is here links what it links there.
        guard
            try store.database.integer(
                "SELECT EXISTS (SELECT 1 FROM record WHERE clean_at IS NOT change OR NOT \(HubSeal.isSound))") != 0
        else {
            return found
        }
        try store.forEachLinking { stored in
            let links = try Store.links(of: stored.record)
            guard !links.isEmpty else { return }
            let sent = try store.hubVersions(of: stored).flatMap {
                try Store.links(in: $0.fields, type: stored.record.type)
            }
            found.formUnion(Set(links.map { ByteName($0) }).subtracting(sent.map { ByteName($0) }))
        }
        return found
    }
}

/// The paths that living records name while the store has no file there. Such a path is kept for the file that these records
/// mean.
struct OpenLinks {
    private var owners: [ByteName: Set<ByteName>] = [:]

    /// `paths`: only these are looked for.
    init(_ store: Store, of type: String? = nil, among paths: Set<ByteName>? = nil) throws {
        if paths?.isEmpty == true { return }
        try store.forEachLinking { stored in
            guard type == nil || type == stored.record.type else { return }
            for path in try Store.links(of: stored.record).map({ ByteName($0) }) {
                guard paths?.contains(path) ?? true, try !store.hasAsset(path.text) else { continue }
                owners[path, default: []].insert(ByteName(stored.record.localID))
            }
        }
    }

    var paths: Set<ByteName> { Set(owners.keys) }

    /// Whether records name a path of which none of these local ids is one.
    func mean(_ path: String, by claimants: () throws -> Set<ByteName>) rethrows -> Bool {
        guard let owners = owners[ByteName(path)] else { return false }
        return try !owners.isSubset(of: claimants())
    }
}

extension RecordFiles {
    /// Whether fields may name a file: most do not, and looking is cheaper than parsing.
    static func mayName(_ fields: UnsafeRawBufferPointer) -> Bool {
        contains("\"linkedFiles\"", in: fields) || contains("\"photo\"", in: fields)
            || contains("\"video\"", in: fields) || contains("\"thumbnail_path\"", in: fields)
    }
}
