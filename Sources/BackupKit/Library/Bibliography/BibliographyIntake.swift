/// Takes `.bib` files into a store: entries as publications, and what stands between them, in its order.
///
/// An entry is matched by its cite key and its work. Where the store's publication of that key is another work, both are
/// kept and a conflict is queued: nobody's reference is merged into somebody else's.
final class BibliographyIntake {
    let intake: Intake
    var store: Store { intake.store }
    /// The live publications with each cite key.
    var known: [String: [Candidate]] = [:]
    var lane: IntakeLane?
    let hasher = SHA256Hasher()
    /// The fields of the entry or part at hand.
    var pen = JSONPen()
    /// Hashes of the ids that publications have, or had, and of all cite keys in lower case.
    var used: Set<Int64> = []
    var folded: Set<UInt64> = []
    /// Whether the store had no publication before, not even a deleted one.
    let wasEmpty: Bool
    var keysHere: Set<String>?
    private var filesTaken = 0
    private(set) var partIDs = BibliographyPartIDs()
    /// Told of the files that entries name; nil when nobody wants to know.
    var namedFiles: NamedFiles?
    /// The publications of the file at hand, by the keys that it gives them; nil when nobody wants to know.
    var worksByKey: [String: [String]]?
    /// Whether what a file does not hold any more goes.
    var mirrors = false
    /// Keys and fields with other values in other files.
    var differing: [DifferenceGroup: [Report]] = [:]
    /// The macros that this import has met, and those that files with something new use and do not define.
    var macros = (defined: Set<String>(), unknown: [(path: String, names: Set<String>)]())
    /// What each file held, and in which order, when it was imported last.
    private var orders: [String: Set<String>] = [:]

    /// By which ids the files remember publications that have others now.
    let memories: [String: String]
    /// The publications that decisions have merged into another one, by the local id of that.
    private(set) var mergedInto: [String: [String]] = [:]
    /// Those of them that are the same entry with a correction.
    private(set) var corrected: [String: Set<String>] = [:]
    /// The publications that are kept on this device only.
    private(set) var kept = KeptPublications()

    init(_ intake: Intake) throws {
        self.intake = intake
        let store = intake.store
        memories = try store.memories()
        used = try store.localIDs(type: RecordType.publication)
        used.formUnion(try store.deletedListings().map(store.hasher.key))
        wasEmpty = used.isEmpty
        try store.forEachLive(type: RecordType.bibliographyPart) { stored in
            let fields = try stored.record.fieldsWithOneText()
            let kind = Fields.string("kind", in: fields) ?? ""
            if kind == BibliographyPart.order {
                let file = BibliographyPart.file(of: fields)
                let isOld = Fields.string("file", in: fields) != file
                if isOld, orders[file] != nil { return }
                orders[file] = Set(Fields.strings("items", in: fields))
            } else {
                try partIDs.note(stored.record.localID, kind, fields)
            }
        }
        try store.forEachLive(type: RecordType.publication) { stored in
            let fields = try Fields.parse(stored.record.fields)
            let key = Fields.string(Publication.citeKey, in: fields) ?? ""
            known[key, default: []].append(Candidate(localID: stored.record.localID, text: text(of: fields)))
            folded.insert(store.hasher.text(key.lowercased()))
            if stored.record.isLocalOnly { kept.add(stored.record, fields) }
            guard !stored.record.takenIn.isEmpty else { return }
            mergedInto[stored.record.localID] = stored.record.idsTakenIn
            corrected[stored.record.localID] = stored.record.idsCorrected
        }
    }

    struct Candidate {
        let localID: String
        /// A hash of the entry as it was written.
        let text: UInt64
        /// The last file, by its number in this import, that had it.
        var file = 0
        /// The last file that had it beside another one of its key.
        var fileWithTwin = 0
    }

    typealias Wanted = (Record) -> Bool

