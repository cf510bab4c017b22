/// What an import leaves out, and says so.
extension Importer {
    /// Parts files that can be read from those that cannot.
    static func readable(_ sources: [Source]) throws -> (sources: [Source], refused: [(path: String, why: String)]) {
        var refused: [(path: String, why: String)] = []
        let sources = try sources.filter { source in
            guard let path = source.textFile else { return true }
            var why = try FileHandle.refusal(ofText: path)
            if case .bibliography = source, why == nil { why = try ForeignText.refusal(ofBibliography: path) }
            if let why { refused.append((path, why)) }
            return why == nil
        }
        return (sources, refused)
    }

    /// A backup or an archive that costs only itself, because there are other sources. The message names it and what is in it.
    static func leftOut(_ path: String, _ error: BackupError) -> Finding {
        let inside = error.subject.flatMap { $0.hasPrefix(path) ? nil : "\($0) " } ?? ""
        return Finding(
            error.code == .damaged ? .entryDamaged : .unreadable, .damage, path,
            "\(inside)\(error.message); nothing of this backup was imported", remedy: error.remedy)
    }

    /// `named` are the paths that the user gave; in a folder, what --only does not name is not asked for.
    static func noteUnwanted(
        _ sources: [Source], named: Set<String>, _ intake: Intake, _ kinds: Set<Kind>
    ) throws {
        let texts = sources.compactMap { source in source.textFile.flatMap { path in source.kind.map { (path, $0) } } }
        for folder in named.sorted() {
            let found = texts.filter { $0.0.hasPrefix(folder.hasSuffix("/") ? folder : folder + "/") }.map(\.1)
            guard !found.isEmpty, !found.contains(where: kinds.contains) else { continue }
            let names = Set(found.map(\.rawValue)).sorted()
            let advice = TypedCommand.quoted("import --only \(names.joined(separator: ","))", [folder])
            intake.note(
                Finding(
                    .skipped, .warning, folder,
                    "was left out: it holds \(names.joined(separator: " and ")), which were not asked for",
                    remedy: "\(advice) imports what it holds"))
        }
        for source in sources {
            guard let path = source.textFile, let kind = source.kind, !kinds.contains(kind) else { continue }
            let isNamed = named.contains(path)
            if kind == .settings {
                try noteSettings(path, path, isNamed: isNamed, intake, kinds)
            } else if isNamed {
                intake.note(
                    Finding(
                        .skipped, .warning, path, "was left out: it holds \(kind.rawValue), which were not asked for",
                        remedy: "\(TypedCommand.quoted("import --only \(kind.rawValue)", [path])) imports it"))
            }
        }
    }

    /// A file with nothing in it, where somebody expects a library, was often cut off by a full disk. In a folder of event
    /// logs a day may be empty.
    static func noteEmpty(_ sources: [Source], named: Set<String>, _ intake: Intake) throws {
        for source in sources {
            guard let path = source.textFile, try FileHandle.isBlank(path) else { continue }
            let isUsual = source.kind == .events && !named.contains(path)
            intake.note(
                Finding(
                    .skipped, isUsual ? .note : .warning, path, "is empty",
                    remedy: "look whether it was cut off; an older copy of it may have everything"))
        }
    }

    /// An import takes nothing out of the store's own folder: what the store does not know there is taken in otherwise.
    static func noteStrayFiles(below roots: [String], _ intake: Intake) throws {
        guard let folder = Directory.real(intake.store.treeFolder).map({ $0 + "/" }) else { return }
        let roots = roots.compactMap { Directory.real($0) }.map { $0 + "/" }
        guard roots.contains(where: { folder.hasPrefix($0) || $0.hasPrefix(folder) }) else { return }
        for finding in try intake.store.strayFiles() where roots.contains(where: (folder + finding.subject).hasPrefix) {
            intake.note(finding)
        }
    }

    /// A backup that holds nothing of the kinds that somebody has named.
    static func noteNothing(in backup: String, _ intake: Intake, _ options: ImportOptions) {
        guard options.namesKinds else { return }
        let names = options.kinds.map(\.rawValue).sorted().joined(separator: ", ")
        intake.note(
            Finding(
                .skipped, .warning, backup, "holds no \(names)",
                remedy: "\(TypedCommand.quoted("list", [backup])) lists its files"))
    }

    static func noteSettings(
        of backup: Restorer.Prepared, _ path: String, _ intake: Intake, _ kinds: Set<Kind>
    ) throws {
        guard !kinds.contains(.settings), let file = backup.file(Layout.settings) else { return }
        try noteSettings(file, "\(path)/\(Layout.settings)", isNamed: false, intake, kinds)
    }

