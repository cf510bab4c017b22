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
        let wantsAssets = options.kinds.contains(.attachments) && !options.dryRun
        let staged = try Staging.extract(layout, into: folder, options.limits, progress: options.progress) { entry in
            layout.role(of: entry.path) != .attachment || wantsAssets
        }
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

    private static func time(of layout: OpenedLayout, _ staged: Staging.Result) -> Timestamp {
        switch layout.manifest {
        case .own(let manifest): manifest.createdAt
        case .imbib(let manifest): manifest.createdAt
        case .none: Timestamp(milliseconds: (staged.modified.values.max() ?? 0) &* 1000)
        }
    }
}