    /// `time` is when the file was last changed: what its entries say is as old as that.
    func take(
        path: String, name: String, time: Timestamp, origin: FileOrigin = .place, wanted: Wanted? = nil
    ) throws {
        filesTaken += 1
        let changes = intake.result.added + intake.result.updated
        let memory = origin.memory(of: path)
        let realPath = if case .place = origin { memory } else { nil as String? }
        let file = try BibliographyFile.open(path, origin)
        if let finding = file.finding { intake.note(finding) }
        let before = try realPath.flatMap(nameBefore)
        let hasParted = try realPath.map { try self.hasParted(file.text, at: $0, name, from: before) } ?? false
        var state = FileState(
            name: try identity(of: file.text, realPath, name, before: hasParted ? nil : before), text: file.text,
            path: path, realPath: realPath, memory: memory, time: time, number: filesTaken, importTime: store.now())
        if let realPath { try followMove(of: state.name, to: realPath) }
        state.isAtItsPlace = hasParted || before == state.name
        state.isExport = BibliographyPart.isExport(state.name, at: name)
        if let memory {
            state.broughtBefore = try store.brought(by: memory)
            state.saidBefore = try store.heldSince(by: memory)
        }
        if wanted == nil, !mirrors, intake.takesBatches, time <= store.clock.now() { lane = newLane() }
        defer { lane = nil }
        var reader = BibReader()
        try file.text.forEachChunk { chunk in
            try reader.feed(chunk) { try take($0, &state, wanted) }
        }
        try reader.finish { try take($0, &state, wanted) }
        try takeWaiting(&state, wanted)
        try takeOrder(&state, wanted)
        try flush()
        noteLinesLeft(state)
        if intake.result.added + intake.result.updated > changes {
            noteUnknown(state)
        }
        if state.hasStrayText, !state.hasBlocks {
            intake.note(
                Finding(
                    .malformed, .warning, state.shownPath, "holds no BibTeX entry; its text was kept",
                    remedy: "save it as BibTeX in the program that it comes from, and import that"))
        }
        reportLeftHere(state)
        if mirrors {
            try store.checkTypeIndex()
            try mirror(&state)
        } else if realPath != nil {
            noteLeftOut(state)
        }
        if let memory {
            try store.noteImported(
                path: memory, name: realPath == nil ? "" : state.name, brought: state.brought, since: state.said,
                isPart: state.isDamaged || state.damagedRow != nil || state.hasUnwanted)
        }
    }

    private func takeOrder(_ state: inout FileState, _ wanted: Wanted?) throws {
        if state.isExport { try keepOrders(of: Set(state.items)) }
        let isOrder =
            !state.isExport || state.hasNewParts || orders[state.name] != nil
            || state.isInOrder && wasEmpty && orders.isEmpty
        guard !state.items.isEmpty, isOrder else { return }
        pen.clear()
        BibliographyPart.write(order: try wantedItems(state), file: state.name, with: &pen)
        try takeWritten(
            localID: DeterministicID.make(RecordType.bibliographyPart, "order", state.name), &state, wanted)
    }

    private func newLane() -> IntakeLane {
        let zone = RecordType.libraryZone
        return IntakeLane(intake, sorts: [(zone, RecordType.publication), (zone, RecordType.bibliographyPart)]) {
            [unowned self] record, decision in
            guard case .protect = decision, record.type == RecordType.publication else { return }
            let key = try Fields.strings(named: [Publication.citeKey], of: record.fields)[0] ?? ""
            known[key]?.removeAll { $0.localID == record.localID }
        }
    }

    /// Until this is done, the store must not be asked: it may be at work on another thread.
    func flush() throws {
        try lane?.flush()
    }

    /// The name that a file goes by: the one that it was imported by from this place, else that of a library that it shares
    /// most of its entries with, else one that its text is in: every project has a `references.bib`, on every device.
    private func identity(
        of file: FileHandle, _ realPath: String?, _ name: String, before: String?
    ) throws -> String {
        if let before,
            // An export may have no order of its own.
            orders[before] != nil || before.hasPrefix(name + "#") || BibliographyPart.isExport(before, at: name)
        {
            return before
        }
        let text = try textMark(of: file)
        let candidates = try orders.keys.sorted().filter { try mayBe($0, name, text, at: realPath) }
        return try sameLibrary(as: file, among: candidates) ?? name + text
    }

    /// Whether a file may be the known one of that name. One that still lies at its place is another file, unless the text is
    /// what that was first. Of one without a place on this device, as after a sync, the base name must be the same.
    private func mayBe(_ known: String, _ name: String, _ text: String, at realPath: String?) throws -> Bool {
        guard let realPath, !known.hasSuffix(text), !BibliographyPart.isExport(known, at: name) else { return true }
        let others = try store.importedPaths(named: known).filter { $0 != realPath }
        if try others.contains(where: { try FileStatus.ofName($0) != nil }) { return false }
        return !others.isEmpty || known == name || known.hasPrefix(name + "#")
    }

    /// Whether a file that began as a copy of another one says something else by now. The one that says what both said first finds
    /// the name again by its text.
    private func hasParted(_ file: FileHandle, at realPath: String, _ name: String, from known: String?) throws -> Bool
    {
        guard let known, !BibliographyPart.isExport(known, at: name) else { return false }
        let copies = try store.importedPaths(named: known).filter {
            try $0 != realPath && FileStatus.ofName($0)?.isRegular == true
        }
        guard !copies.isEmpty else { return false }
        let text = try textMark(of: file)
        return try copies.contains { try textMark(of: BibliographyFile.open($0, .place).text) != text }
    }

