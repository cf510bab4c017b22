/// Which publications share a cite key. The one place that decides when a person has to look, for imports, restores and
/// syncs alike.
final class CiteKeys {
    private let store: Store
    /// Live publications by their key in lower case.
    private var holders: [String: Set<RecordID>] = [:]

    init(_ store: Store) throws {
        self.store = store
        try store.forEachCiteKey { key, id, _ in note(id, key) }
    }

    /// Live publications that had this key when they were seen last, whatever its case.
    func holders(of key: String) -> Set<RecordID> { holders[key.lowercased(), default: []] }

    func note(_ record: Record) {
        if let key = Self.key(of: record) { note(record.id, key) }
    }

    private func note(_ id: RecordID, _ key: String) {
        if !key.isEmpty { holders[key.lowercased(), default: []].insert(id) }
    }

    /// Nil also of fields that cannot be read: others say so.
    static func key(of record: Record) -> String? {
        do { return try Fields.strings(named: [Store.citeKeyField], of: record.fields)[0] } catch { return nil }
    }

    /// What a batch or a page of a sync did to a publication.
    enum Arrival: Int, Comparable {
        case known, changed, new

        static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// Queues a conflict for every publication that has the key of another work, where one of the two has arrived or changed.
    /// `amongNew`: two that have arrived together count as well; a backup's records have been side by side before.
    func report(
        on keys: Set<String>, amongNew: Bool = true, arrival: (Store.StoredRecord) -> Arrival
    ) throws -> [Finding] {
        var findings: [Finding] = []
        for key in Set(keys.map { $0.lowercased() }).sorted() where holders[key, default: []].count > 1 {
            var versions: [ByteName: [Version]] = [:]
            for stored in try live(key) {
                let identity = WorkIdentity(try Fields.parse(stored.record.fields))
                let version = Version(
                    localID: stored.record.localID, change: stored.change, text: identity.meaning,
                    arrival: arrival(stored))
                versions[ByteName(identity.key), default: []].append(version)
            }
            for (key, versions) in versions.sorted(by: { precedesBytewise($0.key.text, $1.key.text) }) {
                findings += try queue(versions, of: key.text, amongNew)
            }
            findings += warning(of: versions, amongNew).map { [$0] } ?? []
        }
        return findings
    }

    private struct Version {
        let localID: String
        let change: Int64
        let text: String
        let arrival: Arrival
    }

    /// Live publications with that key, whatever its case.
    func live(_ key: String) throws -> [Store.StoredRecord] {
        try holders(of: key).compactMap { id in
            guard let stored = try store.ifSound({ try store.record(id) }) ?? nil, !stored.record.isDeleted,
                Self.key(of: stored.record)?.lowercased() == key.lowercased()
            else { return nil }
            return stored
        }
    }

    /// With how many works of its key a work is compared. Every two of so few have a conflict of their own, so that a delete
    /// of one leaves the question between the others; of a file that has one key everywhere the conflicts do not grow with
    /// the square of its entries.
    private static let rivals = 16

    /// What says the same is one work that stands there twice; whatever differs is for a person to decide.
    private func queue(_ versions: [Version], of key: String, _ amongNew: Bool) throws -> [Finding] {
        var findings: [Finding] = []
        var distinct: [Version] = []
        for version in versions.sorted(by: { ($0.arrival, $0.change) < ($1.arrival, $1.change) }) {
            if distinct.contains(where: { sameBytes($0.text, version.text) }) { continue }
            for other in distinct.prefix(Self.rivals) where max(version.arrival, other.arrival) > .known {
                if !amongNew, min(version.arrival, other.arrival) == .new { continue }
                let (existing, incoming) = (other.localID, version.localID)
                guard
                    try store.noteConflict(
                        kind: Conflict.publication, subject: key, existing: existing, incoming: incoming)
                else { continue }
                findings.append(
                    Finding(
                        .conflict, .warning, key, "two publications have this cite key; both are kept",
                        remedy: "'backup-tool conflicts list' lists the conflicts"))
            }
            distinct.append(version)
        }
        return findings
    }

    /// To BibTeX and many file systems `Smith` and `smith` are one name.
    private func warning(of versions: [ByteName: [Version]], _ amongNew: Bool) -> Finding? {
        let arrivals = versions.values.joined().map(\.arrival)
        guard versions.count > 1, arrivals.contains(where: { $0 > .known }),
            amongNew || arrivals.contains(where: { $0 < .new })
        else { return nil }
        let keys = versions.keys.map(\.text).sorted(by: precedesBytewise)
        let looksSame = keys.dropFirst().allSatisfy { $0 == keys[0] }
        return Finding(
            .conflict, .warning, keys.joined(separator: " and "),
            looksSame
                ? "these cite keys look the same, but their accents are encoded in different ways (Unicode forms)"
                : "these cite keys differ only in case; BibTeX treats them as one",
            remedy: "give one of them another cite key")
    }
}
