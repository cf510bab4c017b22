/// Writes `library.bib`: what stood between the entries first, then the entries by cite key.
///
/// BibTeX asks that an entry named by another's `crossref` comes after it, so those come last. When two imported files
/// defined one macro differently, the entries that need the second definition follow after it, in a section of their own.
struct BibliographyWriter {
    /// Lines that begin like this are ours: an import reads them and does not keep them as text of the user's.
    static let mark = "% backup-tool: "
    static let fileMark = mark + "file = "

    struct Entry {
        let key: String
        let change: Int64
        let isParent: Bool
    }

    private var entries: [(key: String, change: Int64)] = []
    private var parents: Set<String> = []
    private var parts: [(file: String, fields: [Field], localID: String)] = []
    private var orders: [String: [String]] = [:]

    /// Takes note of a live record of kind `publications`.
    mutating func note(_ record: Record, change: Int64) throws {
        let fields = try Fields.parse(record.fields)
        if record.type == RecordType.publication {
            entries.append((Fields.string(Publication.citeKey, in: fields) ?? "", change))
            if let parent = Fields.string("crossref", in: fields) { parents.insert(parent.lowercased()) }
            return
        }
        let file = Fields.string("file", in: fields) ?? ""
        if Fields.string("kind", in: fields) == BibliographyPart.order {
            orders[file] = Fields.strings("items", in: fields)
        } else {
            parts.append((file, fields, record.localID))
        }
    }

    var isEmpty: Bool { entries.isEmpty && parts.isEmpty }

    /// Writes everything to `spool`; `load` gives the fields of the record with that change number.
    func write(to spool: inout SpoolFile, load: (Int64) throws -> [Field], problem: (BackupError) -> Void) throws {
        try spool.append { out in
            out += "\(Self.mark)publications, sorted by cite key. Text before the entries is kept as it was.\n\n".utf8
        }
        let macros = MacroSections(sortedParts(), orders: orders)
        for part in sortedParts() where macros.isInHead(part.fields) {
            try append(try partBytes(part.fields), to: &spool)
        }
        var later: [Int: [Int64]] = [:]
        for entry in sortedEntries() {
            let section = macros.hasConflicts ? try macros.section(ofKey: entry.key, fields: load(entry.change)) : 0
            if section > 0 {
                later[section, default: []].append(entry.change)
            } else {
                try appendEntry(load(entry.change), to: &spool, problem)
            }
        }
        for (section, changes) in later.sorted(by: { $0.key < $1.key }) {
            for definition in macros.definitions(of: section) { try append(definition, to: &spool) }
            for change in changes { try appendEntry(load(change), to: &spool, problem) }
        }
        try spool.flush()
    }

    private func sortedEntries() -> [(key: String, change: Int64)] {
        entries.sorted { left, right in
            let (leftLast, rightLast) = (isParent(left.key), isParent(right.key))
            if leftLast != rightLast { return rightLast }
            if left.key == right.key { return left.change < right.change }
            return BibKeyOrder.precedes(left.key, right.key)
        }
    }

    private func isParent(_ key: String) -> Bool { !parents.isEmpty && parents.contains(key.lowercased()) }

    private func sortedParts() -> [(file: String, fields: [Field], localID: String)] {
        var places: [String: Int] = [:]
        for items in orders.values {
            for (index, item) in items.enumerated() where item.hasPrefix("part:") { places[item] = index }
        }
        func place(_ localID: String) -> Int { places["part:" + localID] ?? .max }
        return parts.sorted {
            ($0.file, place($0.localID), $0.localID) < ($1.file, place($1.localID), $1.localID)
        }
    }

    private func partBytes(_ fields: [Field]) throws -> [UInt8] { try Publication.bytes(of: fields) }