    private func textMark(of file: FileHandle) throws -> String {
        try file.forEachChunk { hasher.update($0) }
        return "#\(hasher.finish().hex.prefix(16))"
    }

    private func nameBefore(ofPath path: String) throws -> String? {
        try store.importedName(ofPath: path).map(BibliographyPart.fileName)
    }

    private func sameLibrary(as file: FileHandle, among candidates: [String]) throws -> String? {
        guard !candidates.isEmpty else { return nil }
        var keys: Set<String> = []
        var parts: Set<[String]> = []
        var reader = BibReader()
        func note(_ block: BibBlock) {
            if block.kind == .entry {
                keys.insert("key:" + block.key)
            } else if block.kind != .byteOrderMark {
                let raw = block.kind == .text ? Self.trimmed(block.raw) : block.raw
                parts.insert([block.kind.rawValue, textDigest(of: raw)])
                if let slot = BibliographyPart.slot(of: raw, kind: block.kind.rawValue) {
                    parts.insert([block.kind.rawValue, "slot \(slot)"])
                }
            }
        }
        try file.forEachChunk { reader.feed($0, emit: note) }
        reader.finish(emit: note)
        return candidates.first { candidate in
            let known = orders[candidate] ?? []
            let ids = parts.map { "part:" + partID(kind: $0[0], file: candidate, text: $0[1], number: 1) }
            let common = known.intersection(keys.union(ids)).count
            // Measured both ways: a few entries of a large library are not that library.
            return common * 2 > known.count && common * 2 > keys.count + parts.count
        }
    }

    func partID(kind: String, file: String, text: String, number: Int) -> String {
        DeterministicID.make(hasher, RecordType.bibliographyPart, kind, file, text, String(number))
    }

    /// Of the text and not of its bytes: a file that is saved in another encoding holds the same parts.
    private func textDigest(of raw: UnsafeRawBufferPointer) -> String {
        if BibText.isUTF8(raw) {
            hasher.update(raw)
        } else {
            Array(BibText.decode(raw).text.utf8).withUnsafeBytes(hasher.update)
        }
        return hasher.finish().hex
    }

    private func take(_ block: BibBlock, _ state: inout FileState, _ wanted: Wanted?) throws {
        try sparing(&state) { try takeBlock(block, &$0, wanted) }
    }

    private func takeBlock(_ block: BibBlock, _ state: inout FileState, _ wanted: Wanted?) throws {
        for problem in block.problems { report(problem, block, state) }
        if block.kind != .text, block.kind != .byteOrderMark { state.hasBlocks = true }
        reportLongMacros(block, state)
        noteMacros(block, &state)
        if block.kind == .unreadable || !block.problems.allSatisfy(\.isReadInFull) { state.isDamaged = true }
        switch block.kind {
        case .entry: try takeOriginal(of: block, &state, wanted)
        case .byteOrderMark: break
        case .text:
            noteZeros(in: block, &state)
            try takeText(block.raw, &state, wanted)
        case .string:
            state.macros.define(from: block)
            try takePart(kind: .string, block.raw, &state, wanted)
        case .preamble, .comment, .unreadable:
            if block.kind == .comment { namedFiles?.noteComment(block.raw, in: state.path) }
            try takePart(kind: block.kind, block.raw, &state, wanted)
        }
    }

    /// An entry of an export, as it was before it was exported.
    private func takeOriginal(of block: BibBlock, _ state: inout FileState, _ wanted: Wanted?) throws {
        let lines = state.lines.lines(of: block.key)
        let marks = lines.marks
        state.links = lines.links
        state.wishes = namedFiles?.note(block, in: state.path, state.macros, alsoNaming: state.links) ?? 0..<0
        guard !marks.isEmpty else { return try takeEntry(block, &state, wanted) }
        let links = state.links.map { BibEntryView.Link(path: $0, place: $0) }
        let original = BibEntryView.original(of: Array(block.raw), marks: marks, links: links)
        try original.withUnsafeBytes { raw in
            try BibParser.parse(raw) { block in
                if block.kind == .entry { try takeEntry(block, &state, wanted) }
            }
        }
    }

