/// The live records of what stands between entries: by what they say, and by what they are the only ones of.
struct BibliographyPartIDs {
    private struct Slot: Hashable {
        let kind: String
        let slot: String
    }

    private var all: [String: (text: [UInt8], slot: Slot?)] = [:]
    private var byText: [[UInt8]: [(localID: String, file: String)]] = [:]
    private var bySlot: [Slot: [(localID: String, file: String, raw: [UInt8])]] = [:]

    mutating func note(_ localID: String, _ kind: String, _ fields: [Field]) throws {
        note(localID, kind, Publication.writtenBytes(of: fields) ?? [], file: BibliographyPart.file(of: fields))
    }

    /// Notes a record, or another version of one that is noted.
    mutating func note(_ localID: String, _ kind: String, _ raw: [UInt8], file: String) {
        if let former = all[localID] {
            byText[former.text]?.removeAll { $0.localID == localID }
            if let slot = former.slot { bySlot[slot]?.removeAll { $0.localID == localID } }
        }
        let text = Self.text(raw, kind)
        let slot = BibliographyPart.slot(of: raw, kind: kind).map { Slot(kind: kind, slot: $0) }
        all[localID] = (text, slot)
        byText[text, default: []].append((localID, file))
        if let slot { bySlot[slot, default: []].append((localID, file, raw)) }
    }

    /// A digest of what `library.bib` shows of a part.
    static func text(_ raw: [UInt8], _ kind: String) -> [UInt8] {
        let shown = BibliographyPart.shown(raw, isText: kind == BibBlock.Kind.text.rawValue)
        return Array(kind.utf8) + shown.withUnsafeBytes(SHA256Digest.of).hex.utf8
    }

    /// The macros that files define, in lower case.
    var macros: Set<String> {
        let defining = bySlot.filter { $0.key.kind == BibBlock.Kind.string.rawValue && !$0.value.isEmpty }
        return Set(defining.keys.flatMap { $0.slot.split(separator: ",") }.map(String.init))
    }

    func contains(_ localID: String) -> Bool { all[localID] != nil }

    /// The record of a part that an export shows; of several that say the same, the one of that number, from 1.
    func shown(as raw: UnsafeRawBufferPointer, _ kind: BibBlock.Kind, number: Int) -> String? {
        all(shownAs: raw, kind).dropFirst(number - 1).first
    }

    /// The records of all parts that say the same, of one file or of all: an export may show them as one.
    func all(shownAs raw: UnsafeRawBufferPointer, _ kind: BibBlock.Kind, in file: String? = nil) -> [String] {
        let all = byText[Self.text(Array(raw), kind.rawValue)] ?? []
        return all.filter { known in file.map { sameBytes(known.file, $0) } ?? true }.map(\.localID)
    }

    /// The record that a part is another version of, among those of its file that nothing else there is: the one that says
    /// the same, else `usual`, else the first. An export names no file, so there it is the only one of all files.
    /// `isInFile` tells whether the file says what a record says.
    func version(
        of raw: UnsafeRawBufferPointer, _ slot: String, _ kind: BibBlock.Kind, file: String?, usual: String,
        but taken: Set<String>, isInFile: (_ text: [UInt8]) throws -> Bool
    ) rethrows -> (localID: String, file: String)? {
        let all = bySlot[Slot(kind: kind.rawValue, slot: slot)] ?? []
        let free = all.filter { known in
            !taken.contains(known.localID) && (file.map { sameBytes(known.file, $0) } ?? (all.count == 1))
        }
        if let same = free.first(where: { $0.raw.elementsEqual(raw) }) { return (same.localID, same.file) }
        let others = try free.filter { try !isInFile(Self.text($0.raw, kind.rawValue)) }
        return (others.first { $0.localID == usual } ?? others.first).map { ($0.localID, $0.file) }
    }
}

extension BibliographyIntake {
    /// The record of a part that is usually the only one of its slot in a file. A second one gets a record of its own.
    func record(
        of raw: UnsafeRawBufferPointer, _ slot: String, _ kind: BibBlock.Kind, _ state: inout FileState
    ) throws -> (localID: String, file: String) {
        state.slots[slot, default: 0] += 1
        var number = state.slots[slot] ?? 1
        func id() -> String { partID(kind: kind.rawValue, file: state.name, text: "slot \(slot)", number: number) }
        let usual = id()
        let version = try partIDs.version(
            of: raw, slot, kind, file: state.isExport ? nil : state.name, usual: usual, but: state.parts
        ) { text in
            let all = try state.allTexts ?? texts(in: state.text)
            state.allTexts = all
            return all.contains(text)
        }
        if let version { return version }
        while partIDs.contains(id()) || state.parts.contains(id()) { number += 1 }
        return (id(), state.name)
    }

    private func texts(in file: FileHandle) throws -> Set<[UInt8]> {
        var texts: Set<[UInt8]> = []
        var reader = BibReader()
        func note(_ block: BibBlock) {
            if block.kind == .entry { return }
            let raw = block.kind == .text ? Self.trimmed(block.raw) : block.raw
            texts.insert(BibliographyPartIDs.text(Array(raw), block.kind.rawValue))
        }
        try file.forEachChunk { reader.feed($0, emit: note) }
        reader.finish(emit: note)
        return texts
    }
}
