/// Takes `.bib` files into a store: entries as publications, and what stands between them, in its order.
///
/// An entry is matched by its cite key. Where the store's publication of that key is another work, both are kept and a
/// conflict is queued: nobody's reference is merged into somebody else's.
final class BibliographyIntake {
    private let intake: Intake
    private var store: Store { intake.store }
    /// Local ids of the live publications with each cite key; filled on first use.
    private var known: [String: [String]] = [:]
    /// Local ids of all live publications.
    private var localIDs: Set<String> = []
    private var filesSeen: [String: Int] = [:]
    /// Local ids of the live parts with each text.
    private var knownParts: [String: [String]] = [:]
    /// What each file held, and in which order, when it was imported last.
    private var orders: [String: Set<String>] = [:]

    init(_ intake: Intake) throws {
        self.intake = intake
        try store.forEachLive(type: RecordType.bibliographyPart) { stored in
            let fields = try Fields.parse(stored.record.fields)
            let kind = Fields.string("kind", in: fields) ?? ""
            if kind == BibliographyPart.order {
                orders[Fields.string("file", in: fields) ?? ""] = Set(Fields.strings("items", in: fields))
            } else {
                let text = try Publication.bytes(of: fields).withUnsafeBytes(SHA256Digest.of).hex
                knownParts[kind + text, default: []].append(stored.record.localID)
            }
        }
        try store.forEachLive(type: RecordType.publication) { stored in
            let fields = try Fields.parse(stored.record.fields)
            known[Fields.string(Publication.citeKey, in: fields) ?? "", default: []].append(stored.record.localID)
            localIDs.insert(stored.record.localID)
        }
    }

    /// What is known while one file is read.
    private struct FileState {
        var name: String
        /// Written by us: what it holds came from elsewhere, and most of it is known.
        var isExport = false
        /// The same library as the store's at another time: a backup, or a file that was imported before. Only here can
        /// an entry be another version of a known one; elsewhere another text under a known key is somebody else's.
        var isKnown = false
        var hasNewParts = false
        let path: String
        let time: Timestamp
        var macros = BibMacros.standard
        var items: [String] = []
        /// How often each key, and each text, was met.
        var keys: [String: Int] = [:]
        var texts: [String: Int] = [:]
        /// Publications of the store that entries of this file are.
        var matched: Set<String> = []
        var links: [String] = []
    }

