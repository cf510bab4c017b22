/// What the `@string` macros of a library mean to each of its entries.
///
/// Files that were written apart meet in one `library.bib`, where a macro has one meaning at a time, from its definition
/// on. Each entry's fields say what its macros meant where it came from, so the meaning it needs is found by trying. A
/// macro of one meaning is defined at the head of the file; one that is contested is defined where it is needed, after
/// the entries that knew no definition of it (as those that say `month = apr` do, where another file defines `apr`).
struct MacroMeanings {
    /// For each contested macro that an entry uses, the definition it needs; nil where it knew none.
    typealias Choice = [String: Int?]

    struct Definition {
        let name: String
        let value: String
        let bytes: [UInt8]
        /// What the macros within the definition meant.
        let uses: Choice
    }

    private(set) var definitions: [Definition] = []
    private var byName: [String: [Int]] = [:]
    private var contestedNames: Set<String> = []
    private var heldBack: Set<[UInt8]> = []
    /// What was found for uses seen before: thousands of entries say `month = mar`.
    private var answers: [MacroUse: Answer] = [:]
    private typealias Answer = (names: [String], choice: Choice, isFound: Bool)

    /// `parts` are those of all files, each file's in their order.
    init(_ parts: [[Field]]) throws {
        var file: String?
        var macros = BibMacros.standard
        var current: [String: Int] = [:]
        for part in parts where Fields.string("kind", in: part) == BibBlock.Kind.string.rawValue {
            if Fields.string("file", in: part) != file {
                file = Fields.string("file", in: part)
                macros = .standard
                current = [:]
            }
            let bytes = BibliographyPart.shown(Publication.writtenBytes(of: part) ?? [], isText: false)
            bytes.withUnsafeBytes { raw in
                BibParser.parse(raw) { block in
                    guard block.kind == .string else { return }
                    let uses = Choice(uniqueKeysWithValues: block.macroNames().map { ($0, current[$0]) })
                    for field in block.fields {
                        let name = block.name(of: field).lowercased()
                        current[name] = add(name, block.value(of: field, macros: macros), bytes, uses)
                    }
                    macros.define(from: block)
                }
            }
        }
    }

    private mutating func add(_ name: String, _ value: String, _ bytes: [UInt8], _ uses: Choice) -> Int {
        if let known = byName[name]?.first(where: { definitions[$0].value == value && definitions[$0].bytes == bytes })
        {
            return known
        }
        definitions.append(Definition(name: name, value: value, bytes: bytes, uses: uses))
        byName[name, default: []].append(definitions.count - 1)
        return definitions.count - 1
    }

    var isEmpty: Bool { definitions.isEmpty }

    /// Which definitions give an entry's fields the values that are stored. `lost` gets the uses for which none do: the
    /// macro has another meaning by now.
    mutating func choice(for uses: [MacroUse], lost: inout [MacroUse]) -> Choice {
        var choice = Choice()
        for use in uses {
            let (names, alone, isFound) = answer(to: use)
            if !isFound {
                lost.append(use)
            } else if names.contains(where: choice.keys.contains) {
                if !choose(use, names, &choice) { lost.append(use) }
            } else {
                choice.merge(alone) { $1 }
            }
        }
        return choice
    }

    /// The contested macros of a use, and what they mean where no other field has settled that.
    private mutating func answer(to use: MacroUse) -> Answer {
        if let known = answers[use] { return known }
        let defined = Set(use.macros).filter { byName[$0] != nil }.sorted()
        let names = defined.count <= 4 ? defined : []
        var choice = Choice()
        // Too many to try all of them are left as they are.
        let isFound = choose(use, names, &choice) || defined.count > names.count
        answers[use] = (names, choice, isFound)
        return (names, choice, isFound)
    }

    /// Whether some meanings of the macros give the value.
    private func choose(_ use: MacroUse, _ names: [String], _ choice: inout Choice) -> Bool {
        var trial = choice
        let isFound = use.written.withUnsafeBytes { find(use.stored, $0, names[...], &trial) }
        if isFound { choice = trial }
        return isFound
    }

