/// Writes `library.bib`: in UTF-8, what stood between the entries first, then the entries by cite key; or everything in
/// the order of the files that it came from.
///
/// BibTeX asks that an entry named by another's `crossref` comes after it, so those come last. A macro that means
/// different things in different files is defined again before the entries that need another meaning (`MacroMeanings`).
struct BibliographyWriter {
    struct Options {
        var order = ExportOptions.EntryOrder.key
        /// Where a file of the store lies beside `library.bib`; nil where it is not there.
        var place: (String) -> String? = { $0 }
        /// Whether every file gets a `Bdsk-File-n`.
        var namesFiles = false
    }

    /// JabRef looks for it in the first line, and nowhere else.
    static let encodingLine = "% Encoding: UTF-8"
    /// Lines that begin like this are ours: an import reads them and does not keep them as text of the user's.
    static let mark = "% backup-tool: "
    /// How the line ends that begins an export in the order of its sources.
    static let sourceOrder = "in the order of the files that they came from."

    struct Entry {
        let key: String
        /// Where what is written for it lies in `texts`; empty when it cannot be written as BibTeX.
        let text: Range<Int64>
        /// The same with the values written out that no definition can give, for where one is in force.
        let spelled: Range<Int64>?
        /// What its macros mean, as a place in `choices`.
        let choice: Int
        /// The key of the entry that it refers to by `crossref`, in lower case.
        let parent: String?
    }

    private let options: Options
    private(set) var entries: [Entry] = []
    /// The entries' texts in the order they came; sorted, they are copied from here.
    private var texts: SpoolFile
    let parts: BibliographyParts
    private(set) var macros: MacroMeanings
    /// What macros mean to entries; most entries share a few answers.
    private var choices: [MacroMeanings.Choice] = [[:]]
    private var placeOfChoice: [MacroMeanings.Choice: Int] = [[:]: 0]
    /// The same, but for what all entries agree on.
    private(set) var contested: [MacroMeanings.Choice] = []
    private(set) var problems: [Finding] = []
    /// Entries that were converted to UTF-8.
    private var converted = 0
    /// Where the files lie that entries name.
    private(set) var named: Set<String> = []
    private var parents: Set<String> = []

    /// `parts` are the live records of what stands between entries.
    init(parts records: [Record], _ options: Options = Options()) throws {
        self.options = options
        texts = try SpoolFile(inMemory: 4 << 20)
        parts = try BibliographyParts(records)
        macros = MacroMeanings(parts.shown)
    }

    /// Takes note of a live publication.
    mutating func note(_ record: Record) throws {
        let found = try Fields.strings(named: [Publication.citeKey, "crossref", Publication.raw], of: record.fields)
        let key = found[0] ?? ""
        let parent = found[1]?.lowercased()
        if let parent { parents.insert(parent) }
        let start = texts.position
        var (text, spelled): (Range<Int64>, Range<Int64>?) = (start..<start, nil)
        var choice = MacroMeanings.Choice()
        do {
            var bytes = try found[2].map { Array($0.utf8) } ?? Publication.bytes(of: Fields.parse(record.fields))
            var uses: [MacroUse] = []
            if !macros.isEmpty {
                uses = try MacroUse.of(bytes, fields: record.fields)
                var lost: [MacroUse] = []
                choice = macros.choice(for: uses, lost: &lost)
                bytes = Self.spelled(out: lost, in: bytes)
            }
            let links = try links(of: record.fields)
            let view = BibEntryView(of: bytes, links: links, naming: options.namesFiles)
            noteView(view, key)
            if options.namesFiles { named.formUnion(links.map(\.place).filter { !view.unnamed.contains($0) }) }
            text = try append(view, key, links)
            uses.removeAll { use in
                !use.macros.contains { choice[$0.lowercased()]?.isSpelledDifferently == true }
            }
            if !uses.isEmpty {
                let bytes = Self.spelled(out: uses, in: bytes)
                spelled = try append(BibEntryView(of: bytes, links: links, naming: options.namesFiles), key, links)
            }
        } catch let error as BackupError where error.code == .refused || error.code == .failed && error.subject == nil {
            problems.append(
                Finding(
                    .malformed, .warning, key.isEmpty ? record.id.description : key,
                    "\(error.message); library.bib lacks the entry", remedy: error.remedy))
        }
        if placeOfChoice[choice] == nil {
            placeOfChoice[choice] = choices.count
            choices.append(choice)
        }
        entries.append(
            Entry(
                key: key, text: text, spelled: spelled, choice: placeOfChoice[choice] ?? 0, parent: parent))
    }

    /// With the values written out that no definitions of their macros give.
    private static func spelled(out uses: [MacroUse], in bytes: [UInt8]) -> [UInt8] {
        var (bytes, macros) = (bytes, BibMacros())
        // Whatever these mean where the entry will stand: it is not what the value says.
        for name in uses.flatMap(\.macros) { macros.define(name, as: "\u{0}") }
        for use in uses {
            // A value that cannot be written so stays in records.jsonl.
            bytes =
                (try? BibEditor.apply([.set(field: use.field, value: use.stored)], to: bytes, macros: macros)) ?? bytes
        }
        return bytes
    }

