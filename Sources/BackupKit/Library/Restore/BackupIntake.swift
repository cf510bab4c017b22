/// Reads the records of a backup: from `records.jsonl` where that is sound, else from the files that are its views.
struct BackupIntake {
    let prepared: Restorer.Prepared
    let unsound: Set<String>
    let kinds: Set<Kind>
    let limits: ReadLimits
    /// Whether what no checksum vouches for is better than nothing.
    var takesDoubtful = true

    /// Publications that were read from `library.bib`.
    struct FromBibliography {
        /// What their entries name, where our own comments do not give them their files.
        var names: AttachmentLinks.Names = [:]
        /// Files that comment lines of our own give to entries: no other entry gets them.
        var claimed: Set<ByteName> = []
    }

    private var origin: FileOrigin { .backup(prepared.path, isImbib: prepared.layout.isImbib) }

    var naming: NamingRecords { NamingRecords(file: sound(Layout.records), limits: limits) }

    func sound(_ path: String) -> String? {
        unsound.contains(prepared.layout.prefix + path) ? nil : prepared.file(path)
    }

    /// Returns the publications that were read from `library.bib`: their files are to be linked.
    func takeRecords(into intake: Intake, wanted: (Record) -> Bool) throws -> FromBibliography {
        if let file = sound(Layout.records) {
            try FileIntake(intake, limits).takeRecords(path: file, name: Layout.records, wanted: wanted)
            return FromBibliography()
        }
        return try DamagedBackupIntake(self, intake).take(wanted)
    }

    /// The files of events.
    var days: (sound: [(path: String, name: String)], unsound: [(path: String, name: String)]) {
        let days = prepared.staged.files.keys.filter { prepared.layout.role(of: $0) == .events }.sorted()
            .map { (path: "\(prepared.folder)/\($0)", name: $0) }
        return (days.filter { !unsound.contains($0.name) }, days.filter { unsound.contains($0.name) })
    }

    /// `works`: the publications by their keys.
    func takeNotes(
        _ file: String, _ works: [String: [String]]?, into intake: Intake, wanted: (Record) -> Bool
    ) throws {
        try FileIntake(intake, limits).takeNotes(
            path: file, name: Layout.notes, time: prepared.time, works: works, origin: origin, wanted: wanted)
    }

    /// Also the local ids of all publications, by their keys, where there are notes on them.
    func takePublications(
        from file: String?, into intake: Intake, _ wanted: (Record) -> Bool
    ) throws -> (FromBibliography, works: [String: [String]]?) {
        guard kinds.contains(.publications), let file else {
            return (FromBibliography(), nil)
        }
        var taken = FromBibliography()
        let heard = intake.heard
        intake.heard = { record, outcome in
            // The comments of our own export say which files are an entry's, whatever its fields say.
            if record.type == RecordType.publication {
                let fields = try Fields.parse(record.fields)
                let linked = Fields.strings(Publication.linkedFiles, in: fields)
                taken.claimed.formUnion(linked.map { ByteName($0) })
                if linked.isEmpty {
                    taken.names[ByteName(outcome.localID), default: []]
                        .formUnion(Publication.links(in: fields).map { ByteName($0.path) })
                }
            }
            try heard(record, outcome)
        }
        defer { intake.heard = heard }
        let bibliography = try BibliographyIntake(intake)
        if kinds.contains(.notes), prepared.file(Layout.notes) != nil { bibliography.worksByKey = [:] }
        try withoutActuallyEscaping(wanted) { wanted in
            try bibliography.take(
                path: file, name: Layout.bibliography, time: prepared.time, origin: origin, wanted: wanted)
        }
        // What is in quarantine links nothing.
        return (intake.policy == .quarantine ? FromBibliography() : taken, bibliography.worksByKey)
    }

    func publication(_ localID: String, _ store: Store) throws -> Record? {
        try store.records(localID: localID).map(\.record)
            .first { $0.type == RecordType.publication && !$0.isDeleted }
    }

    /// Damaged rows come back as they were: beside the tables, where whoever mends them finds them.
    func takeDamaged(into intake: Intake) throws {
        guard let file = sound(Layout.damaged) else { return }
        try FileHandle.openForReading(file).forEachLine(limit: limits.lineBytes) { line in
            guard let bytes = line.bytes else {
                return intake.reject("\(Layout.damaged):\(line.number)", "is too long")
            }
            guard bytes.count > 0 else { return }
            do {
                let row = try DamagedRow(line: String(decoding: bytes, as: UTF8.self))
                if kinds.contains(row.kind) { try intake.take(row) }
            } catch let error as BackupError where error.code == .damaged {
                intake.reject("\(Layout.damaged):\(line.number)", error.message)
            }
        }
    }

    /// The command that prints what a query could have chosen.
    func listing(_ kinds: Set<Kind>) -> String {
        func shows(_ file: String) -> String {
            "\(TypedCommand.quoted("show BACKUP", ["\(prepared.layout.prefix)\(file)"])) prints"
        }
        // A file that nobody has asked for was not read.
        let files = Set(prepared.layout.entries.map { String($0.path.dropFirst(prepared.layout.prefix.count)) })
        if kinds == [.notes], files.contains(Layout.notes) { return "\(shows(Layout.notes)) its notes" }
        if kinds == [.publications], files.contains(Layout.bibliography) {
            return "\(shows(Layout.bibliography)) its publications"
        }
        if files.contains(Layout.records) { return "\(shows(Layout.records)) all its records" }
        return "'backup-tool list BACKUP' lists its files"
    }

    func takeSettings(into intake: Intake) throws {
        guard let file = sound(Layout.settings) else { return }
        try FileIntake(intake, limits).takeSettings(
            path: file, name: Layout.settings, origin: origin, time: prepared.time)
    }

    /// Settings that the store lacks, where nobody has asked for settings.
    func settingsLeftOut(by intake: Intake) throws -> Finding? {
        guard let file = sound(Layout.settings) else { return nil }
        let missing: Int
        do { missing = try FileIntake(intake, limits).missingSettings(file) } catch let error as BackupError
            where error.code == .damaged
        {
            return Finding(
                .malformed, .warning, Layout.settings, "was not restored: it \(error.message)",
                remedy: "'backup-tool show BACKUP settings.json' prints it")
        }
        guard missing > 0 else { return nil }
        let what =
            missing == 1
            ? "1 setting was not restored, and the store lacks it"
            : "\(missing) settings were not restored, and the store lacks them"
        return Finding(
            .skipped, .warning, Layout.settings, what,
            remedy: "'backup-tool restore BACKUP --only settings' restores \(missing == 1 ? "it" : "them")")
    }
}
