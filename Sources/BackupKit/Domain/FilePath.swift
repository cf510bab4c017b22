/// Paths as names joined by `/`. A slash is a byte: Swift takes one with a combining mark behind it for another character.
enum FilePath {
    static let slash = UInt8(ascii: "/")

    static func isAbsolute(_ path: some StringProtocol) -> Bool { path.utf8.first == slash }

    /// The names of a path, without empty ones.
    static func names(_ path: some StringProtocol) -> [Substring] {
        Substring(path).utf8.split(separator: slash).map { Substring($0) }
    }

    /// A relative path without `.`, `..` and empty names; nil for one that leads out of its folder.
    static func below(_ path: String) -> String? {
        guard !isAbsolute(path) else { return nil }
        var names: [Substring] = []
        for name in Self.names(path) where name != "." {
            if name != ".." {
                names.append(name)
            } else if names.popLast() == nil {
                return nil
            }
        }
        return names.isEmpty ? nil : names.joined(separator: "/")
    }

    /// How many names two paths have in common at their ends. Names that differ in the form of their Unicode are the same.
    static func commonEnd(_ left: String, _ right: String) -> Int {
        zip(names(left).reversed(), names(right).reversed()).prefix { $0 == $1 }.count
    }

    /// The name so many places before the last; nil where there is none.
    static func name(_ place: Int, fromTheEndOf path: String) -> String? {
        names(path).dropLast(place).last.map(String.init)
    }
}
