/// How an entry stands in the `library.bib` of an export: in UTF-8, and naming its files where they lie beside it. Marks
/// before the entry say what is different from what was imported, and give an import the entry back as it was.
struct BibEntryView {
    /// A file of the entry: its path in the store, and where it lies beside `library.bib`.
    struct Link: Equatable {
        let path: String
        let place: String
    }

    private(set) var bytes: [UInt8]
    /// Lines for before the entry, without their beginning.
    private(set) var marks: [String] = []
    private(set) var isConverted = false
    /// Whether some bytes are of no encoding that is known, so that what they stand for was guessed.
    private(set) var isGuess = false
    /// Files that no field of the entry could be made to name.
    private(set) var unnamed: [String] = []

    private static let encoding = "encoding = windows-1252"
    private static let was = "was "
    private static let added = "added = "
    private static let bibDesk = "Bdsk-File-"
    /// Fields that hold paths. `Local-Url` is an address of one machine.
    private static let pathFields = ["file", "pdf", "localfile", "file-path"]

    /// `naming` gives every link a `Bdsk-File-n`, the only field by which imbib finds files.
    init(of entry: [UInt8], links: [Link] = [], naming: Bool = false) {
        let (text, isUTF8) = BibText.decode(entry)
        bytes = isUTF8 ? entry : Array(text.utf8)
        if !isUTF8 {
            isConverted = true
            marks.append(Self.encoding)
            isGuess = text.unicodeScalars.contains { (0x80..<0xA0).contains($0.value) }
        }
        if links.isEmpty { return }
        placeLinks(links)
        if naming { nameLinks(links) }
    }

    /// Where the files of the fields lie; `written` are the fields as they were before a view was made of them.
    private static func places(_ written: [(name: String, value: [UInt8])], _ links: [Link]) -> BibLinkPlaces {
        BibLinkPlaces(
            written.compactMap { field in inner(field.name, field.value).map { (field.name, $0) } }, links)
    }

    private static func written(_ entry: BibEntryLayout) -> [(name: String, value: [UInt8])] {
        entry.fields.map { field in
            let isPlain = field.style == .braces || field.style == .quotes
            let value = isPlain ? Array(entry.slice(Int(field.valueStart), Int(field.valueEnd))) : []
            return (entry.text(field.nameStart, field.nameEnd), value)
        }
    }

    /// What stands between the braces or quotes of a field that may name files.
    private static func inner(_ name: String, _ written: [UInt8]) -> String? {
        let lower = name.lowercased()
        guard written.count >= 2, lower.hasPrefix(bibDesk.lowercased()) || pathFields.contains(lower) else {
            return nil
        }
        return BibText.decode(Array(written[1..<written.count - 1])).text
    }

    /// The value that a field has where `place` says; nil when it needs no other.
    private static func value(name: String, written: [UInt8], place: ([String]) -> String?) -> [UInt8]? {
        guard let inner = inner(name, written) else { return nil }
        let placed = BibFileLinks.replacing(field: name, value: inner, place: place)
        guard !sameBytes(placed, inner) else { return nil }
        let style: BibField.Style = written[0] == BibByte.quote ? .quotes : .braces
        // A name with a brace of its own cannot stand in a value.
        return try? BibWriter.value(Array(placed.utf8), of: name, style: style)
    }

    private static func value(name: String, written: [UInt8], _ places: BibLinkPlaces) -> [UInt8]? {
        value(name: name, written: written) { $0.first.flatMap { places.place(of: $0, in: name) } }
    }

    /// Where earlier versions thought that the file lies: each name for itself.
    private static func place(of readings: [String], _ links: [Link]) -> String? {
        place(of: readings, links) { $0 } ?? place(of: readings, links, by: RecordFiles.formerPath)
    }

    private static func place(of readings: [String], _ links: [Link], by path: (String) -> String?) -> String? {
        var best: (count: Int, place: String)?
        for reading in readings {
            for link in links {
                let count = path(link.path).map { FilePath.commonEnd(reading, $0) } ?? 0
                if count > best?.count ?? 0 { best = (count, link.place) }
            }
        }
        return best?.place
    }

    private mutating func placeLinks(_ links: [Link]) {
        guard let entry = BibEntryLayout(bytes) else { return }
        let written = Self.written(entry)
        let places = Self.places(written, links)
        // From the last to the first, so that the places of the others stay.
        for (index, field) in entry.fields.enumerated().reversed() {
            let (name, written) = written[index]
            guard let value = Self.value(name: name, written: written, places) else { continue }
            let candidate = Array(bytes[..<Int(field.valueStart)]) + value + Array(bytes[Int(field.valueEnd)...])
            guard BibEntryLayout(candidate)?.fields.count == entry.fields.count else { continue }
            bytes = candidate
            marks.append("\(Self.was)\(index + 1) = \(BibMark.escaped(Array(written)))")
        }
    }

    private mutating func nameLinks(_ links: [Link]) {
        guard let entry = BibEntryLayout(bytes) else { return unnamed = links.map(\.place) }
        var names: Set<String> = []
        var named: Set<String> = []
        for field in entry.fields {
            let name = entry.text(field.nameStart, field.nameEnd)
            names.insert(name.lowercased())
            guard name.hasPrefix(Self.bibDesk) else { continue }
            let value = entry.value(of: field, macros: .standard)
            named.formUnion(BibFileLinks.links(field: name, value: value).map(\.path))
        }
        var number = 1
        for link in links where !named.contains(link.place) {
            while names.contains("\(Self.bibDesk)\(number)".lowercased()) { number += 1 }
            let name = "\(Self.bibDesk)\(number)"
            names.insert(name.lowercased())
            let change = BibEditor.Change.set(
                field: name, value: BibFileLinks.bibDeskValue(relativePath: link.place))
            guard let edited = try? BibEditor.apply([change], to: bytes) else {
                unnamed.append(link.place)
                continue
            }
            bytes = edited
            marks.append("\(Self.added)\(name)")
        }
    }