    /// Settings come only when they are asked for. That is a warning, unless --only asked for other kinds, or the store has
    /// them all.
    private static func noteSettings(
        _ file: String, _ subject: String, isNamed: Bool, _ intake: Intake, _ kinds: Set<Kind>
    ) throws {
        let isMissed = isNamed || kinds == ImportOptions.usualKinds
        if !isNamed, try FileIntake(intake, ReadLimits()).areSettingsKnown(file) { return }
        // It is reported as empty.
        if try FileHandle.isBlank(file) { return }
        intake.note(
            Finding(
                isMissed ? .skipped : .notAskedFor, isMissed ? .warning : .note, subject,
                "was left out: settings are only imported when asked for", remedy: "name the kind: --only settings"))
    }

    /// `known` are files that lines or entries name: they were taken, or were left with what names them. Must run after the
    /// files of `--attachments` were taken: what the store has is not left out.
    static func noteLeftOut(
        _ sources: [Source], known: Set<ByteName>, _ options: ImportOptions, _ intake: Intake
    ) throws {
        let attachments = options.attachments.map { "\(Directory.real($0) ?? $0)/" }
        for case .unreadable(let path, let reason) in sources {
            intake.note(Finding(.skipped, .warning, path, "was left out: \(reason)"))
        }
        for case .link(let path) in sources where !known.contains(ByteName(path)) {
            let isFolder = (try? FileStatus.ofTarget(path))?.isDirectory == true
            let isTaken = isSingleFile(path) || isFolder && seemsToHoldSources(path)
            let remedy =
                isTaken
                ? "\(TypedCommand.quoted("import", [path])) imports what it leads to"
                : isFolder
                    ? "\(TypedCommand.quoted("import", options: ["attachments": path])) takes the files that it leads to"
                    : "put a copy of the file in its place"
            intake.note(
                Finding(
                    .skipped, .warning, path, "was left out: it is a link, which import does not follow in a folder",
                    remedy: remedy))
        }
        for case .leftOut(let path, let files) in sources {
            let folder = Directory.real(path) ?? path
            let left = files.filter { file in
                !known.contains(ByteName("\(path)/\(file)"))
                    && attachments.map { "\(folder)/\(file)".hasPrefix($0) } != true
            }
            noteArchives(left.filter(isArchive), in: path, intake)
            // What is left could only be attachments.
            let own = Set(files.map { ByteName(AttachmentFolder.path(of: $0)) })
            let others = try left.filter { try !isArchive($0) && !intake.hasFile($0, below: path, besides: own) }
            guard options.kinds.contains(.attachments), let first = others.first else { continue }
            intake.note(
                Finding(
                    .skipped, .warning, path,
                    "holds \(others.count) \(others.count == 1 ? "file" : "files") that import does not take, "
                        + "such as \(first)",
                    remedy: "if they are attachments, "
                        + "\(TypedCommand.quoted("import", [path], options: ["attachments": path])) takes them, too")
            )
        }
    }

    /// Whether an import would find something in a folder, as far as its first names tell: a link may lead to a whole disk.
    private static func seemsToHoldSources(_ folder: String) -> Bool {
        struct Enough: Error {}
        var (isFound, left) = ((try? isBackupFolder(folder)) == true, 10_000)
        try? Directory.walk(folder, obstacle: { _, _ in }) { relative, status in
            let path = "\(folder)/\(relative)"
            isFound = isFound || (status.isDirectory ? (try? isBackupFolder(path)) == true : fileSource(path) != nil)
            left -= 1
            if isFound || left == 0 { throw Enough() }
        }
        return isFound
    }

    /// Several archives in a folder may be states of one library, and only a person knows which one is meant.
    private static func noteArchives(_ archives: [String], in folder: String, _ intake: Intake) {
        guard let first = archives.first else { return }
        intake.note(
            Finding(
                .skipped, .warning, folder,
                "holds \(archives.count) \(archives.count == 1 ? "archive" : "archives"), such as \(first): "
                    + "import does not open archives in a folder", remedy: remedy(forArchive: "\(folder)/\(first)")))
    }

    static func isArchive(_ path: String) -> Bool { CarrierFormat(fileName: path) != nil }

    static func remedy(forArchive path: String) -> String {
        "\(TypedCommand.quoted("import", [path])) imports it, if it is a backup"
    }
}

extension Importer.Source {
    fileprivate var textFile: String? {
        switch self {
        case .bibliography(let path), .events(let path), .notes(let path), .settings(let path), .records(let path):
            path
        case .leftOut, .unreadable, .link, .backup: nil
        }
    }

    fileprivate var kind: Kind? {
        switch self {
        case .bibliography: .publications
        case .events: .events
        case .notes: .notes
        case .settings: .settings
        case .records, .leftOut, .unreadable, .link, .backup: nil
        }
    }
}
