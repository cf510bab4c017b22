/// Which records are chosen, and which attachments go with them.
struct WantedFiles {
    private let match: RecordQuery?
    private var linked: Set<String> = []
    /// They go with their works; no words choose them.
    private(set) var conflicts: [Record] = []
    private var chosen: Set<ByteName> = []
    /// The queries that chose something, by their places.
    private var met: Set<Int> = []
    /// Those of which the backup has something.
    var kinds: Set<Kind> = []

    init(_ options: RestoreOptions) { match = options.match }

    mutating func takes(_ record: Record) -> Bool {
        kinds.insert(record.kind)
        guard let match else { return true }
        if record.type == RecordType.conflict {
            if !record.isDeleted { conflicts.append(record) }
            return false
        }
        let places = match.matching(record)
        guard !places.isEmpty else { return false }
        met.formUnion(places)
        chosen.insert(ByteName(record.localID))
        if let links = try? Store.links(of: record) { linked.formUnion(links) }
        return true
    }

    mutating func takesFile(_ path: String) -> Bool {
        guard let match else { return true }
        let places = match.matching(path: path)
        met.formUnion(places)
        return !places.isEmpty || linked.contains(path)
    }

    /// Whether a side of a conflict, a local id or a path, goes with what was asked for.
    func isChosen(_ work: String) -> Bool {
        chosen.contains(ByteName(work)) || linked.contains(work) || namesFile(work)
    }

    /// Whether somebody asks for the file itself.
    func namesFile(_ path: String) -> Bool { match?.matching(path: path).isEmpty == false }

    var hasChosenNothing: Bool { met.isEmpty }

    func unmatched(_ listing: String) -> [Finding] {
        (match?.texts ?? []).enumerated().filter { !met.contains($0.offset) }.map {
            Finding(
                .entryMissing, .warning, "--match \($0.element)", "nothing in the backup has these words",
                remedy: listing)
        }
    }
}
