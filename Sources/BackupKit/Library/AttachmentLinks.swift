/// Finds the publication that an attachment belongs to: the one whose `file` or `Bdsk-File` names it, else the one whose
/// cite key the file's name starts with.
struct AttachmentLinks {
    private let store: Store
    /// The last component of each named path → the paths and who names them.
    private var named: [String: [(path: String, localID: String)]] = [:]
    private var keys: [String: String] = [:]
    private var longestKey = 0

    init(_ store: Store) throws {
        self.store = store
        try store.forEachLive(type: RecordType.publication) { stored in
            let fields = try Fields.parse(stored.record.fields)
            for link in Publication.links(in: fields) {
                named[lastComponent(of: link), default: []].append((link, stored.record.localID))
            }
            guard let key = Fields.string(Publication.citeKey, in: fields), !key.isEmpty, keys[key] == nil else {
                return
            }
            keys[key] = stored.record.localID
            longestKey = max(longestKey, key.count)
        }
    }

    /// Local ids of the publications that `path` belongs to.
    func owners(of path: String) -> [String] {
        let name = lastComponent(of: path)
        if let candidates = named[name] {
            // A longer common end is a better match: "files/12/x.pdf" over another folder's "x.pdf".
            let scored = candidates.map { ($0.localID, commonEnd($0.path, path)) }
            let best = scored.map(\.1).max() ?? 0
            var owners: [String] = []
            for candidate in scored where candidate.1 == best && !owners.contains(candidate.0) {
                owners.append(candidate.0)
            }
            return owners
        }
        var prefix = name.prefix(longestKey)
        while !prefix.isEmpty {
            if let owner = keys[String(prefix)] { return [owner] }
            prefix.removeLast()
        }
        return []
    }

    private func commonEnd(_ left: String, _ right: String) -> Int {
        zip(left.split(separator: "/").reversed(), right.split(separator: "/").reversed()).prefix { $0 == $1 }.count
    }

    /// Adds each path to `linkedFiles` of its owners; returns the paths that have none. Must run inside `batch`.
    @discardableResult func link(_ paths: [String]) throws -> [String] {
        var unlinked: [String] = []
        var additions: [String: [String]] = [:]
        for path in paths {
            let owners = owners(of: path)
            if owners.isEmpty { unlinked.append(path) }
            for owner in owners { additions[owner, default: []].append(path) }
        }
        for (localID, paths) in additions.sorted(by: { $0.key < $1.key }) {
            try store.addToSet(Publication.linkedFiles, paths, localID: localID, type: RecordType.publication)
        }
        return unlinked
    }
}
