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

    /// Reads the entries of a backup: with `--match` only the attachments that go with the chosen records, where its manifest
    /// says what the others are.
    private static func stage(
        _ layout: OpenedLayout, in folder: String, _ options: RestoreOptions
    ) throws -> Staging.Result {
        let staging = try Staging(layout, into: folder, options.limits, progress: options.progress)
        let wantsAssets = options.kinds.contains(.attachments) && !options.dryRun
        @Sendable func isAttachment(_ entry: EntryInfo) -> Bool { layout.role(of: entry.path) == .attachment }
        guard options.match != nil, case .own = layout.manifest, !layout.isDamaged else {
            try staging.read(keep: { !isAttachment($0) || wantsAssets })
            return staging.finish()
        }
        try staging.read(where: { !isAttachment($0) })
        let attachments = layout.entries.filter(isAttachment)
        var chosen = try staging.isSound ? chosenRecords(of: layout, in: folder, options) : nil
        let wanted = Set(
            attachments.map(\.path).filter { chosen?.takesFile(String($0.dropFirst(layout.prefix.count))) ?? true })
        if !wanted.isEmpty { try staging.read(where: { wanted.contains($0.path) }, keep: { _ in wantsAssets }) }
        for entry in attachments where !wanted.contains(entry.path) { staging.trust(entry) }
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