    /// `time` is when the file was last changed: what its entries say is as old as that.
    func take(
        path: String, name: String, time: Timestamp, isBackup: Bool = false, wanted: (Record) -> Bool = { _ in true }
    ) throws {
        var state = FileState(name: try identity(of: path, distinct(name)), path: path, time: time)
        state.isKnown = isBackup || orders[state.name] != nil
        var reader = BibReader()
        try FileHandle.openForReading(path).forEachChunk { chunk in
            try reader.feed(chunk) { try take($0, &state, wanted) }
        }
        try reader.finish { try take($0, &state, wanted) }
        guard !state.items.isEmpty, !state.isExport || state.hasNewParts else { return }
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

    /// The name that a file goes by: its own, unless another file of that name was imported before, with which it has
    /// nothing in common.
    private func identity(of path: String, _ name: String) throws -> String {
        guard orders[name] != nil else { return name }
        var keys: Set<String> = []
        var parts: Set<[String]> = []
        var reader = BibReader()
        func note(_ block: BibBlock) {
            if block.kind == .entry {
                keys.insert("key:" + block.key)
            } else if block.kind != .byteOrderMark {
                let raw = block.kind == .text ? Self.trimmed(block.raw) : block.raw
                parts.insert([block.kind.rawValue, SHA256Digest.of(raw).hex])
            }
        }
        try FileHandle.openForReading(path).forEachChunk { reader.feed($0, emit: note) }
        reader.finish(emit: note)
        var candidate = name
        var number = 1
        while let known = orders[candidate] {
            let ids = parts.map { "part:" + Self.partID(kind: $0[0], file: candidate, text: $0[1], number: 1) }
            if !known.isDisjoint(with: keys) || !known.isDisjoint(with: ids) { break }
            number += 1
            candidate = "\(name)#\(number)"
        }
        return candidate
    }

    private static func partID(kind: String, file: String, text: String, number: Int) -> String {
        DeterministicID.make(RecordType.bibliographyPart, kind, file, text, String(number))
    }

    private func take(_ block: BibBlock, _ state: inout FileState, _ wanted: (Record) -> Bool) throws {
        for problem in block.problems { report(problem, block, state) }
        switch block.kind {
        case .entry: try takeEntry(block, &state, wanted)
        case .byteOrderMark: break
        case .text: try takeText(block.raw, &state, wanted)
        case .string:
            state.macros.define(from: block)
            try takePart(kind: .string, block.raw, &state, wanted)
        case .preamble, .comment, .unreadable: try takePart(kind: block.kind, block.raw, &state, wanted)
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
    private func takeText(_ raw: UnsafeRawBufferPointer, _ state: inout FileState, _ wanted: (Record) -> Bool) throws {
        let mark = Array(BibliographyWriter.mark.utf8)
        var start = 0
        var lineStart = 0
        while lineStart < raw.count {
            let rest = UnsafeRawBufferPointer(rebasing: raw[lineStart...])
            let lineEnd = rest.firstIndex(of: 0x0A).map { lineStart + $0 + 1 } ?? raw.count
            if rest.starts(with: mark) {
                try takePlainText(UnsafeRawBufferPointer(rebasing: raw[start..<lineStart]), &state, wanted)
                let line = UnsafeRawBufferPointer(rebasing: raw[lineStart + mark.count..<lineEnd])
                takeMark(String(decoding: Self.trimmed(line), as: UTF8.self), &state)
                start = lineEnd
            }
            lineStart = lineEnd
        }
        try takePlainText(UnsafeRawBufferPointer(rebasing: raw[start...]), &state, wanted)
    }

    private func takeMark(_ text: String, _ state: inout FileState) {
        if text.hasPrefix("file = ") {
            state.links.append(Self.unescaped(text.dropFirst("file = ".count)))
        } else if text.hasPrefix("publications"), state.items.isEmpty {
            state.isExport = true
            state.isKnown = true
            state.name = "exported \(state.name)"
        }
    }

    private func takePlainText(
        _ raw: UnsafeRawBufferPointer, _ state: inout FileState, _ wanted: (Record) -> Bool
    ) throws {
        let text = Self.trimmed(raw)
        if text.count > 0 { try takePart(kind: .text, text, &state, wanted) }
    }

    private static func unescaped(_ path: Substring) -> String {
        path.split(separator: "%40", omittingEmptySubsequences: false).joined(separator: "@")
            .split(separator: "%25", omittingEmptySubsequences: false).joined(separator: "%")
    }

    private static func trimmed(_ raw: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard let start = raw.firstIndex(where: { $0 > 0x20 }), let end = raw.lastIndex(where: { $0 > 0x20 }) else {
            return UnsafeRawBufferPointer(rebasing: raw[..<0])
        }
        return UnsafeRawBufferPointer(rebasing: raw[start...end])
    }

    private func takePart(
        kind: BibBlock.Kind, _ raw: UnsafeRawBufferPointer, _ state: inout FileState, _ wanted: (Record) -> Bool
    ) throws {
        let fields = BibliographyPart.fields(kind: kind.rawValue, file: state.name, raw: raw)
        let text = SHA256Digest.of(raw).hex
        state.texts[text, default: 0] += 1
        let number = state.texts[text] ?? 1
        if state.isExport {
            // An export repeats definitions where they are needed, and names no file that its parts came from.
            let known = knownParts[kind.rawValue + text] ?? []
            if let localID = known.dropFirst(kind == .string ? 0 : number - 1).first {
                state.items.append("part:" + localID)
                return intake.passKnown()
            }
            state.hasNewParts = true
        }
        let localID = Self.partID(kind: kind.rawValue, file: state.name, text: text, number: number)
        state.items.append("part:" + localID)
        if state.isExport { knownParts[kind.rawValue + text, default: []].append(localID) }
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
        if known[key] == nil, !key.isEmpty {
            let usual = DeterministicID.make(RecordType.publication, key)
            // A publication of that id and another key was renamed since; it is no other entry's to become.
            if !localIDs.contains(usual) { return try takeNew(record.identified(as: usual), key: key, &state) }
        }
        let incoming = try Fields.parse(fields)
        if let known = try match(key, incoming, state) {
            state.matched.insert(known.localID)
            try intake.take(carryLinks(from: known.fields, to: record, incoming).identified(as: known.localID))
        } else {
            try takeTwin(record, incoming, key: key, &state)
        }
    }

    private func takeNew(_ record: Record, key: String, _ state: inout FileState) throws {
        let outcome = try intake.take(record)
        state.matched.insert(record.localID)
        if case .protect = outcome.decision { return }
        known[key, default: []].append(record.localID)
    }

    /// Another work under a known key, or an entry without a key: its id is made from its text.
    private func takeTwin(_ record: Record, _ incoming: [Field], key: String, _ state: inout FileState) throws {
        let text = Publication.textDigest(incoming)
        state.texts[text, default: 0] += 1
        let id = Publication.twinID(key: key, incoming, number: state.texts[text] ?? 1)
        for known in [DeterministicID.make(RecordType.publication, key), id] where try isRenamed(known, incoming, state)
        {
            state.matched.insert(known)
            return intake.passKnown()
        }
        state.matched.insert(id)
        let outcome = try intake.take(record.identified(as: id))
        guard case .add = outcome.decision else { return }
        let first = known[key]?.first
        known[key, default: []].append(id)
        if let first, !key.isEmpty {
            try intake.conflict(kind: "publication", subject: key, existing: first, incoming: id)
        }
    }

    /// The store's publication that an entry is: the same text, else, for the first entry of that key in its file, the
    /// same work. One that another entry of the file was already is nobody else's.
    private func match(
        _ key: String, _ incoming: [Field], _ state: FileState
    ) throws -> (localID: String, fields: [Field])? {
        guard let candidates = known[key] else { return nil }
        let mine = bibTeX(incoming)
        var work: (localID: String, fields: [Field])?
        for localID in candidates where !state.matched.contains(localID) {
            guard
                let existing = try store.records(localID: localID)
                    .first(where: { $0.record.type == RecordType.publication && !$0.record.isDeleted })
            else { continue }
            let fields = try Fields.parse(existing.record.fields)
            if bibTeX(fields) == mine { return (localID, fields) }
            if work == nil, state.isKnown, !key.isEmpty, state.keys[key] == 1, Publication.isSameWork(fields, incoming)
            {
                work = (localID, fields)
            }
        }
        return work
    }

    /// Whether a publication is an entry that has got another key since: nobody's file takes the new key back.
    private func isRenamed(_ localID: String, _ incoming: [Field], _ state: FileState) throws -> Bool {
        guard localIDs.contains(localID), !state.matched.contains(localID) else { return false }
        let known = try store.records(localID: localID)
            .first { $0.record.type == RecordType.publication && !$0.record.isDeleted }
        guard let known else { return false }
        let fields = try Fields.parse(known.record.fields)
        let key = Fields.string(Publication.citeKey, in: fields)
        return key != Fields.string(Publication.citeKey, in: incoming)
            && Publication.withoutKey(fields) == Publication.withoutKey(incoming)
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
