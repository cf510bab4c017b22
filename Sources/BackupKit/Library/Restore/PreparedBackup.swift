/// A backup, brought to where a restore reads it.
extension Restorer {
    /// A backup that lies in a folder as plain files, judged.
    struct Prepared {
        let path: String
        let layout: OpenedLayout
        let folder: String
        let staged: Staging.Result
        let findings: [Finding]
        /// When the backup was made: the time of what carries none.
        let time: Timestamp

        func file(_ path: String) -> String? {
            let full = layout.prefix + path
            return staged.files[full] == nil ? nil : "\(folder)/\(full)"
        }
    }

    /// Opens a backup and copies into `folder` what a restore of it reads. Whatever is wrong is told with the backup's name.
    static func prepare(
        _ path: String, _ opened: OpenedLayout? = nil, in folder: String, _ options: RestoreOptions
    ) throws -> Prepared {
        do { return try stage(path, opened, in: folder, options) } catch let error as BackupError {
            throw error.naming(backup: path)
        }
    }

    /// Opens what a restore would read. Whatever is wrong is told with the backup's name.
    static func open(_ path: String, limits: ReadLimits) throws -> OpenedLayout {
        do {
            try Importer.refuseSingleFile(path)
            return try OpenedLayout.open(path, limits: limits)
        } catch let error as BackupError { throw error.naming(backup: path) }
    }

    static func stage(
        _ path: String, _ opened: OpenedLayout?, in folder: String, _ options: RestoreOptions
    ) throws -> Prepared {
        let layout = try opened ?? open(path, limits: options.limits)
        // What is left of a damaged one may not look like a library any more.
        guard layout.isLayout || layout.isDamaged else {
            throw layout.noLibrary(
                at: path,
                "'backup-tool list BACKUP' shows what it holds; "
                    + "'backup-tool import FOLDER' takes the .bib and .jsonl files of a folder, also of an unpacked one"
            )
        }
        if let refusal = layout.manifest.schemaVersion.flatMap({ SchemaVersion.refusal(of: $0, at: path) }) {
            throw refusal
        }
        let staged = try stage(layout, in: folder, options)
        let findings = judge(layout, staged, options.kinds)
        let damage = findings.filter { $0.severity == .damage }
        if !damage.isEmpty, !options.allowDamage {
            // A file that may not be read may be sound.
            if let denied = damage.lazy.map({ "\(path)/\($0.subject)" }).first(where: FileHandle.isDenied) {
                try FileHandle.checkReadable(denied)
            }
            let more = damage.count > 1 ? " (and \(damage.count - 1) more)" : ""
            throw BackupError(
                .damaged, "is damaged: \(damage[0].sentence)\(more)", at: path,
                remedy: damage[0].advice(
                    "'backup-tool verify BACKUP' lists everything; 'backup-tool restore BACKUP --allow-damage' restores what is sound"
                ))
        }
        return Prepared(
            path: path, layout: layout, folder: folder, staged: staged, findings: findings,
            time: time(of: layout, staged))
    }

    /// Reads the entries of a backup: with `--match` only what says what there is, and the attachments that go with the chosen
    /// records. The other files are not looked at, where the manifest says what they are.
    private static func stage(
        _ layout: OpenedLayout, in folder: String, _ options: RestoreOptions
    ) throws -> Staging.Result {
        let staging = try Staging(layout, into: folder, options.limits, progress: options.progress)
        let wantsAssets = options.kinds.contains(.attachments) && !options.dryRun
        @Sendable func isAttachment(_ path: String) -> Bool { layout.role(of: path) == .attachment }
        @Sendable func isKept(_ entry: EntryInfo) -> Bool { !isAttachment(entry.path) || wantsAssets }
        guard options.match != nil, case .own(let manifest) = layout.manifest, !layout.isDamaged else {
            try staging.read(keep: isKept)
            return staging.finish()
        }
        @Sendable func isAboutAll(_ path: String) -> Bool {
            layout.expected[path] != nil
                && [.records, .settings, .damaged, .manifest, .checksums].contains(layout.role(of: path))
        }
        try staging.read(where: { isAboutAll($0.path) })
        guard staging.isSound, var chosen = try chosenRecords(of: layout, in: folder, options) else {
            try staging.read(where: { !isAboutAll($0.path) }, keep: isKept)
            return staging.finish()
        }
        let named = Set(layout.expected.keys).union(layout.entries.map(\.path))
            .union(manifest.omitted.map { layout.prefix + $0.path })
        let others = named.filter { !isAboutAll($0) }
        let wanted = others.filter { isAttachment($0) && chosen.takesFile(String($0.dropFirst(layout.prefix.count))) }
        if !wanted.isEmpty { try staging.read(where: { wanted.contains($0.path) }, keep: isKept) }
        for path in others.subtracting(wanted) { staging.trust(path) }
        return staging.finish()
    }

    /// What was asked for, once all records were looked at. Nil where the backup has no records to choose from.
    private static func chosenRecords(
        of layout: OpenedLayout, in folder: String, _ options: RestoreOptions
    ) throws -> WantedFiles? {
        guard layout.expected[layout.prefix + Layout.records] != nil else { return nil }
        var wanted = WantedFiles(options)
        let records = try FileHandle.openText("\(folder)/\(layout.prefix)\(Layout.records)")
        try records.forEachLine(limit: options.limits.lineBytes) { line in
            guard let bytes = line.bytes, bytes.count > 0, let record = try? Record(parsing: bytes),
                options.kinds.contains(record.kind)
            else { return }
            _ = wanted.takes(record)
        }
        return wanted
    }

    private static func time(of layout: OpenedLayout, _ staged: Staging.Result) -> Timestamp {
        switch layout.manifest {
        case .own(let manifest): manifest.createdAt
        case .imbib(let manifest): manifest.createdAt
        case .none: Timestamp(milliseconds: (staged.modified.values.max() ?? 0) &* 1000)
        }
    }
}