    // MARK: The way back

    /// Whether a mark is one of an entry's view.
    static func isMark(_ text: String) -> Bool {
        text == encoding || text.hasPrefix(was) || text.hasPrefix(added)
    }

    /// The entry that a view was made of. What somebody has changed in it since stays changed.
    static func original(of view: [UInt8], marks: [String], links: [Link]) -> [UInt8] {
        var bytes = view
        var places: BibLinkPlaces?
        for mark in marks.reversed() {
            if mark == encoding {
                bytes = BibText.encode(BibText.decode(bytes).text, asUTF8: false)
            } else if mark.hasPrefix(added) {
                bytes = without(String(mark.dropFirst(added.count)), bytes) ?? bytes
            } else if mark.hasPrefix(was) {
                let known = places ?? placesBefore(bytes, marks, links)
                places = known
                bytes = before(mark, bytes, known, links) ?? bytes
            }
        }
        return bytes
    }

    /// Without a field that a view has added at its end, to the byte.
    private static func without(_ name: String, _ bytes: [UInt8]) -> [UInt8]? {
        guard let entry = BibEntryLayout(bytes), let field = entry.fields.last, entry.isNamed(field, name) else {
            return nil
        }
        let value = entry.value(of: field, macros: .standard)
        var start = Int(field.nameStart)
        while start > 0, BibByte.isWhite(bytes[start - 1]) { start -= 1 }
        let end = Int(field.itemEnd)
        var candidates = [entry.replacing(start, end, with: [])]
        // In an entry without fields a line end came with it.
        let lineEnd = end + entry.lineBreak.count
        if entry.slice(end, lineEnd).elementsEqual(entry.lineBreak) {
            candidates.append(entry.replacing(start, lineEnd, with: []))
        }
        candidates += candidates.compactMap(withoutLastComma)
        return candidates.first { (try? BibEditor.apply([.set(field: name, value: value)], to: $0)) == bytes }
    }

    /// Without the comma behind the last field, or the key, that may have come with another field.
    private static func withoutLastComma(_ bytes: [UInt8]) -> [UInt8]? {
        guard let entry = BibEntryLayout(bytes) else { return nil }
        let (bare, end) =
            entry.fields.last.map { (Int($0.valueEnd), Int($0.itemEnd)) }
            ?? (Int(entry.head.keyEnd), Int(entry.head.keyItemEnd))
        return end > bare ? entry.replacing(end - 1, end, with: []) : nil
    }

    /// Where the view placed the files of the entry that it was made of.
    private static func placesBefore(_ bytes: [UInt8], _ marks: [String], _ links: [Link]) -> BibLinkPlaces {
        var written = BibEntryLayout(bytes).map(written) ?? []
        for (index, value) in marks.compactMap(former) where written.indices.contains(index) {
            written[index].value = value
        }
        return places(written, links)
    }

    /// The place of a field and the value that it had; `mark` is "was 2 = {…}".
    private static func former(_ mark: String) -> (index: Int, value: [UInt8])? {
        guard mark.hasPrefix(was) else { return nil }
        let parts = mark.dropFirst(was.count).split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1] == "=", let number = Int(parts[0]), number > 0 else { return nil }
        return (number - 1, BibMark.unescaped(parts[2]))
    }

    /// With the value that a field had, unless somebody has given it another since.
    private static func before(_ mark: String, _ bytes: [UInt8], _ places: BibLinkPlaces, _ links: [Link]) -> [UInt8]? {
        guard let (index, written) = former(mark), let entry = BibEntryLayout(bytes),
            entry.fields.indices.contains(index)
        else { return nil }
        let field = entry.fields[index]
        let name = entry.text(field.nameStart, field.nameEnd)
        let now = entry.slice(Int(field.valueStart), Int(field.valueEnd))
        let views = [
            value(name: name, written: written, places), value(name: name, written: written) { place(of: $0, links) },
        ]
        guard views.contains(where: { $0?.elementsEqual(now) == true }) else { return nil }
        return entry.replacing(Int(field.valueStart), Int(field.valueEnd), with: written)
    }
}

/// Text in a comment line of ours: BibTeX would take an `@` for the start of an entry, even here.
enum BibMark {
    private static let digits = Array("0123456789ABCDEF".utf8)

    static func escaped(_ text: [UInt8]) -> String {
        var out: [UInt8] = []
        for byte in text {
            switch byte {
            case BibByte.at, BibByte.percent, BibByte.lineFeed, BibByte.carriageReturn:
                out += [BibByte.percent, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: out.append(byte)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    static func unescaped(_ text: some StringProtocol) -> [UInt8] {
        let bytes = Array(text.utf8)
        var out: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == BibByte.percent, index + 2 < bytes.count,
                let byte = UInt8(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self), radix: 16)
            {
                out.append(byte)
                index += 3
            } else {
                out.append(bytes[index])
                index += 1
            }
        }
        return out
    }
}
