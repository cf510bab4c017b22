/// Finds the publication that an attachment belongs to: the one whose `file` or `Bdsk-File` names it, else the one that it
/// is named after.
struct AttachmentLinks {
    private let store: Store
    /// The last component of each named path → the paths and who names them.
    private var named: [String: [Named]] = [:]
    private var keys: [String: String] = [:]

    private struct Named: Hashable {
        let path: String
        let localID: String
    }

    init(_ store: Store) throws {
        self.store = store
        try store.forEachLive(type: RecordType.publication) { stored in
            let fields = try Fields.parse(stored.record.fields)
            for path in Publication.links(in: fields).flatMap(\.readings) {
                named[lastComponent(of: path), default: []].append(
                    Named(path: path, localID: stored.record.localID))
            }
            guard let key = Fields.string(Publication.citeKey, in: fields), !key.isEmpty, keys[key] == nil else {
                return
            }
            keys[key] = stored.record.localID
        }
    }

    /// Local ids of the publications that each of the paths belongs to.
    func owners(of paths: [String]) -> [String: [String]] {
        var owners: [String: [String]] = [:]
        for (name, paths) in Dictionary(grouping: paths, by: { lastComponent(of: $0) }) {
            Self.match(named[name] ?? [], paths, depth: 1, &owners)
            guard let owner = ownerByKey(name) else { continue }
            for path in paths where owners[path] == nil { owners[path] = [owner] }
        }
        return owners
    }

    /// Gives each path to who names it. `depth` names are the same at the ends of all. A longer common end is a better
    /// match: "files/12/x.pdf" over another folder's "x.pdf"; and of several files the one that is named is that which
    /// matches best.
    private static func match(
        _ candidates: [Named], _ paths: [String], depth: Int, _ owners: inout [String: [String]]
    ) {
        if candidates.isEmpty || paths.isEmpty { return }
        let theirs = Dictionary(grouping: candidates) { FilePath.name(depth, fromTheEndOf: $0.path) }
        let ours = Dictionary(grouping: paths) { FilePath.name(depth, fromTheEndOf: $0) }
        for (name, candidates) in theirs {
            if name != nil, let paths = ours[name] { match(candidates, paths, depth: depth + 1, &owners) }
        }
        let rest = theirs.filter { $0.key == nil || ours[$0.key] == nil }.flatMap(\.value)
        let found = Set(rest.map(\.localID)).sorted()
        if found.isEmpty { return }
        for (name, paths) in ours where name == nil || theirs[name] == nil {
            for path in paths { owners[path] = found }
        }
    }

    /// Whose cite key a file is named after: the whole name ("Smith2020.pdf"), or its beginning where a sign ends the key
    /// ("Smith2020-supplement.pdf"). "a" and "the" begin the names of too many files, so there a key counts from four
    /// characters on.
    private func ownerByKey(_ name: String) -> String? {
        let dot = name.lastIndex(of: ".") ?? name.endIndex
        if let owner = keys[String(name[..<dot])] ?? keys[name] { return owner }
        var end = dot
        while end > name.startIndex {
            end = name.index(before: end)
            guard !name[end].isLetter, !name[end].isNumber else { continue }
            let key = String(name[..<end])
            if key.count >= 4, let owner = keys[key] { return owner }
        }
        return nil
    }

    /// Adds each path to `linkedFiles` of its owners; returns the paths that have none. Must run inside `batch`.
    @discardableResult func link(_ paths: [String]) throws -> [String] {
        var unlinked: [String] = []
        var additions: [String: [String]] = [:]
        let owners = owners(of: paths)
        for path in paths {
            guard let found = owners[path] else {
                unlinked.append(path)
                continue
            }
            for owner in found { additions[owner, default: []].append(path) }
        }
        for (localID, paths) in additions.sorted(by: { $0.key < $1.key }) {
            try store.addToSet(Publication.linkedFiles, paths, localID: localID, type: RecordType.publication)
        }
        return unlinked
    }
}
