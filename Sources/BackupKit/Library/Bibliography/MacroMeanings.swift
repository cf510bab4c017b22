/// What the `@string` macros of a library mean to each of its entries.
///
/// Files that were written apart meet in one `library.bib`, where a macro has one meaning at a time, from its definition
/// on. Each entry's fields say what its macros meant where it came from, so the meaning it needs is found by trying. A
/// macro of one meaning is defined at the head of the file; one that is contested is defined where it is needed, after
/// the entries that knew no definition of it (as those that say `month = apr` do, where another file defines `apr`).
struct MacroMeanings {
    /// What a macro means to an entry, or within a definition.
    enum Meaning: Hashable {
        case defined(Int)
        /// No definition was known: it stands for its name, in each of these spellings.
        case name([String])

        var isName: Bool { if case .name = self { true } else { false } }

        /// Whether one definition cannot say it, for it is spelled in several ways.
        var isSpelledDifferently: Bool { if case .name(let spellings) = self { spellings.count > 1 } else { false } }

        func joined(_ other: Meaning) -> Meaning {
            guard case .name(let mine) = self, case .name(let others) = other else { return self }
            return .name(Set(mine + others).sorted())
        }
    }

    /// What each macro means that an entry or a definition uses.
    typealias Choice = [String: Meaning]

    struct Definition {
        let name: String
        let value: String
        let bytes: [UInt8]
        /// What the macros within the definition meant.
        let uses: Choice
    }

    private(set) var definitions: [Definition] = []
    private var byName: [String: [Int]] = [:]
    /// What each part defines, by its local id.
    private var byPart: [String: [Int]] = [:]
    private var contestedNames: Set<String> = []
    private var byBytes: [[UInt8]: [Int]] = [:]
    private var heldBack: Set<[UInt8]> = []
    /// What was found for uses seen before: thousands of entries say `month = mar`.
    private var answers: [MacroUse: Answer] = [:]
    private typealias Answer = (names: [String], choice: Choice, isFound: Bool)

    /// `parts` are those of all files, each file's in their order.
    init(_ parts: [BibliographyParts.Part]) {
        var file: String?
        var macros = BibMacros.standard
        var current: [String: Int] = [:]
        for part in parts where part.isString {
            if part.file != file {
                file = part.file
                macros = .standard
                current = [:]
            }
            part.bytes.withUnsafeBytes { raw in
                BibParser.parse(raw) { block in
                    guard block.kind == .string else { return }
                    let used = block.fields.flatMap { BibValuePieces.macros(in: block.rawValue(of: $0)) }
                    let uses = Choice(
                        used.map { name in
                            (name.lowercased(), current[name.lowercased()].map { .defined($0) } ?? Self.itself(name))
                        }, uniquingKeysWith: { $0.joined($1) })
                    for field in block.fields {
                        let name = block.name(of: field).lowercased()
                        let index = add(name, block.value(of: field, macros: macros), part.bytes, uses)
                        current[name] = index
                        byPart[part.localID, default: []].append(index)
                    }
                    macros.define(from: block)
                }
            }
        }
    }

    private static func itself(_ name: String) -> Meaning { .name([BibMacros.standard.value(of: name) ?? name]) }

    private func text(_ meaning: Meaning) -> String {
        switch meaning {
        case .defined(let index): definitions[index].value
        case .name(let spellings): spellings.joined(separator: " ")
        }
    }

    private mutating func add(_ name: String, _ value: String, _ bytes: [UInt8], _ uses: Choice) -> Int {
        let known = byBytes[bytes]?.first { sameBytes(definitions[$0].name, name) && definitions[$0].value == value }
        if let known { return known }
        let index = definitions.count
        definitions.append(Definition(name: name, value: value, bytes: bytes, uses: uses))
        byName[name, default: []].append(index)
        byBytes[bytes, default: []].append(index)
        return index
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
        let defined = Set(use.macros.map { $0.lowercased() }).filter { byName[$0] != nil }.sorted()
        let names = defined.count <= 4 ? defined : []
        var choice = Choice()
        // Too many to try all of them are left as they are.
        let isFound = choose(use, names, &choice) || defined.count > names.count
        answers[use] = (names, choice, isFound)
        return (names, choice, isFound)
    }

    /// Whether some meanings of the macros give the value.
    private func choose(_ use: MacroUse, _ names: [String], _ choice: inout Choice) -> Bool {
        var trial = Choice(names.compactMap { name in choice[name].map { (name, $0) } }, uniquingKeysWith: { $1 })
        let isFound = use.written.withUnsafeBytes { find(use, $0, names[...], &trial) }
        if isFound { choice.merge(trial) { $1 } }
        return isFound
    }

