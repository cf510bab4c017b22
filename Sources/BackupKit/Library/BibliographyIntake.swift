/// Takes `.bib` files into a store: entries as publications, and what stands between them, in its order.
///
/// An entry is matched by its cite key. Where the store's publication of that key is another work, both are kept and a
/// conflict is queued: nobody's reference is merged into somebody else's.
final class BibliographyIntake {
    private let intake: Intake
    private var store: Store { intake.store }
    /// Local ids of the live publications with each cite key; filled on first use.
    private var known: [String: [String]] = [:]
    private var filesSeen: [String: Int] = [:]

    init(_ intake: Intake) throws {
        self.intake = intake
        try store.forEachLive(type: RecordType.publication) { stored in
            let fields = try Fields.parse(stored.record.fields)
            known[Fields.string(Publication.citeKey, in: fields) ?? "", default: []].append(stored.record.localID)
        }
    }

    /// What is known while one file is read.
    private struct FileState {
        let name: String
        let path: String
        let time: Timestamp
        var macros = BibMacros.standard
        var items: [String] = []
        /// How often each key, and each text, was met.
        var keys: [String: Int] = [:]
        var texts: [String: Int] = [:]
        var links: [String] = []
    }

    /// `time` is when the file was last changed: what its entries say is as old as that.
    func take(path: String, name: String, time: Timestamp, wanted: (Record) -> Bool = { _ in true }) throws {
        var state = FileState(name: distinct(name), path: path, time: time)
        var reader = BibReader()
        try FileHandle.openForReading(path).forEachChunk { chunk in
            try reader.feed(chunk) { try take($0, &state, wanted) }
        }
        try reader.finish { try take($0, &state, wanted) }
        guard !state.items.isEmpty else { return }
        let fields = [
            Field("kind", .string(BibliographyPart.order)), Field("file", .string(state.name)),
            Field("items", .array(state.items.map { .string($0) })),
        ]
        try takePart(
            fields, localID: DeterministicID.make(RecordType.bibliographyPart, "order", state.name), time, wanted)
    }

    /// Two files of one name in one import are two files.
    private func distinct(_ name: String) -> String {
        filesSeen[name, default: 0] += 1
        let count = filesSeen[name] ?? 1
        return count == 1 ? name : "\(name)#\(count)"
    }

    private func take(_ block: BibBlock, _ state: inout FileState, _ wanted: (Record) -> Bool) throws {
        for problem in block.problems { report(problem, block, state) }
        switch block.kind {
        case .entry: try takeEntry(block, &state, wanted)
        case .byteOrderMark: break
        case .text: try takeText(block, &state, wanted)
        case .string:
            state.macros.define(from: block)
            try takePart(block, &state, wanted)
        case .preamble, .comment, .unreadable: try takePart(block, &state, wanted)
        }
    }

    private func report(_ problem: BibProblem, _ block: BibBlock, _ state: FileState) {
        let place = "\(state.path):\(problem.line):\(problem.column)"
        if block.kind == .unreadable {
            intake.reject(place, problem.message)
        } else {
            let severity: Finding.Severity = problem.code == .encoding ? .note : .warning
            intake.note(
                Finding(.malformed, severity, place, problem.message, remedy: "what could be read was imported"))
        }
    }

