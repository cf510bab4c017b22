/// What a log said last of the fields of an event in which a sync or a restore has brought something newer since. The
/// line of an event has one time for all that it says, and says the old value again when its app changes another field:
/// that is no news.
extension Store {
    private static let mark = "said:"

    private static func key(_ localID: String, _ hasher: RecordHasher) -> String { mark + String(hasher.key(localID)) }

    /// A value, and the field that has it, as they are kept: nobody can read them.
    private func said(_ field: Field) throws -> (name: Substring, value: Substring) {
        let value = try Fields.canonical(field.value).withUnsafeBytes(hasher.text)
        return (Self.word(hasher.text(field.name)), Self.word(value))
    }

    private static func word(_ hash: UInt64) -> Substring { String(hash, radix: 16)[...] }

    /// In place of a value: the log has no such field.
    private static let nothing: Substring = "-"

    private func said(of localID: String) throws -> [Substring: Substring] {
        let pairs = try meta(Self.key(localID, hasher))?.split(separator: ",").map { $0.split(separator: ":") } ?? []
        return Dictionary(
            pairs.filter { $0.count == 2 }.map { ($0[0], $0[1]) }, uniquingKeysWith: { first, _ in first })
    }

    private func set(_ said: [Substring: Substring], of localID: String) throws {
        let text = said.map { "\($0.key):\($0.value)" }.sorted().joined(separator: ",")
        try setMeta(Self.key(localID, hasher), said.isEmpty ? nil : text)
        hasNewMarks = true
    }

    /// A sync or a restore puts a newer version in the place of another. Must run inside `write`.
    func noteReplaced(_ old: Record, by new: Record) throws {
        guard old.type == RecordType.event, new.type == RecordType.event, !old.isDeleted, !new.isDeleted,
            !sameBytes(old.fields, new.fields)
        else { return }
        let known = try said(of: old.localID)
        var said = known
        let values = Fields.values(try Fields.parse(new.fields))
        let words = try Fields.parse(old.fields)
        let before = Set(words.map { ByteName($0.name) })
        for name in values.keys where !before.contains(name) {
            let word = Self.word(hasher.text(name.text))
            said[word] = said[word] ?? Self.nothing
        }
        for field in words {
            if let value = values[ByteName(field.name)], try Fields.same(value, field.value) { continue }
            let old = try self.said(field)
            said[old.name] = said[old.name] ?? old.value
        }
        let isRenamed = !sameBytes(old.localID, new.localID)
        if isRenamed { try set([:], of: old.localID) }
        if said != known || isRenamed { try set(said, of: new.localID) }
    }

    /// The names of the fields in which a line says again what its log said before something else came. What it says now in
    /// other words is its last word from now on. A line without a time of its own says nothing about when. Must run inside
    /// `write`.
    func fieldsSaidAgain(by line: Record, of known: Record) throws -> Set<ByteName> {
        guard EventText.isLine(line), case let said = try said(of: known.localID), !said.isEmpty,
            try !EventText.isUndated(line)
        else { return [] }
        var (again, left): (Set<ByteName>, [Substring: Substring]) = ([], said.filter { $0.value == Self.nothing })
        for field in try Fields.parse(line.fields) {
            let now = try self.said(field)
            left[now.name] = said[now.name] == now.value ? now.value : nil
            if left[now.name] != nil { again.insert(ByteName(field.name)) }
        }
        if left != said { try set(left, of: known.localID) }
        return again
    }

    /// The keys of the events of which a log said something else last than the store has.
    func keysOfSaidValues() throws -> Set<Int64> {
        let query = try database.prepare("SELECT key FROM meta WHERE key GLOB '\(Self.mark)*'")
        var keys: Set<Int64> = []
        while try query.step() { if let key = Int64(query.text(0).dropFirst(Self.mark.count)) { keys.insert(key) } }
        return keys
    }

    /// A log says what the store has of these events, or they are gone for good. Must run inside `write`.
    func forgetSaidValues(of keys: some Sequence<Int64>) throws {
        for key in keys where try meta("\(Self.mark)\(key)") != nil {
            try setMeta("\(Self.mark)\(key)", nil)
            hasNewMarks = true
        }
    }
}
