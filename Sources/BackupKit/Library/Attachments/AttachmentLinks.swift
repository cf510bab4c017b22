/// Finds the publication that an attachment belongs to: the one whose `file` or `Bdsk-File` names it, else the one that it
/// is named after. A publication that was here before gets a file only for a link that has none yet, here or on other devices.
struct AttachmentLinks {
    private let store: Store
    private var named: [Named] = []
    private var keys: [ByteName: String] = [:]
    private var similarKeys: [String: String] = [:]
    private let imported: Names
    /// What publications that were here before link, by their local ids; and what any publication links.
    private var files: [ByteName: [Field]] = [:]
    private var linked: Set<ByteName> = []

    /// Who names a file by its exact path, and how.
    struct Claim {
        let localID: String
        let names: [String]
    }

    /// By the path of the file below the folder of attachments.
    typealias Claims = [ByteName: [Claim]]

    private let claims: Claims

    /// Paths that entries name, by the local ids of the publications that the entries went into.
    typealias Names = [ByteName: Set<ByteName>]

    private struct Named {
        let path: String
        let localID: String
        /// Whether the entry that came with the files names it. The publication may name more, from earlier imports.
        let isImported: Bool
    }

    /// `imported` are the publications that came, or came again, with the files. A file that one of them claims belongs to
    /// nobody else who names a file of its name.
    init(_ store: Store, imported: Names, claims: Claims = [:]) throws {
        (self.store, self.imported, self.claims) = (store, imported, claims)
        try store.forEachLive(type: RecordType.publication) { stored in
            try note(stored.record.localID, Fields.parse(stored.record.fields))
        }
    }

    private mutating func note(_ localID: String, _ fields: [Field]) throws {
        let entryNames = imported[ByteName(localID)]
        if let links = fields.first(where: { $0.name == Publication.linkedFiles }) {
            if entryNames == nil { files[ByteName(localID)] = [links] }
            for path in Fields.strings(links.name, in: fields) { linked.insert(ByteName(path)) }
        }
        for link in Publication.links(in: fields) {
            let isImported = entryNames?.contains(ByteName(link.path)) == true
            if try !isImported && store.knowsFile(for: link.readings, in: fields) { continue }
            named += link.readings.map { Named(path: $0, localID: localID, isImported: isImported) }
        }
        guard let key = Fields.string(Publication.citeKey, in: fields), !key.isEmpty else { return }
        func comesFirst(_ known: String?) -> Bool {
            known.map { entryNames != nil && imported[ByteName($0)] == nil } ?? true
        }
        if comesFirst(keys[ByteName(key)]) { keys[ByteName(key)] = localID }
        if comesFirst(similarKeys[key]) { similarKeys[key] = localID }
    }

    /// Local ids of the publications that each of the paths belongs to. Where a name is there in the same bytes it is that
    /// file; else one in another Unicode form will do, as macOS writes names.
    private func owners(of taken: [AttachmentFolder.Taken]) throws -> [[String]] {
        let paths = taken.map(\.name)
        var found = Matches(named: named, paths: paths)
        for (place, file) in taken.enumerated() { found.give(place, to: claims[ByteName(file.relative)] ?? []) }
        found.match(key: { ByteName($0) })
        found.match(key: { $0 })
        for (place, path) in paths.enumerated() where found.owners[place].isEmpty {
            let name = lastComponent(of: path)
            guard let owner = ownerByKey(name), try !store.knowsFile(for: [name], in: files[ByteName(owner)] ?? [])
            else { continue }
            found.owners[place] = [owner]
        }
        return found.owners
    }

    private struct Matches {
        let named: [Named]
        let paths: [String]
        var owners: [[String]]
        private var isMatched: [Bool]

        init(named: [Named], paths: [String]) {
            (self.named, self.paths) = (named, paths)
            owners = paths.map { _ in [] }
            isMatched = named.map { _ in false }
        }

        mutating func give(_ place: Int, to claims: [Claim]) {
            if claims.isEmpty { return }
            owners[place] = Set(claims.map(\.localID)).sorted()
            for (index, name) in named.enumerated() where !isMatched[index] {
                isMatched[index] = claims.contains { claim in
                    sameBytes(claim.localID, name.localID) && claim.names.contains { sameBytes($0, name.path) }
                }
            }
        }

        /// Gives paths that have no owner yet to names that have no path yet.
        mutating func match<Key: Hashable>(key: (String) -> Key) {
            let names = Dictionary(grouping: named.indices.filter { !isMatched[$0] }) {
                key(lastComponent(of: named[$0].path))
            }
            let open = Dictionary(grouping: paths.indices.filter { owners[$0].isEmpty }) {
                key(lastComponent(of: paths[$0]))
            }
            for (name, places) in open { match(names[name] ?? [], places, depth: 1, key) }
        }

