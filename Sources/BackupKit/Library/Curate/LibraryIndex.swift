/// What it takes a look at every publication and note to know; looked up once for any number of decisions.
final class LibraryIndex {
    /// In lower case: BibTeX tells keys apart by case, and warns when only case differs.
    private var keys: Set<String> = []
    /// Who names a key, in words.
    private var mentions: [String: [String]] = [:]
    /// Local ids of the live publications that link a file.
    private var owners: [String: Set<String>] = [:]
    private var keyOf: [String: String] = [:]

    init(_ store: Store) throws {
        try store.forEachLive(type: RecordType.publication) { try note($0.record) }
        try store.forEachLive(type: RecordType.note) { stored in
            let found = try Fields.strings(named: [Publication.citeKey, Note.publication], of: stored.record.fields)
            // One that knows its publication follows the key.
            if found[1] == nil, let key = found[0] { mentions[key.lowercased(), default: []].append("a note") }
        }
    }

    private func note(_ record: Record) throws {
        let found = try Fields.strings(named: [Publication.citeKey, "crossref"], of: record.fields)
        if let key = found[0] {
            keys.insert(key.lowercased())
            keyOf[record.localID] = key
        }
        if let parent = found[1] {
            mentions[parent.lowercased(), default: []].append("'\(found[0] ?? "")' by its crossref")
        }
        var text = record.fields
        // Most have none, and looking is cheaper than parsing.
        guard text.withUTF8({ contains("\"linkedFiles\"", in: UnsafeRawBufferPointer($0)) }) else { return }
        for path in Fields.strings(Publication.linkedFiles, in: try Fields.parse(record.fields)) {
            owners[path, default: []].insert(record.localID)
        }
    }

    func isTaken(_ key: String) -> Bool { keys.contains(key.lowercased()) }

    func take(_ key: String) { keys.insert(key.lowercased()) }

    func mentions(of key: String) -> [String] { mentions[key.lowercased()] ?? [] }

    func owners(of path: String) -> Set<String> { owners[path] ?? [] }

    func keysOfOwners(_ path: String) -> [String] { owners(of: path).map { keyOf[$0] ?? $0 }.sorted() }

    func move(_ path: String, from old: String, to new: String) {
        owners[path]?.remove(old)
        owners[path, default: []].insert(new)
    }

    /// `Smith2020` → `Smith2020a`, as authors do; the first that nobody has.
    func freeKey(like key: String) -> String {
        for letter in "abcdefghijklmnopqrstuvwxyz" where !isTaken("\(key)\(letter)") { return "\(key)\(letter)" }
        var number = 2
        while isTaken("\(key)-\(number)") { number += 1 }
        return "\(key)-\(number)"
    }
}
