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
        /// Where what is written for it lies in `texts`; empty when it cannot be written as BibTeX.
        let text: Range<Int64>
        /// What its macros mean, as a place in `choices`.
        let choice: Int
    }

    private struct Part {
        let file: String
        let place: Int
        let localID: String
        let fields: [Field]
    }

    private var entries: [Entry] = []
    /// The entries' texts in the order they came; sorted, they are copied from here.
    private var texts: SpoolFile
    private let parts: [Part]
    private var macros: MacroMeanings
    /// What macros mean to entries; most entries share a few answers.
    private var choices: [MacroMeanings.Choice] = [[:]]
    private var placeOfChoice: [MacroMeanings.Choice: Int] = [[:]: 0]
    private(set) var problems: [BackupError] = []
    private var parents: Set<String> = []

    /// `parts` are the live records of what stands between entries.
    init(parts records: [Record]) throws {
        texts = try SpoolFile(inMemory: 16 << 20)
        var orders: [[String]] = []
        var parts: [(file: String, localID: String, fields: [Field])] = []
        for record in records {
            let fields = try Fields.parse(record.fields)
            if Fields.string("kind", in: fields) == BibliographyPart.order {
                orders.append(Fields.strings("items", in: fields))
            } else {
                parts.append((Fields.string("file", in: fields) ?? "", record.localID, fields))
            }
        }
        self.parts = Self.sorted(parts, orders)
        macros = try MacroMeanings(self.parts.map(\.fields))
    }

    /// Takes note of a live publication.
    mutating func note(_ record: Record) throws {
        let found = try Fields.strings(named: [Publication.citeKey, "crossref", Publication.raw], of: record.fields)
        let key = found[0] ?? ""
        if let parent = found[1] { parents.insert(parent.lowercased()) }
        let start = texts.position
        var choice = MacroMeanings.Choice()
        do {
            let bytes = try found[2].map { Array($0.utf8) } ?? Publication.bytes(of: Fields.parse(record.fields))
            try append(bytes, links: links(of: record.fields))
            if !macros.isEmpty { choice = macros.choice(for: try MacroUse.of(bytes, fields: record.fields)) }
        } catch let error as BackupError where error.code == .failed && error.subject == nil {
            problems.append(
                BackupError(.incomplete, "\(error.message); the entry is in records.jsonl only", at: key))
        }
        if placeOfChoice[choice] == nil {
            placeOfChoice[choice] = choices.count
            choices.append(choice)
        }
        entries.append(
            Entry(
                key: key, isFirst: record.localID == DeterministicID.make(RecordType.publication, key),
                localID: record.localID, text: start..<texts.position, choice: placeOfChoice[choice] ?? 0))
    }

    private func links(of fields: String) throws -> [String] {
        var fields = fields
        // Most entries have none, and looking is cheaper than parsing.
        guard fields.withUTF8({ contains("\"linkedFiles\"", in: UnsafeRawBufferPointer($0)) }) else { return [] }
        return Fields.strings(Publication.linkedFiles, in: try Fields.parse(fields))
    }

    private mutating func append(_ bytes: [UInt8], links: [String]) throws {
        try texts.append { out in
            for path in links {
                out += Self.fileMark.utf8
                out += Self.escaped(path)
                out.append(0x0A)
            }
            out += bytes
            out += "\n\n".utf8
        }
    }

    /// Writes everything.
    mutating func write(to sink: TextSink) throws {
        try sink { out in
            out += "\(Self.mark)publications, sorted by cite key. Text before the entries is kept as it was.\n\n".utf8
        }
        macros.settle(choices)
        let contested = choices.map { macros.contested($0) }
        try appendHead(parts.map(\.fields), macros, to: sink)
        var writer = macros.writer()
        let sorted = sortedEntries()
        for isParent in [false, true] {
            var later: [MacroMeanings.Choice: [Entry]] = [:]
            for entry in sorted where self.isParent(entry.key) == isParent {
                let choice = contested[entry.choice]
                if writer.isInForce(choice) {
                    try copy(entry, to: sink)
                } else {
                    later[choice, default: []].append(entry)
                }
            }
            for (choice, entries) in later.sorted(by: { MacroMeanings.precedes($0.key, $1.key) }) {
                for definition in writer.definitions(for: choice) { try append(definition, to: sink) }
                for entry in entries { try copy(entry, to: sink) }
            }
        }
        for definition in writer.unwritten() { try append(definition, to: sink) }
    }

    private func copy(_ entry: Entry, to sink: TextSink) throws {
        let bytes = try texts.read(entry.text)
        try sink { $0 += bytes }
    }

    private func appendHead(_ parts: [[Field]], _ macros: MacroMeanings, to sink: TextSink) throws {
        var endsInText = false
        for part in parts {
            let kind = Fields.string("kind", in: part)
            if kind == BibBlock.Kind.unreadable.rawValue { continue }
            let bytes = try Publication.bytes(of: part)
            if macros.holdsBack(bytes) { continue }
            let isText = kind == BibBlock.Kind.text.rawValue
            // Without a line between them two texts would come back as one.
            if isText, endsInText { try sink { $0 += "\(Self.mark)text\n\n".utf8 } }
            try append(bytes, to: sink)
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

    private static func sorted(
        _ parts: [(file: String, localID: String, fields: [Field])], _ orders: [[String]]
    ) -> [Part] {
        var places: [String: Int] = [:]
        for items in orders {
            for (index, item) in items.enumerated() where item.hasPrefix("part:") { places[item] = index }
        }
        let placed = parts.map { part in
            Part(
                file: part.file, place: places["part:" + part.localID] ?? .max, localID: part.localID,
                fields: part.fields)
        }
        return placed.sorted { ($0.file, $0.place, $0.localID) < ($1.file, $1.place, $1.localID) }
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

    private func append(_ bytes: [UInt8], to sink: TextSink) throws {
        try sink { out in
            out += bytes
            out += "\n\n".utf8
        }
    }
}
