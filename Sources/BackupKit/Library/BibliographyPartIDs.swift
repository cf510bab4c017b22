/// The live records of what stands between entries: by what they say, and by what they are the only ones of.
struct BibliographyPartIDs {
    private struct Slot: Hashable {
        let kind: String
        let slot: String
    }

    private var all: Set<String> = []
    private var byText: [[UInt8]: [(localID: String, file: String)]] = [:]
    private var bySlot: [Slot: [(localID: String, file: String, raw: [UInt8])]] = [:]

    mutating func note(_ localID: String, _ kind: String, _ fields: [Field]) throws {
        note(localID, kind, Publication.writtenBytes(of: fields) ?? [], file: BibliographyPart.file(of: fields))
    }

    mutating func note(_ localID: String, _ kind: String, _ raw: [UInt8], file: String) {
        guard all.insert(localID).inserted else { return }
        byText[Self.text(raw, kind), default: []].append((localID, file))
        guard let slot = BibliographyPart.slot(of: raw, kind: kind) else { return }
        bySlot[Slot(kind: kind, slot: slot), default: []].append((localID, file, raw))
    }

    /// A digest of what `library.bib` shows of a part.
    private static func text(_ raw: [UInt8], _ kind: String) -> [UInt8] {
        let shown = BibliographyPart.shown(raw, isText: kind == BibBlock.Kind.text.rawValue)
        return Array(kind.utf8) + shown.withUnsafeBytes(SHA256Digest.of).hex.utf8
    }

    func contains(_ localID: String) -> Bool { all.contains(localID) }

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
    func version(
        of raw: UnsafeRawBufferPointer, _ slot: String, _ kind: BibBlock.Kind, file: String?, usual: String,
        but taken: Set<String>
    ) -> (localID: String, file: String)? {
        let all = bySlot[Slot(kind: kind.rawValue, slot: slot)] ?? []
        let free = all.filter { known in
            !taken.contains(known.localID) && (file.map { sameBytes(known.file, $0) } ?? (all.count == 1))
        }
        let found = free.first { $0.raw.elementsEqual(raw) } ?? free.first { $0.localID == usual } ?? free.first
        return found.map { ($0.localID, $0.file) }
    }
}