    /// Tries the meanings of one macro after the other; what an earlier field settled stays.
    private func find(
        _ stored: String, _ written: UnsafeRawBufferPointer, _ names: ArraySlice<String>, _ trial: inout Choice
    ) -> Bool {
        guard let name = names.first else {
            var macros = BibMacros.standard
            for case (let name, let index?) in trial { macros.define(name, as: definitions[index].value) }
            return macros.resolve(written) == stored
        }
        let settled = trial[name]
        let meanings = settled.map { [$0] } ?? (byName[name] ?? []).map(Optional.some) + [nil]
        for meaning in meanings {
            trial[name] = .some(meaning)
            if find(stored, written, names.dropFirst(), &trial) { return true }
        }
        trial[name] = settled
        return false
    }

    /// Decides, once all entries have chosen, which macros are contested.
    /// `all`: every macro is, as where a file's definitions stand wherever they did.
    mutating func settle(_ choices: some Sequence<Choice>, all: Bool = false) {
        if all {
            contestedNames = Set(byName.keys)
            heldBack = Set(definitions.map(\.bytes))
            return
        }
        for (name, indices) in byName where Set(indices.map { definitions[$0].value }).count > 1 {
            contestedNames.insert(name)
        }
        for choice in choices { for case (let name, nil) in choice { contestedNames.insert(name) } }
        var before = -1
        // A definition that uses a contested macro stands or falls with it.
        while before != contestedNames.count {
            before = contestedNames.count
            for definition in definitions where !contestedNames.isDisjoint(with: definition.uses.keys) {
                contestedNames.insert(definition.name)
            }
        }
        heldBack = Set(definitions.filter { contestedNames.contains($0.name) }.map(\.bytes))
    }

    /// Whether a part is a definition that cannot stand at the head of the file.
    func holdsBack(_ bytes: [UInt8]) -> Bool { heldBack.contains(bytes) }

    func contested(_ choice: Choice) -> Choice {
        choice.filter { contestedNames.contains($0.key) }
    }

    static func precedes(_ left: Choice, _ right: Choice) -> Bool { rank(left).lexicographicallyPrecedes(rank(right)) }

    private static func rank(_ choice: Choice) -> [String] {
        let unknown = choice.values.count { $0 == nil }
        return [String(1000 - min(unknown, 999) + 1000)]
            + choice.sorted { $0.key < $1.key }.map { "\($0.key) \(1_000_000 + ($0.value ?? -1))" }
    }

    func writer() -> Writer { Writer(self) }

    /// Follows what each contested macro means at the point of the file that was reached.
    struct Writer {
        private let meanings: MacroMeanings
        private var current: [String: Int] = [:]
        private var written: Set<[UInt8]> = []

        init(_ meanings: MacroMeanings) { self.meanings = meanings }

        /// Whether an entry with this choice can be written right here.
        func isInForce(_ choice: Choice) -> Bool { choice.allSatisfy { current[$0.key] == $0.value } }

        /// The definitions that entries with this choice need and that are not in force.
        mutating func definitions(for choice: Choice) -> [[UInt8]] {
            var out: [[UInt8]] = []
            for (name, index) in choice.sorted(by: { $0.key < $1.key }) {
                if let index {
                    define(index, &out, depth: 0)
                } else if current[name] != nil {
                    // No definition can be taken back.
                    out.append(Self.undefined(name))
                    current[name] = nil
                }
            }
            return out
        }

        /// A definition that says what an unknown macro is read as.
        static func undefined(_ name: String) -> [UInt8] { Array("@string{\(name) = {\(name)}}".utf8) }

        static func isUndefinition(_ raw: UnsafeRawBufferPointer) -> Bool {
            guard let start = raw.firstIndex(of: BibByte.openBrace),
                let end = raw.firstIndex(where: { BibByte.isWhite($0) }), start < end
            else { return false }
            let name = BibText.decode(Array(raw[(start + 1)..<end])).text
            return raw.elementsEqual(undefined(name))
        }

