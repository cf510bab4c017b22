/// Versions of events that syncs have merged with those of other devices. The line of an event has one time for all that it
/// says; when its log is imported again, what the other device wrote would be older than words that nobody has written since.
extension Store {
    private static func key(_ localID: String, _ hasher: RecordHasher) -> String { "merged:\(hasher.key(localID))" }

    /// How many versions of one event are remembered.
    private static let remembered = 8

    /// `version` was merged into what both devices have now. Must run inside `write`.
    func noteMerged(_ version: Record) throws {
        guard version.type == RecordType.event, !version.isDeleted else { return }
        let key = Self.key(version.localID, hasher)
        let text = String(hasher.text(version.fields), radix: 16)
        let others = (try meta(key) ?? "").split(separator: ",").filter { $0 != text }
        try setMeta(key, (others.suffix(Self.remembered - 1) + [text[...]]).joined(separator: ","))
    }

    /// Whether a line says again what was merged already. A line without a time of its own says nothing about when.
    func wasMerged(_ line: Record) throws -> Bool {
        guard EventText.isLine(line),
            let known = try meta(Self.key(line.localID, hasher)), try !EventText.isUndated(line)
        else { return false }
        let text = String(hasher.text(line.fields), radix: 16)
        return known.split(separator: ",").contains { $0 == text }
    }
}
