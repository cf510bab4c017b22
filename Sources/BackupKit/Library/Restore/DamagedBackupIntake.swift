/// Reads a backup whose `records.jsonl` is damaged or missing. Publications, notes and events have files of their own. Where
/// such a file is damaged, too, all that can be read of it and of `records.jsonl` is taken. No checksum vouches for that,
/// so it is named.
final class DamagedBackupIntake {
    private let views: BackupIntake
    private let intake: Intake
    /// Kinds whose own files are not sound.
    private let doubtful: Set<Kind>
    /// `records.jsonl`, where it is there.
    private let records: String?
    /// How many there were of each kind, in all files.
    private var seen: [Kind: Int] = [:]
    private var ids: Set<ByteName> = []
    /// The entries that `records.jsonl` has, by their keys.
    private var entries: [String: [String?]] = [:]
    private var conflicts: [Record] = []
    /// Keys about which the two files disagree, and keys that only `library.bib` has.
    private var (differing, added): (Set<String>, Set<String>) = ([], [])
    private var shown: Set<String> = []

    init(_ views: BackupIntake, _ intake: Intake) {
        (self.views, self.intake) = (views, intake)
        var doubtful: Set<Kind> = []
        if views.takesDoubtful {
            if views.sound(Layout.bibliography) == nil { doubtful.insert(.publications) }
            if views.sound(Layout.notes) == nil { doubtful.insert(.notes) }
            let isADayUnsound = views.unsound.contains { views.prepared.layout.role(of: $0) == .events }
            if isADayUnsound || views.days.sound.isEmpty { doubtful.insert(.events) }
        }
        self.doubtful = doubtful.intersection(views.kinds)
        records = views.takesDoubtful ? views.prepared.file(Layout.records) : nil
    }

    func take(_ wanted: (Record) -> Bool) throws -> BackupIntake.FromBibliography {
        noteRecords()
        let (kept, shared) = try recordsKeptHere()
        if !kept.isEmpty {
            intake.keptHere = { record in
                let own = shared.contains(Self.text(of: record)) ? nil : kept[Self.name(of: record)]
                guard let own else { return nil }
                var here = record
                (here.id, here.localID, here.isLocalOnly) = (own.id, own.localID, true)
                return here
            }
        }
        defer { intake.keptHere = nil }
        return try withoutActuallyEscaping(wanted) { wanted in
            var (publications, works) = try views.takePublications(
                from: views.sound(Layout.bibliography), into: intake, wanted)
            try takeEvents(views.days.sound, wanted)
            try takeLines(wanted)
            if doubtful.contains(.publications), let file = views.prepared.file(Layout.bibliography) {
                (publications, works) = try views.takePublications(from: file, into: intake) { [unowned self] in
                    takesEntry($0, wanted)
                }
            }
            let leftOfNotes = isShort(of: .notes) ? views.prepared.file(Layout.notes) : nil
            if views.kinds.contains(.notes),
                let file = views.sound(Layout.notes) ?? leftOfNotes
            {
                // Those without an id share that of their cite key.
                let known = ids
                try views.takeNotes(file, works, into: intake) { [unowned self] note in
                    guard !known.contains(ByteName(note.localID)) else { return false }
                    seen[.notes, default: 0] += 1
                    return wanted(note)
                }
            }
            if doubtful.contains(.events), isShort(of: .events) { try takeEvents(views.days.unsound, wanted) }
            for conflict in conflicts {
                guard let known = try Conflict(conflict), try intake.store.pointless(known) == nil else { continue }
                try intake.take(conflict)
            }
            for kind in [Kind.publications, .notes, .events] where doubtful.contains(kind) { name(kind) }
            return publications
        }
    }

    /// The records that `records.jsonl` calls kept on one device only, and the texts of shared ones with such a name. Their own
    /// files do not say it, and the next sync would give them to everybody.
    private func recordsKeptHere() throws -> (byName: [String: Record], shared: Set<String>) {
        var (kept, shared): ([String: Record], Set<String>) = ([:], [])
        try forEachLiving { record in if record.isLocalOnly { kept[Self.name(of: record)] = record } }
        if kept.isEmpty { return (kept, shared) }
        try forEachLiving { record in
            if !record.isLocalOnly, kept[Self.name(of: record)] != nil { shared.insert(Self.text(of: record)) }
        }
        return (kept, shared)
    }

    /// Visits the records of `records.jsonl` that can be read and are not deleted.
    private func forEachLiving(_ body: (Record) throws -> Void) throws {
        guard let path = views.prepared.file(Layout.records) else { return }
        try FileIntake(intake, views.limits).forEachLine(of: path) { line in
            if let bytes = line.bytes, let record = try? Record(parsing: bytes), !record.isDeleted { try body(record) }
        }
    }

    /// What a record and its entry in another file have in common.
    private static func name(of record: Record) -> String {
        let isWork = record.type == RecordType.publication
        return "\(record.type) \(isWork ? entry(of: record).key : record.localID)"
    }

    private static func text(of record: Record) -> String {
        let isWork = record.type == RecordType.publication
        return "\(name(of: record)) \(isWork ? entry(of: record).text ?? "" : "")"
    }

    private func takeEvents(_ days: [(path: String, name: String)], _ wanted: @escaping (Record) -> Bool) throws {
        guard views.kinds.contains(.events) else { return }
        try FileIntake(intake, views.limits).takeEvents(days, isBackup: true) { [unowned self] in
            isNew($0) && wanted($0)
        }
    }

