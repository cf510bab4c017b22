import BackupKit

extension Command {
    static let export = Command(
        "export", "Write a library to a folder or an archive", in: .moveData,
        discussion: """
            Everything in the store, as files that can be read without this tool: BibTeX, JSON, the attachments \
            themselves, a manifest and SHA256SUMS. The export is of one moment, even while apps go on writing, and ends \
            by reading back what it wrote. Nothing appears under the name given until all of it is there.

            The format comes from the name (.tar.zst, .tar.gz, .tar.xz, .tar, .zip; anything else is a folder) unless \
            --format says otherwise. vault:PATH takes a snapshot, as 'vault backup' does. With SOURCE_DATE_EPOCH set, the same store gives the same bytes.

            Whatever cannot be exported is listed with its reason, and the exit code is 3.
            """,
        options: [
            .store, .output("Where to write; - is standard output", .backup),
            .value(
                "format", "FORMAT", "What to write",
                .oneOf(CarrierFormat.allCases.map(\.rawValue) + ["imbib"])),
            .only,
            .value(
                "order", "ORDER", "Order of library.bib: by key (usual), or as in the source files",
                .oneOf(ExportOptions.EntryOrder.allCases.map(\.rawValue))),
            .value("level", "N", "Compression level: zstd 1 to 19 (default 3), others 1 to 9 (higher means 9)"),
            .value(
                "oversize", "WHAT", "What to do with attachments over 250 MB, which will not sync",
                .oneOf(ExportOptions.Oversize.allCases.map(\.rawValue))),
            .flag("no-verify", "Do not verify what was written"), .force, .dryRun,
        ] + Option.passwords,
        examples: [
            Example("backup-tool export -o library.tar.zst", "Everything into one archive"),
            Example(
                "backup-tool export -o ~/library --only publications,attachments", "The papers, as a folder"
            ),
            Example(
                "backup-tool export -o - --format tar | ssh host 'cat > library.tar'", "To another machine"),
            Example("backup-tool export -o backup.zip --format imbib", "A backup that imbib restores"),
        ],
        reports: true,
        run: { call in
            let target = try call.argumentless(call.value("output") ?? "")
            let options = try exportOptions(call, target)
            if let address = VaultAddress(target) { return try snapshot(address, options, call) }
            if target == "-", call.output.out.isTerminal {
                throw call.usage("an archive is not for a terminal; pipe it")
            }
            let store = try call.store(.read)
            let isRehearsal = call.flag("dry-run")
            let result =
                try isRehearsal
                ? Exporter.rehearse(store, to: target, options)
                : Exporter.export(store, to: target, options)
            return report(result, call, dryRun: isRehearsal)
        })
}

/// A vault takes what other forms take, as its next snapshot.
private func snapshot(_ address: VaultAddress, _ options: ExportOptions, _ call: Invocation) throws
    -> ExitStatus
{
    guard call.value("format") == nil, call.value("level") == nil, call.value("order") == nil else {
        throw call.usage("--format, --level and --order do not go with a vault")
    }
    if let word = address.word {
        throw call.usage("a new snapshot takes its name itself: leave out '@\(printable(word))'")
    }
    var backup = VaultBackupOptions()
    backup.kinds = options.kinds
    backup.oversize = options.oversize
    backup.clock = options.clock
    backup.dryRun = call.flag("dry-run")
    let store = try call.store(.read)
    let backend = try FolderBackend(address.path)
    let password = try call.vaultPassword(from: call.passwordSource(of: address.path))
    return try call.backUp(store, into: try Vault.open(backend, password: password), backup)
}

extension Invocation {
    fileprivate func argumentless(_ output: String) throws -> String {
        if output.isEmpty { throw usage("--output needs a path") }
        return output
    }
}