    /// Text between blocks: our own marks are understood, blank lines mean nothing, the rest is the user's and is kept.
    private func takeText(_ block: BibBlock, _ state: inout FileState, _ wanted: (Record) -> Bool) throws {
        guard block.raw.contains(where: { $0 > 0x20 }) else { return }
        let text = BibText.decode(block.raw).text
        guard text.contains(BibliographyWriter.mark) else { return try takePart(block, &state, wanted) }
        var rest: [Substring] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix(BibliographyWriter.fileMark) {
                let path = line.dropFirst(BibliographyWriter.fileMark.count)
                state.links.append(BibliographyIntake.unescaped(path))
            } else if !line.hasPrefix(BibliographyWriter.mark) {
                rest.append(line)
            }
        }
        var kept = trimmed(rest.joined(separator: "\n"))
        guard !kept.isEmpty else { return }
        try kept.withUTF8 { try takePart(kind: .text, UnsafeRawBufferPointer($0), &state, wanted) }
    }

    private static func unescaped(_ path: Substring) -> String {
        path.split(separator: "%40", omittingEmptySubsequences: false).joined(separator: "@")
            .split(separator: "%25", omittingEmptySubsequences: false).joined(separator: "%")
    }

    private func trimmed(_ text: String) -> String {
        let start = text.firstIndex { !$0.isWhitespace } ?? text.endIndex
        let end = text.lastIndex { !$0.isWhitespace }.map { text.index(after: $0) } ?? text.endIndex
        return start < end ? String(text[start..<end]) : ""
    }

    private func takePart(_ block: BibBlock, _ state: inout FileState, _ wanted: (Record) -> Bool) throws {
        guard block.kind == .text else { return try takePart(kind: block.kind, block.raw, &state, wanted) }
        let isBlank = { (byte: UInt8) in byte <= 0x20 }
        guard let start = block.raw.firstIndex(where: { !isBlank($0) }),
            let end = block.raw.lastIndex(where: { !isBlank($0) })
        else { return }
        try takePart(kind: .text, UnsafeRawBufferPointer(rebasing: block.raw[start...end]), &state, wanted)
    }

    private func takePart(
        kind: BibBlock.Kind, _ raw: UnsafeRawBufferPointer, _ state: inout FileState, _ wanted: (Record) -> Bool
    ) throws {
        let fields = BibliographyPart.fields(kind: kind.rawValue, file: state.name, raw: raw)
        let text = SHA256Digest.of(raw).hex
        state.texts[text, default: 0] += 1
        let localID = DeterministicID.make(
            RecordType.bibliographyPart, kind.rawValue, state.name, text, String(state.texts[text] ?? 1))
        state.items.append("part:" + localID)
        try takePart(fields, localID: localID, state.time, wanted)
    }

    private func takePart(_ fields: [Field], localID: String, _ time: Timestamp, _ wanted: (Record) -> Bool) throws {
        let record = Record(
            id: RecordID(zone: RecordType.libraryZone, name: localID), type: RecordType.bibliographyPart,
            localID: localID, fields: Fields.text(fields), createdAt: time, modifiedAt: time)
        if wanted(record) { try intake.take(record) }
    }

    private func takeEntry(_ block: BibBlock, _ state: inout FileState, _ wanted: (Record) -> Bool) throws {
        let key = block.key
        var fields = Publication.fields(of: block, macros: state.macros)
        if !state.links.isEmpty {
            let links = JSON.array(state.links.map { .string($0) })
            fields = Fields.text(try Fields.parse(fields) + [Field(Publication.linkedFiles, links)])
            state.links = []
        }
        state.items.append("key:" + key)
        state.keys[key, default: 0] += 1
        let record = Record(
            id: RecordID(zone: RecordType.libraryZone, name: ""), type: RecordType.publication, localID: "",
            fields: fields, createdAt: state.time, modifiedAt: state.time)
        guard wanted(record) else { return }
        if key.isEmpty || state.keys[key] != 1 {
            try takeTwin(record, key: key, &state)
        } else if let candidates = known[key] {
            try takeKnown(record, key: key, candidates)
        } else {
            try takeNew(record.identified(as: DeterministicID.make(RecordType.publication, key)), key: key)
        }
    }

    private func takeNew(_ record: Record, key: String) throws {
        let outcome = try intake.take(record)
        if case .protect = outcome.decision { return }
        known[key, default: []].append(record.localID)
    }

    /// A second entry with one key in one file, or one without a key: its id is made from its text.
    private func takeTwin(_ record: Record, key: String, _ state: inout FileState) throws {
        let twin = record.identified(as: contentID(record, key, &state.texts))
        let outcome = try intake.take(twin)
        guard !key.isEmpty, case .add = outcome.decision, let first = known[key]?.first else { return }
        known[key]?.append(twin.localID)
        try intake.conflict(kind: "publication", subject: key, existing: first, incoming: twin.localID)
    }

    private func contentID(_ record: Record, _ key: String, _ texts: inout [String: Int]) -> String {
        let text = SHA256Digest.of(record.fields).hex
        texts[text, default: 0] += 1
        return DeterministicID.make(RecordType.publication, key, text, String(texts[text] ?? 1))
    }

    /// The store has that key: the same entry, an edited one, or another work.
    private func takeKnown(_ record: Record, key: String, _ candidates: [String]) throws {
        let incoming = try Fields.parse(record.fields)
        var work: (localID: String, fields: [Field])?
        for localID in candidates {
            guard
                let existing = try store.records(localID: localID)
                    .first(where: { $0.record.type == RecordType.publication && !$0.record.isDeleted })
            else { continue }
            let fields = try Fields.parse(existing.record.fields)
            if bibTeX(fields) == bibTeX(incoming) {
                work = (localID, fields)
                break
            }
            if work == nil, Publication.isSameWork(fields, incoming) { work = (localID, fields) }
        }
        if let work {
            try intake.take(carryLinks(from: work.fields, to: record, incoming).identified(as: work.localID))
            return
        }
        var texts: [String: Int] = [:]
        let other = record.identified(as: contentID(record, key, &texts))
        let outcome = try intake.take(other)
        guard case .add = outcome.decision else { return }
        known[key]?.append(other.localID)
        try intake.conflict(kind: "publication", subject: key, existing: candidates[0], incoming: other.localID)
    }

    private func bibTeX(_ fields: [Field]) -> [Field] { fields.filter { $0.name != Publication.linkedFiles } }

    /// A `.bib` file does not know which files the store has linked; its silence removes none.
    private func carryLinks(from existing: [Field], to record: Record, _ incoming: [Field]) -> Record {
        guard let links = existing.first(where: { $0.name == Publication.linkedFiles }),
            !incoming.contains(where: { $0.name == Publication.linkedFiles })
        else { return record }
        var record = record
        record.fields = Fields.text(incoming + [links])
        return record
    }
}
