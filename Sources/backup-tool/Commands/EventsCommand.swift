import BackupKit

extension Command {
    static let events = Command(
        "events", "Import and export event logs", in: .events,
        subcommands: [importEvents, exportEvents])

    private static let importEvents = Command(
        "import", "Import event logs",
        discussion: """
            PATH is a .jsonl file, or a folder of them: one JSON object a line, as Ollie writes them. A line is known \
            by its id, else its localId, else by what it says; lines that the store has already change nothing, \
            and an edited line updates the fields that it changes, if its modified_at is later than what the store has. \
            Photos and videos that a line names by a relative path come along when they lie beside the log.

            A line that cannot be taken (broken JSON, no time, a path that leads outside, a name used twice) is \
            told with its file, number and reason, the others are imported, and the exit code is 3.
            """,
        options: [
            .store, .create,
            .value("rejected", "FILE", "Write the rejected lines to this file, outside of PATH", .file),
            .value("max-line", "BYTES", "Reject longer lines (default: 64 MiB)"), .overwrite, .dryRun,
            .flag("force", Option.forced("With --rejected: replace FILE where it is")),
        ],
        arguments: [Argument("PATH", "A .jsonl file or a folder of them", .file, .oneOrMore)],
        examples: [
            Example("backup-tool events import ~/Ollie", "Import a diary of one file a day"),
            Example(
                "backup-tool events import diary.jsonl --rejected bad.jsonl", "Keep the lines that could not be read"),
        ],
        reports: true,
        run: { call in
            var options = ImportOptions()
            options.kinds = [.events, .attachments]
            options.dryRun = call.flag("dry-run")
            options.overwrite = call.flag("overwrite")
            options.keepsPlan = call.output.isVerbose
            options.limits = try call.limits()
            if let bytes = try call.integer("max-line", in: 1...(1 << 30)) { options.limits.lineBytes = bytes }
            options.progress = call.output.progress()
            let paths = call.arguments("PATH")
            func run(_ options: ImportOptions) throws -> ExitStatus {
                let result = try call.withStore(dryRun: options.dryRun) { store in
                    try Importer.run(paths, into: call.watched(store), options)
                }
                return call.report(result, as: "import", dryRun: options.dryRun)
            }
            guard let rejected = call.value("rejected") else { return try run(options) }
            return try Importer.keepingRejected(in: rejected, of: paths, options, replace: call.flag("force"), run)
        })

    private static let exportEvents = Command(
        "export", "Export events as one file a day, or as one file",
        discussion: """
            To a folder: one file a local day, named like 2026-02-14.jsonl, and the photos and videos that the lines \
            name. To a name that ends in .jsonl, or to - for standard output: all lines, by time. A line that nobody \
            edited is written byte for byte as it came.
            """,
        options: [
            .store, .output("A new folder, a .jsonl file, or - for standard output"),
            .value("from", "DAY", "The first day, such as 2026-02-14"), .value("to", "DAY", "The last day"),
            .value("type", "TYPE", "Only events of this type", repeated: true), .force, .dryRun,
        ],
        examples: [
            Example("backup-tool events export -o ~/Ollie-export", "Everything, by day"),
            Example(
                "backup-tool events export -o - --from 2026-03-01 --to 2026-03-07 --type eten", "One week, one type"),
        ],
        reports: true,
        run: { call in
            let target = call.value("output") ?? ""
            if target.isEmpty { throw call.usage("--output needs a path") }
            if target != "-", !target.hasSuffix(".jsonl") {
                try call.checkNewFolder(target, remedy: "use .jsonl for one file, or the name of a folder")
            }
            var options = EventExportOptions()
            options.from = try call.day("from")
            options.to = try call.day("to")
            if let from = options.from, let to = options.to, to < from {
                throw call.usage("--from \(from.text) is after --to \(to.text)")
            }
            options.types = Set(call.values("type"))
            options.replace = call.flag("force")
            options.progress = call.output.progress()
            let store = try call.store(.read)
            if call.flag("dry-run") {
                let result = try EventExporter.count(store, to: target == "-" ? nil : target, options)
                return call.report(result, target, dryRun: true)
            }
            let result: EventExportResult
            if target == "-" {
                result = try EventExporter.write(store, to: FileHandle.standardOutput(), options)
            } else if target.hasSuffix(".jsonl") {
                result = try EventExporter.write(store, toFile: target, options)
            } else {
                result = try EventExporter.write(store, toFolder: target, options)
            }
            return call.report(result, target, dryRun: false)
        })
}

extension Invocation {
    fileprivate func day(_ option: String) throws -> CivilDate? {
        guard let text = value(option) else { return nil }
        guard text.utf8.count == 10, let time = LocalTime(text) else {
            throw usage("--\(option) is a day such as 2026-02-14, not '\(printable(text))'")
        }
        return time.day
    }

    fileprivate func report(_ result: EventExportResult, _ target: String, dryRun: Bool) -> ExitStatus {
        if output.isJSON {
            let json: JSONValue = [
                "message_type": "events-export", "dryRun": .bool(dryRun), "path": .string(target),
                "events": .int(result.events), "days": .int(result.days), "bytes": .int(Int(result.bytes)),
                "media": .int(result.media),
                "omitted": .array(result.omitted.map { ["path": .string($0.path), "reason": .string($0.reason)] }),
                "warnings": .array(result.warnings.map(\.json)),
            ]
            // Standard output holds the events themselves when they were asked for.
            if target == "-", !dryRun { output.say(json) } else { output.report(json) }
        } else {
            say(result.warnings + result.omitted.map(\.finding))
            let what = "\(HumanText.count(result.events, "event")) of \(HumanText.count(result.days, "day"))"
            let media = result.media > 0 ? ", \(HumanText.count(result.media, "file")) that they name" : ""
            let place = target == "-" ? "standard output" : target
            output.note(
                dryRun
                    ? "Dry run: \(what) to \(printable(place)), nothing written."
                    : "\(what)\(media), \(HumanText.bytes(Int(result.bytes))) in \(printable(place))")
        }
        return result.omitted.isEmpty && result.warnings.isEmpty ? .done : .incomplete
    }
}