private func exportOptions(_ call: Invocation, _ target: String) throws -> ExportOptions {
    let settings = try call.configuration()
    let isImbib = call.value("format") == "imbib"
    let named = CarrierFormat(fileName: target)
    let chosen = call.value("format").flatMap(CarrierFormat.init(rawValue:))
    let usual = settings.text("export.format")
    var form: ExportOptions.Form
    if isImbib || (call.value("format") == nil && named == nil && usual == "imbib") {
        form = .imbib(named ?? (target == "-" ? .zip : .directory))
    } else {
        let configured = usual.flatMap(CarrierFormat.init(rawValue:))
        form = .layout(chosen ?? named ?? configured ?? (target == "-" ? .tarZstandard : .directory))
    }
    if chosen == nil, named == nil, target != "-", VaultAddress(target) == nil {
        try call.checkNewFolder(
            target,
            remedy:
                "use .tar.zst, .tar.gz, .tar.xz, .tar or .zip, or --format dir for a folder of this name")
    }
    var options = ExportOptions(form: form)
    options.kinds = call.kinds()
    if call.value("level") != nil, !form.isCompressed, VaultAddress(target) == nil {
        throw call.usage("--level does not go with a folder or a .tar: they are not compressed")
    }
    if call.value("order") != nil, !options.kinds.contains(.publications) {
        throw call.usage("--order is about library.bib, and --only leaves the publications out")
    }
    options.order = call.value("order").flatMap(ExportOptions.EntryOrder.init(rawValue:)) ?? .key
    options.level = try call.integer("level", in: 1...19) ?? settings.integer("export.level")
    let oversize = call.value("oversize") ?? settings.text("export.oversize")
    options.oversize = oversize.flatMap(ExportOptions.Oversize.init(rawValue:)) ?? .include
    options.verify = !call.flag("no-verify") && settings.boolean("export.verify") != false
    options.replace = call.flag("force")
    options.tool = "backup-tool \(Tool.version)"
    options.progress = call.output.progress()
    if let text = call.environment["SOURCE_DATE_EPOCH"] {
        guard let seconds = Int64(text), abs(seconds) < 250_000_000_000 else {
            throw call.usage("SOURCE_DATE_EPOCH must be a number of seconds, not '\(printable(text))'")
        }
        options.clock = .fixed(Timestamp(milliseconds: seconds * 1000))
        options.reproducible = true
    }
    return options
}

private func report(_ result: ExportResult, _ call: Invocation, dryRun: Bool) -> ExitStatus {
    let output = call.output
    let toOutput = result.path == "-"
    if output.isJSON {
        // Standard output holds the archive itself when it was asked for.
        let json = result.json(dryRun: dryRun)
        if toOutput, !dryRun { output.say(json) } else { output.report(json) }
    } else {
        call.say(result.warnings + result.omitted.map(\.finding))
        let place = "in \(printable(toOutput ? "standard output" : result.path))"
        output.note(
            dryRun
                ? "Dry run: \(result.sentence) uncompressed \(place), nothing written."
                : "\(result.sentence) \(place)")
        call.tellElsewhere(result)
        output.detail("content digest \(result.contentDigest.hex)")
    }
    if result.isOfDamagedStore { return .damaged }
    return result.isComplete ? .done : .incomplete
}

extension ExportResult {
    fileprivate var sentence: String {
        let count = records.values.reduce(0, +)
        return
            "\(HumanText.count(count, "record")), \(HumanText.count(files, "file")), \(HumanText.bytes(Int(bytes)))"
    }

    fileprivate func json(dryRun: Bool) -> JSONValue {
        [
            "message_type": "export", "dryRun": .bool(dryRun), "path": .string(path),
            "bytes": .int(Int(bytes)),
            "files": .int(files), "records": records.json, "tombstones": .int(tombstones),
            "contentDigest": .string(contentDigest.hex),
            "omitted": .array(omitted.map { ["path": .string($0.path), "reason": .string($0.reason)] }),
            "elsewhere": .array(elsewhere.map { .string($0.path) }),
            "warnings": .array(warnings.map(\.json)),
        ]
    }
}

extension Invocation {
    /// Each sync names these files and ends with 3; a backup of what is here lacks nothing.
    func tellElsewhere(_ result: ExportResult) {
        guard !result.elsewhere.isEmpty else { return }
        let count = result.elsewhere.count
        output.note(
            "\(HumanText.count(count, "linked file")) \(count == 1 ? "is" : "are") on other devices only: "
                + firstNames(result.elsewhere.map(\.path)))
    }
}