        private mutating func define(_ index: Int, _ out: inout [[UInt8]], depth: Int) {
            let definition = meanings.definitions[index]
            guard current[definition.name] != index, depth < 64 else { return }
            for case (let name, let needed?) in definition.uses.sorted(by: { $0.key < $1.key })
            where meanings.contestedNames.contains(name) {
                define(needed, &out, depth: depth + 1)
            }
            out.append(definition.bytes)
            written.insert(definition.bytes)
            // One block may define several.
            for (other, candidate) in meanings.definitions.enumerated() where candidate.bytes == definition.bytes {
                current[candidate.name] = other
            }
            current[definition.name] = index
        }

        /// Takes a definition that stands where it did; false when it is in force already.
        mutating func define(_ bytes: [UInt8]) -> Bool {
            let places = meanings.definitions.indices.filter { meanings.definitions[$0].bytes == bytes }
            if !places.isEmpty, places.allSatisfy({ current[meanings.definitions[$0].name] == $0 }) { return false }
            for place in places { current[meanings.definitions[place].name] = place }
            written.insert(bytes)
            return true
        }

        /// What nothing needed, at the end: it is the user's all the same.
        func unwritten() -> [[UInt8]] {
            var seen = written
            return meanings.definitions.map(\.bytes).filter { meanings.holdsBack($0) && seen.insert($0).inserted }
        }
    }
}

/// A field that is written with macros, and what it said where it came from.
struct MacroUse: Hashable {
    let field: String
    let written: [UInt8]
    let stored: String
    let macros: [String]

    /// The fields of an entry, the first of each name, that are written with macros. `fields` are the stored ones.
    static func of(_ entry: [UInt8], fields: String) throws -> [MacroUse] {
        var names: [String] = []
        var found: [(written: [UInt8], macros: [String])] = []
        entry.withUnsafeBytes { raw in
            guard holdsBareValue(raw) else { return }
            BibParser.parse(raw) { block in
                guard block.kind == .entry else { return }
                for (index, field) in block.fields.enumerated() where field.style == .bare || field.style == .joined {
                    let macros = macroNames(in: block.rawValue(of: field))
                    if macros.isEmpty { continue }
                    let name = block.name(of: field)
                    let isRepeated = block.fields[..<index].contains {
                        BibText.sameIgnoringCase(block.nameBytes(of: $0), name)
                    }
                    if isRepeated { continue }
                    names.append(name.lowercased())
                    found.append((Array(block.rawValue(of: field)), macros))
                }
            }
        }
        if names.isEmpty { return [] }
        let stored = try Fields.strings(named: names, of: fields)
        return names.indices.compactMap { index in
            stored[index].map {
                MacroUse(field: names[index], written: found[index].written, stored: $0, macros: found[index].macros)
            }
        }
    }

    /// Whether what follows some '=' or '#' may be a macro: is neither in braces, nor in quotes, nor a number. In most entries
    /// nothing is, and this is cheaper than to parse them.
    static func holdsBareValue(_ entry: UnsafeRawBufferPointer) -> Bool {
        var isExpected = false
        for byte in entry {
            if byte == BibByte.equals || byte == BibByte.hash {
                isExpected = true
            } else if isExpected, !BibByte.isWhite(byte), !BibByte.isDigit(byte) {
                isExpected = false
                switch byte {
                case BibByte.openBrace, BibByte.quote: break
                // The end of a number, or of nothing.
                case BibByte.comma, BibByte.closeBrace, BibByte.closeParenthesis: break
                default: return true
                }
            }
        }
        return false
    }

    private static func macroNames(in written: UnsafeRawBufferPointer) -> [String] {
        var names: [String] = []
        var pieces = BibValuePieces(written)
        while let piece = pieces.next() {
            if piece.isMacro { names.append(BibText.decode(piece.bytes).text.lowercased()) }
        }
        return names
    }
}