    private func links(of fields: String) throws -> [BibEntryView.Link] {
        var fields = fields
        // Most entries have none, and looking is cheaper than parsing.
        guard fields.withUTF8({ contains("\"linkedFiles\"", in: UnsafeRawBufferPointer($0)) }) else { return [] }
        return Fields.strings(Publication.linkedFiles, in: try Fields.parse(fields)).compactMap { path in
            options.place(path).map { BibEntryView.Link(path: path, place: $0) }
        }
    }

    private mutating func append(
        _ view: BibEntryView, _ key: String, _ links: [BibEntryView.Link]
    ) throws -> Range<Int64> {
        let start = texts.position
        let lines =
            links.isEmpty && view.marks.isEmpty
            ? []
            : EntryLines.lines(
                for: BibEntryLayout(view.bytes)?.key ?? key, places: links.map(\.place), marks: view.marks)
        try texts.append { out in
            for line in lines { out += "\(Self.mark)\(line)\n".utf8 }
            out += view.bytes
            out += "\n\n".utf8
        }
        return start..<texts.position
    }

    private mutating func noteView(_ view: BibEntryView, _ key: String) {
        if view.isConverted { converted += 1 }
        if view.isGuess {
            problems.append(
                Finding(
                    .malformed, .warning, key,
                    "holds bytes that are neither UTF-8 nor Windows-1252; library.bib shows a guess",
                    remedy: "records.jsonl has the entry byte for byte"))
        }
    }

    /// What there is to say of the file, once it is written.
    var findings: [Finding] {
        guard converted > 0 else { return problems }
        let what = converted == 1 ? "1 entry was" : "\(converted) entries were"
        return problems + [
            Finding(
                .keptAsWritten, .note, Layout.bibliography,
                "\(what) converted from Windows-1252 to UTF-8; records.jsonl has the bytes as they came")
        ]
    }

    /// Writes everything.
    mutating func write(to sink: TextSink) throws {
        let order =
            switch options.order {
            case .key: "sorted by cite key. Text before the entries is kept as it was."
            case .source: Self.sourceOrder
            }
        try sink { $0 += "\(Self.encodingLine)\n\(Self.mark)publications, \(order)\n\n".utf8 }
        macros.settle(choices, all: options.order == .source)
        contested = choices.map { macros.contested($0) }
        switch options.order {
        case .key: try writeByKey(to: sink)
        case .source: try writeAsInSources(to: sink)
        }
    }

    private func writeByKey(to sink: TextSink) throws {
        var head = BibliographyHead()
        for part in parts.shown where !macros.holdsBack(part.bytes) { try head.append(part, to: sink) }
        var writer = macros.writer()
        let sorted = try sortedEntries()
        var isWritten = [Bool](repeating: false, count: sorted.count)
        func write(_ wanted: (Entry) -> Bool) throws {
            for (index, entry) in sorted.enumerated() where !isWritten[index] {
                guard wanted(entry), writer.isInForce(contested[entry.choice]) else { continue }
                try copy(entry, isSaid: true, to: sink)
                isWritten[index] = true
            }
        }
        func writeLater(_ wanted: (Entry) -> Bool) throws {
            try write(wanted)
            let left = sorted.indices.filter { !isWritten[$0] && wanted(sorted[$0]) }
            let groups = Dictionary(grouping: left) { contested[sorted[$0].choice] }
            for (choice, group) in groups.sorted(by: { MacroMeanings.precedes($0.key, $1.key) }) {
                for definition in writer.definitions(for: choice) { try Self.append(definition, to: sink) }
                for index in group {
                    try copy(sorted[index], isSaid: writer.isInForce(choice), to: sink)
                    isWritten[index] = true
                }
            }
        }
        try write { !isParent($0.key) }
        // What knew no definition of a macro has to stand before the first one, its children before it.
        let waiting = Set(sorted.indices.compactMap { isWritten[$0] ? nil : sorted[$0].parent })
        try write { contested[$0.choice].values.contains(where: \.isName) && !waiting.contains($0.key.lowercased()) }
        try writeLater { !isParent($0.key) }
        try writeLater { _ in true }
        for definition in writer.unwritten() { try Self.append(definition, to: sink) }
    }

    /// `isSaid`: whether its macros mean here what they mean to it.
    func copy(_ entry: Entry, isSaid: Bool, to sink: TextSink) throws {
        let bytes = try texts.read(isSaid ? entry.text : entry.spelled ?? entry.text)
        try sink { $0 += bytes }
    }

    /// Entries of one key by their bytes: ids may differ from store to store.
    func sortedEntries() throws -> [Entry] {
        try entries.sorted { left, right in
            if left.key != right.key { return BibKeyOrder.precedes(left.key, right.key) }
            return try texts.read(left.text).lexicographicallyPrecedes(texts.read(right.text))
        }
    }

    private func isParent(_ key: String) -> Bool { !parents.isEmpty && parents.contains(key.lowercased()) }

    static func append(_ bytes: [UInt8], to sink: TextSink) throws {
        try sink { out in
            out += bytes
            out += "\n\n".utf8
        }
    }
}

/// Writes what stands between entries, one part after the other.
struct BibliographyHead {
    private var endsInText = false

    mutating func append(_ part: BibliographyParts.Part, to sink: TextSink) throws {
        // Without a line between them two texts would come back as one.
        if part.isText, endsInText {
            try BibliographyWriter.append(Array("\(BibliographyWriter.mark)text".utf8), to: sink)
        }
        try BibliographyWriter.append(part.bytes, to: sink)
        endsInText = part.isText
    }

    mutating func passEntry() { endsInText = false }
}