    private func appendEntry(_ fields: [Field], to spool: inout SpoolFile, _ problem: (BackupError) -> Void) throws {
        let bytes: [UInt8]
        do { bytes = try Publication.bytes(of: fields) } catch let error as BackupError {
            let key = Fields.string(Publication.citeKey, in: fields) ?? ""
            problem(BackupError(.incomplete, "\(error.message); the entry is in records.jsonl only", at: key))
            return
        }
        try spool.append { out in
            for path in Fields.strings(Publication.linkedFiles, in: fields) {
                // BibTeX would take an @ for the start of an entry, even here.
                out += Self.fileMark.utf8
                for byte in path.utf8 {
                    out +=
                        byte == UInt8(ascii: "@")
                        ? Array("%40".utf8)
                        : byte == UInt8(ascii: "%") ? Array("%25".utf8) : [byte]
                }
                out.append(0x0A)
            }
            out += bytes
            out += "\n\n".utf8
        }
    }

    private func append(_ bytes: [UInt8], to spool: inout SpoolFile) throws {
        try spool.append { out in
            out += bytes
            out += "\n\n".utf8
        }
    }
}

/// Keeps apart the definitions of macros that mean different things in different files.
private struct MacroSections {
    private struct Definition {
        let name: String
        let value: String
        let file: String
        let bytes: [UInt8]
    }

    /// For each macro with several meanings: its meanings, the first of which stands in the head of the file.
    private var meanings: [String: [Definition]] = [:]
    private var fileOfKey: [String: String] = [:]
    private var shadowed: Set<[UInt8]> = []

    init(_ parts: [(file: String, fields: [Field], localID: String)], orders: [String: [String]]) {
        for part in parts where Fields.string("kind", in: part.fields) == BibBlock.Kind.string.rawValue {
            guard let bytes = try? Publication.bytes(of: part.fields) else { continue }
            bytes.withUnsafeBytes { raw in
                BibParser.parse(raw) { block in
                    guard block.kind == .string, let field = block.fields.first else { return }
                    let name = block.name(of: field).lowercased()
                    let value = block.value(of: field)
                    let definition = Definition(name: name, value: value, file: part.file, bytes: bytes)
                    if meanings[name]?.first?.value != value, meanings[name] != nil { shadowed.insert(bytes) }
                    meanings[name, default: []].append(definition)
                }
            }
        }
        meanings = meanings.filter { entry in entry.value.contains { $0.value != entry.value[0].value } }
        guard hasConflicts else { return }
        for (file, items) in orders {
            for item in items where item.hasPrefix("key:") { fileOfKey[String(item.dropFirst(4))] = file }
        }
    }

    var hasConflicts: Bool { !meanings.isEmpty }

    /// Whether a part belongs at the head: all but second definitions of a macro.
    func isInHead(_ fields: [Field]) -> Bool {
        guard hasConflicts, Fields.string("kind", in: fields) == BibBlock.Kind.string.rawValue else {
            return Fields.string("kind", in: fields) != BibBlock.Kind.unreadable.rawValue
        }
        guard let bytes = try? Publication.bytes(of: fields) else { return true }
        return !shadowed.contains(bytes)
    }

    private var files: [String] { Set(meanings.values.flatMap { $0.map(\.file) }).sorted() }

    /// 0 for an entry that the definitions at the head serve, else the number of the section of its file.
    func section(ofKey key: String, fields: [Field]) throws -> Int {
        guard let file = fileOfKey[key], let number = files.firstIndex(of: file) else { return 0 }
        var needsOwn = false
        try Publication.bytes(of: fields).withUnsafeBytes { raw in
            BibParser.parse(raw) { block in
                for name in block.macroNames() {
                    guard let known = meanings[name], let own = known.first(where: { $0.file == file }) else {
                        continue
                    }
                    if own.value != known[0].value { needsOwn = true }
                }
            }
        }
        return needsOwn ? number + 1 : 0
    }

    func definitions(of section: Int) -> [[UInt8]] {
        let file = files[section - 1]
        // A section before may have given any of these names another meaning, so all of this file's are repeated.
        return meanings.keys.sorted().compactMap { name in meanings[name]?.first { $0.file == file }?.bytes }
    }
}