    /// Text between blocks: our own marks are understood, blank lines mean nothing, the rest is the user's and is kept.
    private func takeText(_ raw: UnsafeRawBufferPointer, _ state: inout FileState, _ wanted: Wanted?) throws {
        let mark = Array(BibliographyWriter.mark.utf8)
        var start = 0
        var lineStart = 0
        while lineStart < raw.count {
            let rest = UnsafeRawBufferPointer(rebasing: raw[lineStart...])
            let lineEnd = rest.firstIndex(of: 0x0A).map { lineStart + $0 + 1 } ?? raw.count
            if rest.starts(with: mark) {
                let line = UnsafeRawBufferPointer(rebasing: raw[lineStart + mark.count..<lineEnd])
                let text = String(decoding: Self.trimmed(line), as: UTF8.self)
                let before = UnsafeRawBufferPointer(rebasing: raw[start..<lineStart])
                // The line that stands before the first mark for JabRef is ours, too.
                let isOurs =
                    text.hasPrefix("publications")
                    && Self.trimmed(before).elementsEqual(BibliographyWriter.encodingLine.utf8)
                if !isOurs { try takePlainText(before, &state, wanted) }
                takeMark(text, &state)
                start = lineEnd
            }
            lineStart = lineEnd
        }
        try takePlainText(UnsafeRawBufferPointer(rebasing: raw[start...]), &state, wanted)
    }

    private func takeMark(_ text: String, _ state: inout FileState) {
        if !state.lines.take(text), text.hasPrefix("publications"), state.items.isEmpty {
            state.isInOrder = text.hasSuffix(BibliographyWriter.sourceOrder)
            if !state.isExport { state.name = BibliographyPart.fileName(BibliographyPart.exported + state.name) }
            state.isExport = true
        }
    }

    private func takePlainText(
        _ raw: UnsafeRawBufferPointer, _ state: inout FileState, _ wanted: Wanted?
    ) throws {
        let text = Self.trimmed(raw)
        if !state.hasStrayText, !state.hasBlocks { state.hasStrayText = !BibComments.areAll(of: text) }
        if text.count > 0 { try takePart(kind: .text, text, &state, wanted) }
    }

    static func trimmed(_ raw: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard let start = raw.firstIndex(where: { $0 > 0x20 }), let end = raw.lastIndex(where: { $0 > 0x20 }) else {
            return UnsafeRawBufferPointer(rebasing: raw[..<0])
        }
        return UnsafeRawBufferPointer(rebasing: raw[start...end])
    }

    private func takePart(
        kind: BibBlock.Kind, _ raw: UnsafeRawBufferPointer, _ state: inout FileState, _ wanted: Wanted?
    ) throws {
        noteBrought(part: raw, kind, &state)
        let text = textDigest(of: raw)
        state.texts[text, default: 0] += 1
        let number = state.texts[text] ?? 1
        var file = state.name
        var localID = partID(kind: kind.rawValue, file: file, text: text, number: number)
        if state.isExport {
            // An export repeats definitions where they are needed, and names no file that its parts came from.
            if let known = partIDs.shown(as: raw, kind, number: kind == .string ? 1 : number) {
                let all = partIDs.all(shownAs: raw, kind)
                state.parts.formUnion(kind == .string ? all : [known])
                state.items.append(BibliographyPart.item + known)
                try keep(all)
                return intake.passKnown()
            }
            if kind == .string, MacroMeanings.Writer.isUndefinition(raw) { return }
            state.hasNewParts = true
        }
        if partIDs.contains(localID) {
            // The same record as ever.
        } else if let known = partIDs.all(shownAs: raw, kind, in: file).first(where: { !state.parts.contains($0) }) {
            localID = known
        } else if let slot = BibliographyPart.slot(of: raw, kind: kind.rawValue) {
            (localID, file) = try record(of: raw, slot, kind, &state)
        }
        state.parts.insert(localID)
        state.items.append(BibliographyPart.item + localID)
        pen.clear()
        BibliographyPart.write(kind: kind.rawValue, file: file, raw: raw, with: &pen)
        if state.isExport { partIDs.note(localID, kind.rawValue, Array(raw), file: file) }
        try takeWritten(localID: localID, &state, wanted)
    }

    /// Takes the part whose fields the pen has written.
    private func takeWritten(localID: String, _ state: inout FileState, _ wanted: Wanted?) throws {
        let (time, isNews) = noteSaid(part: localID, &state)
        if let lane, !isNews {
            return try lane.add(sort: 1, createdAt: time, modifiedAt: time) {
                $0 += localID.utf8
            } fields: {
                $0 += pen.written
            }
        }
        let record = Record(
            id: RecordID(zone: RecordType.libraryZone, name: localID), type: RecordType.bibliographyPart,
            localID: localID, fields: String(decoding: pen.written, as: UTF8.self), createdAt: time, modifiedAt: time)
        guard wanted?(record) != false else { return }
        if intake.overwrite, BibliographyPart.isOrder(record) { return intake.orders.append(record) }
        try take(part: record, isNews: isNews, &state)
    }
}
