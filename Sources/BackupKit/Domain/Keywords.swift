/// Keywords in the text of a BibTeX field: "tombstones, {backup, restore}; sync" separates them by commas, or by semicolons
/// where there is one. Braces keep what is in them together.
struct Keywords {
    static let field = "keywords"

    let items: [String]
    /// What stands between the first two; nil where there is one keyword only.
    let separator: String?

    init(_ text: String) {
        let separator = Self.positions(of: ";", in: text).isEmpty ? "," : ";" as Character
        var parts: [Substring] = []
        var start = text.startIndex
        for position in Self.positions(of: separator, in: text) {
            parts.append(text[start..<position])
            start = text.index(after: position)
        }
        parts.append(text[start...])
        items = parts.map(Self.trimmed).filter { !$0.isEmpty }
        let isSpaced = parts.count > 1 && parts[1].first?.isWhitespace == true
        self.separator = parts.count > 1 ? "\(separator)\(isSpaced ? " " : "")" : nil
    }

    /// Two JSON texts joined: what one side took out of `base` is out, all else is in; the first keeps its order and its
    /// separator. Nil for another field, and for what is no text.
    static func union(_ name: String, _ first: String, _ second: String, base: String? = nil) throws -> String? {
        guard name == field else { return nil }
        let old = try base.flatMap { try JSON(parsing: $0).string } ?? ""
        return try union(name, first, second, without: Keywords(old).items)
    }

    /// Two JSON texts joined without the keywords that only one of them has and that are `gone`.
    static func union(_ name: String, _ first: String, _ second: String, without gone: [String]) throws -> String? {
        guard name == field, let mine = try JSON(parsing: first).string, let theirs = try JSON(parsing: second).string
        else { return nil }
        let text = union(mine, theirs, base: gone)
        return sameBytes(text, mine) ? first : JSON.string(text).compact
    }

    static func union(_ first: String, _ second: String, base: String = "") -> String {
        union(first, second, base: Keywords(base).items)
    }

    private static func union(_ first: String, _ second: String, base: [String]) -> String {
        let (mine, theirs) = (Keywords(first), Keywords(second))
        let (inMine, inTheirs) = (Set(mine.items.map { ByteName($0) }), Set(theirs.items.map { ByteName($0) }))
        let inBase = Set(base.map { ByteName($0) })
        let kept = mine.items.filter { inTheirs.contains(ByteName($0)) || !inBase.contains(ByteName($0)) }
        var known = inMine.union(inBase)
        let added = theirs.items.filter { known.insert(ByteName($0)).inserted }
        if added.isEmpty, kept.count == mine.items.count { return first }
        let separator = mine.separator ?? theirs.separator ?? ", "
        let sign = separator.first ?? ","
        // A comma inside a keyword of a list with semicolons would separate here.
        let fitting = added.map {
            positions(of: sign, in: $0).isEmpty && Keywords($0).items.count == 1 ? $0 : "{\($0)}"
        }
        return (kept + fitting).joined(separator: separator)
    }

    /// The text without these keywords; empty where no other is left.
    static func without(_ gone: [String], in text: String) -> String {
        let known = Keywords(text)
        let names = Set(gone.map { ByteName($0) })
        return known.items.filter { !names.contains(ByteName($0)) }.joined(separator: known.separator ?? ", ")
    }

    /// Where a sign stands outside of braces. A backslash protects no brace from BibTeX.
    private static func positions(of sign: Character, in text: String) -> [String.Index] {
        var depth = 0
        var found: [String.Index] = []
        for index in text.indices {
            switch text[index] {
            case "{": depth += 1
            case "}": depth = max(0, depth - 1)
            case sign where depth == 0: found.append(index)
            default: break
            }
        }
        return found
    }

    /// Without space around it; a line break inside is a space.
    private static func trimmed(_ text: Substring) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}