    /// The lines of `records.jsonl` of which there is no sound other file. A tombstone would remove what may be sound.
    private func takeLines(_ wanted: (Record) -> Bool) throws {
        guard let records, !doubtful.isEmpty || views.kinds.contains(.records) else { return }
        let takesRecords = intake.takesRecords
        defer { intake.takesRecords = takesRecords }
        try FileIntake(intake, views.limits).takeRecords(path: records, name: Layout.records) { record in
            let kind = Kind(recordType: record.type)
            guard !record.isDeleted, kind == .records || doubtful.contains(kind) else { return false }
            if record.type == RecordType.publication {
                let (key, text) = Self.entry(of: record)
                entries[key, default: []].append(text)
                seen[kind, default: 0] += 1
            } else if kind != .publications, !isNew(record) {
                return false
            }
            guard wanted(record) else { return false }
            if record.type == RecordType.conflict {
                conflicts.append(record)
                return false
            }
            return true
        }
    }

    private static func entry(of record: Record) -> (key: String, text: String?) {
        let fields = (try? Fields.parse(record.fields)) ?? []
        let other = Fields.string(Publication.rawBase64, in: fields).flatMap(BibBase64.decode)
            .map { BibText.decode($0).text }
        let text = Fields.string(Publication.raw, in: fields) ?? other
        return (Fields.string(Publication.citeKey, in: fields) ?? "", text)
    }

    /// Whether no other file had a note or an event of this id.
    private func isNew(_ record: Record) -> Bool {
        guard ids.insert(ByteName(record.localID)).inserted else { return false }
        seen[Kind(recordType: record.type), default: 0] += 1
        return true
    }

    /// Whether an entry of a damaged `library.bib` is one that `records.jsonl` lacks.
    private func takesEntry(_ record: Record, _ wanted: (Record) -> Bool) -> Bool {
        guard record.type == RecordType.publication else { return wanted(record) }
        let (key, text) = Self.entry(of: record)
        shown.insert(key)
        if let known = entries[key] {
            if !known.contains(text) { differing.insert(key) }
            return false
        }
        added.insert(key)
        seen[.publications, default: 0] += 1
        return wanted(record)
    }

    private func counted(_ kind: Kind) -> Int? {
        guard case .own(let manifest) = views.prepared.layout.manifest else { return nil }
        return manifest.counts[kind.rawValue]
    }

    private func isShort(of kind: Kind) -> Bool { counted(kind).map { seen[kind, default: 0] < $0 } ?? true }

    // MARK: What is said

    private func noteRecords() {
        // A bare bibliography never had records; a backup that is whole but for them did.
        let layout = views.prepared.layout
        guard !layout.isImbib, !layout.expected.isEmpty || !views.unsound.isEmpty else { return }
        let rebuilt = [Kind.publications, .notes, .events].filter { views.kinds.contains($0) && !doubtful.contains($0) }
            .map(\.rawValue)
        let names = [rebuilt.dropLast().joined(separator: ", "), rebuilt.last ?? ""].filter { !$0.isEmpty }
        let own = rebuilt.isEmpty ? "" : ": \(names.joined(separator: " and ")) were rebuilt from their own files"
        let lost = records == nil ? "records of other kinds, tombstones and sync times" : "tombstones and sync times"
        let isGone = views.prepared.file(Layout.records) == nil
        let advice =
            "; which records were kept on one device only is unknown: 'backup-tool store set-local ID' keeps one here, "
            + "before the next sync"
        note(
            Layout.records, "is missing or damaged\(own)", "\(lost) could not be restored" + (isGone ? advice : ""))
    }

    private func name(_ kind: Kind) {
        let (count, all) = (seen[kind, default: 0], counted(kind))
        guard count > 0 || all ?? 0 > 0 else { return }
        let file =
            switch kind {
            case .publications: Layout.bibliography
            case .notes: Layout.notes
            default: Layout.eventFolder
            }
        let lines = records == nil ? "" : " and from the lines of \(Layout.records) that can be read"
        let of = all.map { count > $0 ? " instead of \($0)" : " of \($0)" } ?? ""
        let missing = max(0, (all ?? 0) - count)
        note(
            file,
            "is missing or damaged: \(count)\(of) \(kind.rawValue) were restored from what is left of it\(lines)"
                + (missing > 0 ? "; \(missing) of them are missing" : ""),
            "no checksum vouches for them: "
                + (missing > 0
                    ? "look for the others in an older backup, and compare these with it"
                    : "compare them with an older backup"))
        guard kind == .publications, records != nil else { return }
        let others = Set(entries.keys).subtracting(shown)
        for key in differing.sorted() {
            note(key, "is not the same in \(Layout.records) and \(Layout.bibliography); the former was restored")
        }
        for key in added.sorted() { note(key, "was restored from \(Layout.bibliography): \(Layout.records) lacks it") }
        for key in others.sorted() where views.prepared.file(Layout.bibliography) != nil {
            note(key, "was restored from \(Layout.records): \(Layout.bibliography) lacks it")
        }
    }

    private func note(_ subject: String, _ message: String, _ remedy: String? = nil) {
        intake.note(Finding(.malformed, .warning, subject, message, remedy: remedy))
    }
}