    /// Tries the meanings of one macro after the other; what an earlier field settled stays.
    private func find(
        _ use: MacroUse, _ written: UnsafeRawBufferPointer, _ names: ArraySlice<String>, _ trial: inout Choice
    ) -> Bool {
        guard let name = names.first else {
            var macros = BibMacros.standard
            for case (let name, .defined(let index)) in trial { macros.define(name, as: definitions[index].value) }
            return macros.resolve(written) == use.stored
        }
        let settled = trial[name]
        let defined = (byName[name] ?? []).map(Meaning.defined)
        let own = use.macros.filter { $0.lowercased() == name }.map(Self.itself).reduce(Meaning.name([])) {
            $0.joined($1)
        }
        let meanings = settled.map { [$0.joined(own)] } ?? defined + [own]
        for meaning in meanings {
            trial[name] = meaning
            if find(use, written, names.dropFirst(), &trial) { return true }
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
        for choice in Array(choices) + definitions.map(\.uses) {
            for (name, meaning) in choice where meaning.isName && byName[name] != nil { contestedNames.insert(name) }
        }
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
        let unknown = choice.values.count { $0.isName } + choice.values.count { $0.isSpelledDifferently }
        let meanings = choice.sorted { $0.key < $1.key }.map { name, meaning in
            switch meaning {
            case .defined(let index): "\(name) \(1_000_000 + index)"
            case .name(let spellings): "\(name) \(999_999) \(spellings.joined(separator: " "))"
            }
        }
        return [String(1000 - min(unknown, 999) + 1000)] + meanings
    }

    func writer() -> Writer { Writer(self) }

    /// Follows what each contested macro means at the point of the file that was reached.
    struct Writer {
        private let meanings: MacroMeanings
        private var current: Choice = [:]
        private var written: Set<[UInt8]> = []
        /// A macro that is defined by itself, by way of others, would never be done.
        private static let mostRounds = 8

        init(_ meanings: MacroMeanings) { self.meanings = meanings }

        /// Whether an entry with this choice can be written right here.
        func isInForce(_ choice: Choice) -> Bool { choice.allSatisfy { isInForce($0.key, $0.value) } }

        private func isInForce(_ name: String, _ meaning: Meaning) -> Bool {
            current[name].map { meanings.text($0) == meanings.text(meaning) } ?? meaning.isName
        }

        /// The definitions that entries with this choice need and that are not in force.
        mutating func definitions(for choice: Choice) -> [[UInt8]] {
            var out: [[UInt8]] = []
            establish(choice, &out, depth: 0)
            return out
        }

        /// The definition of one macro may need, and change, another one.
        private mutating func establish(_ choice: Choice, _ out: inout [[UInt8]], depth: Int) {
            for _ in 0..<Self.mostRounds where depth < 64 && !isInForce(choice) {
                for (name, meaning) in choice.sorted(by: { $0.key < $1.key }) where !isInForce(name, meaning) {
                    switch meaning {
                    case .defined(let index): define(index, &out, depth: depth)
                    case .name(let spellings):
                        // No definition can be taken back, and none says two things.
                        guard spellings.count == 1, let spelling = spellings.first else { continue }
                        out.append(Self.undefined(spelling))
                        current[name] = meaning
                    }
                }
            }
        }

        /// A definition that says what an unknown macro is read as.
        static func undefined(_ name: String) -> [UInt8] { definition(of: name, as: name) }

        private static func definition(of name: String, as value: String) -> [UInt8] {
            Array("@string{\(name) = {\(value)}}".utf8)
        }

        static func isUndefinition(_ raw: UnsafeRawBufferPointer) -> Bool {
            guard let start = raw.firstIndex(of: BibByte.openBrace),
                let end = raw.firstIndex(where: { BibByte.isWhite($0) }), start < end
            else { return false }
            let name = BibText.decode(Array(raw[(start + 1)..<end])).text
            return raw.elementsEqual(undefined(name))
        }

        private mutating func define(_ index: Int, _ out: inout [[UInt8]], depth: Int) {
            let definition = meanings.definitions[index]
            let uses = meanings.contested(definition.uses)
            establish(uses, &out, depth: depth + 1)
            written.insert(definition.bytes)
            guard isInForce(uses) || !uses.values.contains(where: \.isSpelledDifferently) else {
                out.append(Self.definition(of: definition.name, as: definition.value))
                current[definition.name] = .defined(index)
                return
            }
            out.append(definition.bytes)
            // One block may define several.
            let others = meanings.byBytes[definition.bytes, default: []].filter {
                isInForce(meanings.contested(meanings.definitions[$0].uses))
            }
            for other in others { current[meanings.definitions[other].name] = .defined(other) }
            current[definition.name] = .defined(index)
        }

        /// What has to be written for a part that stands where it did: nothing when it is in force already.
        mutating func definitions(of part: BibliographyParts.Part) -> [[UInt8]] {
            let places = meanings.byPart[part.localID] ?? []
            if places.isEmpty { return [part.bytes] }
            if places.allSatisfy({ current[meanings.definitions[$0].name] == .defined($0) }) { return [] }
            var out: [[UInt8]] = []
            define(places[0], &out, depth: 0)
            for place in places { current[meanings.definitions[place].name] = .defined(place) }
            return out
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
    /// The macros as they are written.
    let macros: [String]

    /// The fields of an entry, the first of each name, that are written with macros. `fields` are the stored ones.
    static func of(_ entry: [UInt8], fields: String) throws -> [MacroUse] {
        var names: [String] = []
        var seen: Set<String> = []
        var found: [(written: [UInt8], macros: [String])] = []
        entry.withUnsafeBytes { raw in
            guard holdsBareValue(raw) else { return }
            BibParser.parse(raw) { block in
                guard block.kind == .entry else { return }
                for field in block.fields {
                    let name = block.name(of: field).lowercased()
                    guard seen.insert(name).inserted, field.style == .bare || field.style == .joined else { continue }
                    let macros = BibValuePieces.macros(in: block.rawValue(of: field))
                    if macros.isEmpty { continue }
                    names.append(name)
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
}
