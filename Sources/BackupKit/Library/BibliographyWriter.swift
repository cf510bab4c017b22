/// Writes `library.bib`: what stood between the entries first, then the entries by cite key.
///
/// BibTeX asks that an entry named by another's `crossref` comes after it, so those come last. A macro that means
/// different things in different files is defined again before the entries that need another meaning (`MacroMeanings`).
struct BibliographyWriter {
    /// Lines that begin like this are ours: an import reads them and does not keep them as text of the user's.
    static let mark = "% backup-tool: "
    static let fileMark = mark + "file = "

    private struct Entry {
        let key: String
        /// Of the entries with one key, the one that the key itself identifies comes first.
        let isFirst: Bool
        let localID: String
        let change: Int64
    }

    private struct Part {
        let file: String
        let place: Int
        let localID: String
        let fields: [Field]
    }

    private var entries: [Entry] = []
    private var parents: Set<String> = []
    private var parts: [(file: String, localID: String, fields: [Field])] = []
    private var orders: [String: [String]] = [:]

    /// Takes note of a live record of kind `publications`.
    mutating func note(_ record: Record, change: Int64) throws {
        if record.type == RecordType.publication {
            let found = try Fields.strings(named: [Publication.citeKey, "crossref"], of: record.fields)
            let key = found[0] ?? ""
            entries.append(
                Entry(
                    key: key, isFirst: record.localID == DeterministicID.make(RecordType.publication, key),
                    localID: record.localID, change: change))
            if let parent = found[1] { parents.insert(parent.lowercased()) }
            return
        }
        let fields = try Fields.parse(record.fields)
        let file = Fields.string("file", in: fields) ?? ""
        if Fields.string("kind", in: fields) == BibliographyPart.order {
            orders[file] = Fields.strings("items", in: fields)
        } else {
            parts.append((file, record.localID, fields))
        }
    }

    /// Writes everything to `spool`; `load` gives the fields of the record with that change number.
    func write(to spool: inout SpoolFile, load: (Int64) throws -> String, problem: (BackupError) -> Void) throws {
        try spool.append { out in
            out += "\(Self.mark)publications, sorted by cite key. Text before the entries is kept as it was.\n\n".utf8
        }
        let parts = sortedParts()
        var macros = try MacroMeanings(parts.map(\.fields))
        var groups: [Int64: MacroMeanings.Choice] = [:]
        if !macros.isEmpty {
            for entry in entries {
                groups[entry.change] = try macros.choice(for: load(entry.change))
            }
        }
        macros.settle(groups.values)
        try appendHead(parts.map(\.fields), macros, to: &spool)
        var writer = macros.writer()
        for isParent in [false, true] {
            var later: [MacroMeanings.Choice: [Int64]] = [:]
            for entry in sortedEntries() where self.isParent(entry.key) == isParent {
                let choice = macros.contested(groups[entry.change])
                if writer.isInForce(choice) {
                    try appendEntry(load(entry.change), to: &spool, problem)
                } else {
                    later[choice, default: []].append(entry.change)
                }
            }
            for (choice, changes) in later.sorted(by: { MacroMeanings.precedes($0.key, $1.key) }) {
                for definition in writer.definitions(for: choice) { try append(definition, to: &spool) }
                for change in changes { try appendEntry(load(change), to: &spool, problem) }
            }
        }
        for definition in writer.unwritten() { try append(definition, to: &spool) }
        try spool.flush()
    }

    private func appendHead(_ parts: [[Field]], _ macros: MacroMeanings, to spool: inout SpoolFile) throws {
        var endsInText = false
        for part in parts {
            let kind = Fields.string("kind", in: part)
            if kind == BibBlock.Kind.unreadable.rawValue { continue }
            let bytes = try Publication.bytes(of: part)
            if macros.holdsBack(bytes) { continue }
            let isText = kind == BibBlock.Kind.text.rawValue
            // Without a line between them two texts would come back as one.
            if isText, endsInText { try spool.append { $0 += "\(Self.mark)text\n\n".utf8 } }
            try append(bytes, to: &spool)
            endsInText = isText
        }
    }

    private func sortedEntries() -> [Entry] {
        entries.sorted { left, right in
            if left.key != right.key { return BibKeyOrder.precedes(left.key, right.key) }
            if left.isFirst != right.isFirst { return left.isFirst }
            return left.localID < right.localID
        }
    }

    private func isParent(_ key: String) -> Bool { !parents.isEmpty && parents.contains(key.lowercased()) }

    private func sortedParts() -> [Part] {
        var places: [String: Int] = [:]
        for items in orders.values {
            for (index, item) in items.enumerated() where item.hasPrefix("part:") { places[item] = index }
        }
        let placed = parts.map { part in
            Part(
                file: part.file, place: places["part:" + part.localID] ?? .max, localID: part.localID,
                fields: part.fields)
        }
        return placed.sorted { ($0.file, $0.place, $0.localID) < ($1.file, $1.place, $1.localID) }
    }

    private func appendEntry(_ fields: String, to spool: inout SpoolFile, _ problem: (BackupError) -> Void) throws {
        let bytes: [UInt8]
        do { bytes = try Publication.bytes(ofText: fields) } catch let error as BackupError {
            let key = try Fields.strings(named: [Publication.citeKey], of: fields)[0] ?? ""
            problem(BackupError(.incomplete, "\(error.message); the entry is in records.jsonl only", at: key))
            return
        }
        try spool.append { out in
            // Most entries have no files, and looking is cheaper than parsing.
            let hasLinks = Self.mentionsLinks(fields)
            for path in hasLinks ? Fields.strings(Publication.linkedFiles, in: try Fields.parse(fields)) : [] {
                out += Self.fileMark.utf8
                out += Self.escaped(path)
                out.append(0x0A)
            }
            out += bytes
            out += "\n\n".utf8
        }
    }

    private static func mentionsLinks(_ fields: String) -> Bool {
        var fields = fields
        return fields.withUTF8 { contains("\"linkedFiles\"", in: UnsafeRawBufferPointer($0)) }
    }

    /// BibTeX would take an @ for the start of an entry, even here.
    private static func escaped(_ path: String) -> [UInt8] {
        path.utf8.flatMap { byte in
            switch byte {
            case UInt8(ascii: "@"): Array("%40".utf8)
            case UInt8(ascii: "%"): Array("%25".utf8)
            default: [byte]
            }
        }
    }

    private func append(_ bytes: [UInt8], to spool: inout SpoolFile) throws {
        try spool.append { out in
            out += bytes
            out += "\n\n".utf8
        }
    }
}
