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

    static func stage(
        _ path: String, _ opened: OpenedLayout?, in folder: String, _ options: RestoreOptions
    ) throws -> Prepared {
        try Importer.refuseSingleFile(path)
        let layout = try opened ?? OpenedLayout.open(path, limits: options.limits)
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

    /// Reads the entries of a backup. Of attachments only those that are asked for, where its manifest says what the others are.
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
        let wanted = try staging.isSound ? wantedFiles(of: layout, in: folder, options) : nil
        func isRead(_ entry: EntryInfo) -> Bool { wanted?.contains(entry.path) ?? true }
        let read = Set(layout.entries.filter { isAttachment($0) && isRead($0) }.map(\.path))
        if !read.isEmpty { try staging.read(where: { read.contains($0.path) }, keep: { _ in wantsAssets }) }
        for entry in layout.entries where isAttachment(entry) && !read.contains(entry.path) { staging.trust(entry) }
        return staging.finish()
    }

    /// The attachments that go with the records that are asked for, as the carrier names them. Nil where its records cannot say it.
    private static func wantedFiles(
        of layout: OpenedLayout, in folder: String, _ options: RestoreOptions
    ) throws -> Set<String>? {
        guard layout.expected[layout.prefix + Layout.records] != nil else { return nil }
        var wanted = WantedFiles(options)
        var reader = LineReader(limit: options.limits.lineBytes)
        func look(_ line: LineReader.Line) {
            guard let bytes = line.bytes, bytes.count > 0, let record = try? Record(parsing: bytes),
                options.kinds.contains(record.kind)
            else { return }
            _ = wanted.takes(record)
        }
        try FileHandle.openText("\(folder)/\(layout.prefix)\(Layout.records)").forEachChunk {
            reader.feed($0) { look($0) }
        }
        reader.finish { look($0) }
        return Set(
            layout.entries.map(\.path).filter { path in
                layout.role(of: path) == .attachment && wanted.takesFile(String(path.dropFirst(layout.prefix.count)))
            })
    }

    private static func time(of layout: OpenedLayout, _ staged: Staging.Result) -> Timestamp {
        switch layout.manifest {
        case .own(let manifest): manifest.createdAt
        case .imbib(let manifest): manifest.createdAt
        case .none: Timestamp(milliseconds: (staged.modified.values.max() ?? 0) &* 1000)
        }
    }
}