        /// Gives each path to who names it. `depth` names are the same at the ends of all. A longer common end is a better
        /// match: "files/12/x.pdf" over another folder's "x.pdf"; and of several files the one that is named is that which
        /// matches best.
        private mutating func match<Key: Hashable>(
            _ names: [Int], _ places: [Int], depth: Int, _ key: (String) -> Key
        ) {
            if names.isEmpty || places.isEmpty { return }
            let theirs = Dictionary(grouping: names) { name(depth, fromTheEndOf: named[$0].path).map(key) }
            let ours = Dictionary(grouping: places) { name(depth, fromTheEndOf: paths[$0]).map(key) }
            for (name, names) in theirs {
                if name != nil, let places = ours[name] { match(names, places, depth: depth + 1, key) }
            }
            // Who names a path to its end means that file, and none that lies deeper.
            if let names = theirs[nil], let places = ours[nil] { give(places, to: names) }
            let names = theirs.filter { $0.key == nil ? ours[nil] == nil : ours[$0.key] == nil }.flatMap(\.value)
            let places = ours.filter { $0.key == nil ? theirs[nil] == nil : theirs[$0.key] == nil }.flatMap(\.value)
            give(places, to: names)
        }

        /// The folder of the store that all attachments lie in says nothing.
        private func name(_ number: Int, fromTheEndOf path: String) -> String? {
            let folder = RecordFiles.folders.first(where: path.hasPrefix)
            return FilePath.name(number, fromTheEndOf: String(path.dropFirst(folder?.count ?? 0)))
        }

        /// Of those who name a file the ones that came with it count.
        private mutating func give(_ places: [Int], to names: [Int]) {
            if names.isEmpty || places.isEmpty { return }
            let came = names.filter { named[$0].isImported }
            let found = came.isEmpty ? names : came
            for place in places { owners[place] = Set(found.map { named[$0].localID }).sorted() }
            for name in found { isMatched[name] = true }
        }
    }

    /// Whose cite key a file is named after: the whole name ("Smith2020.pdf"), or its beginning where a sign ends the key
    /// ("Smith2020-supplement.pdf"). "a" and "the" begin the names of too many files, so there a key counts from four
    /// characters on.
    private func ownerByKey(_ name: String) -> String? {
        let dot = name.lastIndex(of: ".") ?? name.endIndex
        if let owner = owner(ofKey: String(name[..<dot])) ?? owner(ofKey: name) { return owner }
        var end = dot
        while end > name.startIndex {
            end = name.index(before: end)
            guard !name[end].isLetter, !name[end].isNumber else { continue }
            let key = String(name[..<end])
            if key.count >= 4, let owner = owner(ofKey: key) { return owner }
        }
        return nil
    }

    private func owner(ofKey key: String) -> String? { keys[ByteName(key)] ?? similarKeys[key] }

    /// Adds each file, by its place in the store, to `linkedFiles` of the owners of its name; returns the places of those
    /// that have none. Must run inside `batch`.
    @discardableResult func link(_ files: [AttachmentFolder.Taken], by intake: Intake) throws -> [String] {
        var unlinked: [String] = []
        var links = LivingLinks(store)
        var additions: [ByteName: [String]] = [:]
        for (file, found) in zip(files, try owners(of: files)) {
            if found.isEmpty, !linked.contains(ByteName(file.place)), try !links.contains(file.place) {
                unlinked.append(file.place)
            }
            for owner in found { additions[ByteName(owner), default: []].append(file.place) }
        }
        for (owner, places) in additions.sorted(by: { precedesBytewise($0.key.text, $1.key.text) }) {
            try intake.link(places, to: owner.text)
            noteNamesakes(places, of: owner.text, intake)
        }
        return unlinked
    }

    /// Reports files of one name that were all linked, though the publication names only one so.
    private func noteNamesakes(_ places: [String], of owner: String, _ intake: Intake) {
        for (name, files) in Dictionary(grouping: places, by: { lastComponent(of: $0) }) where files.count > 1 {
            let wanted = named.count { sameBytes($0.localID, owner) && lastComponent(of: $0.path) == name }
            guard wanted > 0, wanted < files.count else { continue }
            intake.note(
                Finding(
                    .linkMissing, .warning, name,
                    "is the name of \(files.count) files here (\(firstNames(files.sorted()))); "
                        + "the entry was linked to all of them",
                    remedy: "write the path of the right one into the entry, and import both again with --overwrite"))
        }
    }
}

/// The attachments of a backup of an app, for entries that name them by their paths. Nothing is guessed: another entry may
/// name another file of that name.
struct AttachmentPaths {
    private static let folders = ["Attachments/", "PDFs/"]

    private var places: [ByteName: String] = [:]
    /// In any Unicode form: a zip of macOS has another than its entries.
    private var similar: [String: String] = [:]

    init(_ files: [(name: String, place: String)]) {
        for (name, place) in files {
            places[ByteName(name)] = place
            similar[name] = similar[name] ?? place
        }
    }

    /// Where the file lies in the store that an entry names so.
    func place(of link: BibFileLink) -> String? {
        let spellings = link.readings.flatMap(Self.spellings)
        return spellings.lazy.compactMap { places[ByteName($0)] }.first
            ?? spellings.lazy.compactMap { similar[$0] }.first
    }

    /// The paths that a path may mean in a backup: that below either of the folders, also where it was written as a path of
    /// the app's own disk.
    static func spellings(_ path: String) -> [String] {
        var relative = Substring(path.hasPrefix("./") ? path.dropFirst(2) : path[...])
        let whole = String(relative)
        for folder in folders {
            if relative.hasPrefix(folder) {
                relative = relative.dropFirst(folder.count)
            } else if let start = relative.ranges(of: "/" + folder).last {
                relative = relative[start.upperBound...]
            }
        }
        return [whole] + folders.map { $0 + relative }
    }
}
