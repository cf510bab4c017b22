/// Two records that a decision has made one, or of which it has kept one, and that a later decision keeps both.
extension Record {
    /// Without what it took over from `other`, which is alive again. `before` is a version of this record that has taken
    /// nothing. What somebody has written into this one since stays.
    func givingBack(
        to other: Record, as before: Record,
        derive: (_ merged: [Field], _ local: [Field], _ other: [Field]) throws -> [Field]
    ) throws -> Record {
        let (mine, theirs) = (try Fields.parse(fields), Fields.values(try Fields.parse(other.fields)))
        let old = Fields.values(try Fields.parse(before.fields))
        var result = self
        var kept: [Field] = []
        for field in mine {
            let was = old[ByteName(field.name)]
            guard !RawText.holds(field.name), let taken = theirs[ByteName(field.name)],
                let value = try Self.value(field, without: taken, was)
            else {
                kept.append(field)
                continue
            }
            if case .some(let value) = value { kept.append(Field(field.name, value)) }
            result.fieldTimes[field.name] = before.fieldTimes[field.name] ?? was.map { _ in before.modifiedAt }
        }
        for (name, _) in fieldTimes where name.hasPrefix(Self.takenInMark) || name.hasPrefix(Self.keptMark) {
            let isOfOther = [Self.takenInMark, Self.keptMark].contains { sameBytes(name, $0 + other.localID) }
            if isOfOther || other.fieldTimes[name] != nil && before.fieldTimes[name] == nil {
                result.fieldTimes[name] = nil
            }
        }
        if kept != mine { result.fields = Fields.text(try derive(kept, mine, Fields.parse(before.fields))) }
        return result
    }

    /// What is left of a field; nil where nothing of it was taken, and `.some(nil)` where all was.
    private static func value(_ field: Field, without taken: String, _ was: String?) throws -> String?? {
        if try MergePolicy.areLists(field.name, field.value, taken) {
            return try MergePolicy.list(field.name, field.value, without: taken, but: was)
        }
        return try Fields.same(field.value, taken) ? .some(was) : nil
    }
}

extension MergePolicy {
    /// Whether two values are lists that a merge joins.
    static func areLists(_ name: String, _ one: String, _ other: String) throws -> Bool {
        guard setFields.contains(name) else { return false }
        if try Keywords.union(name, one, other) != nil { return true }
        return try JSON(parsing: one).array != nil && JSON(parsing: other).array != nil
    }

    /// A list without the members of another one, but with those that it had before.
    fileprivate static func list(
        _ name: String, _ value: String, without taken: String, but was: String?
    ) throws -> String?? {
        if let all = try JSON(parsing: value).array, let gone = try JSON(parsing: taken).array {
            let old = try was.flatMap { try JSON(parsing: $0).array } ?? []
            return try rest(of: all, gone, but: old, was, key: { try Fields.canonical($0.compact) }) { rest, _ in
                JSON.array(rest).compact
            }
        }
        guard let text = try JSON(parsing: value).string, let gone = try JSON(parsing: taken).string else { return nil }
        let old = try was.flatMap { try JSON(parsing: $0).string } ?? ""
        return try rest(
            of: Keywords(text).items, Keywords(gone).items, but: Keywords(old).items, was, key: { Array($0.utf8) }
        ) { _, gone in JSON.string(Keywords.without(gone, in: text)).compact }
    }

    /// The members that are left; nil where none goes, and `.some(nil)` where all go. What it was comes back as it was written.
    private static func rest<Member>(
        of all: [Member], _ taken: [Member], but old: [Member], _ was: String?, key: (Member) throws -> [UInt8],
        written: (_ rest: [Member], _ gone: [Member]) -> String
    ) throws -> String?? {
        let kept = Set(try old.map(key))
        let gone = try taken.filter { try !kept.contains(key($0)) }
        let goneKeys = Set(try gone.map(key))
        let rest = try all.filter { try !goneKeys.contains(key($0)) }
        if rest.count == all.count { return nil }
        if let was, rest.count == old.count, try Set(rest.map(key)) == kept { return .some(was) }
        return rest.isEmpty ? .some(nil) : .some(written(rest, gone))
    }
}
