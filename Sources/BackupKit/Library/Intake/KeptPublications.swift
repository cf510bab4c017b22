/// The publications that are kept on this device only, and how to find those that an entry may be.
struct KeptPublications {
    struct Kept {
        let record: Record
        let fields: [Field]
        let work: WorkIdentity
        var localID: String { record.localID }
    }

    private var all: [Kept] = []
    private var places: [String: [Int]] = [:]

    var isEmpty: Bool { all.isEmpty }

    mutating func add(_ record: Record, _ fields: [Field]) {
        let work = WorkIdentity(fields)
        for mark in Self.marks(of: work) { places[mark, default: []].append(all.count) }
        all.append(Kept(record: record, fields: fields, work: work))
    }

    /// Those that have a key, an identifier, the title or the first author of an entry.
    func candidates(for entry: WorkIdentity) -> [Kept] {
        if all.isEmpty { return [] }
        return Set(Self.marks(of: entry).flatMap { places[$0] ?? [] }).sorted().map { all[$0] }
    }

    private static func marks(of work: WorkIdentity) -> [String] {
        let person = work.people?.people.first.map { ["person:\($0.family)"] } ?? []
        return work.marks + ["key:\(work.key)"] + person
    }
}

/// An entry that may be a publication which is kept on this device only, or which another entry of its key is. Only the whole
/// file tells which of its entries is.
struct EntryWaiting {
    let raw: [UInt8]
    let key: String
    let text: UInt64
    let number: Int
    let links: [String]
    let wishes: Range<Int>
    let macros: BibMacros
}
