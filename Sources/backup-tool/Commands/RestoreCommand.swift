import BackupKit

extension Command {
    static let restore = Command(
        "restore", "Bring a backup back into the store, or out as plain files", in: .moveData,
        discussion: """
            The backup is checked first; a damaged one is refused unless --allow-damage, which restores what is sound \
            and lists the rest. Then everything happens in one step that 'undo' takes back.

            merge, the usual mode, adds what is missing and never overwrites a newer field, and what was deleted after \
            the backup stays deleted unless --resurrect. replace makes the store what the backup says, \
            but for what was deleted later or is kept on this device only. Settings are \
            restored only with --only settings (or a list that names them).

            With --to DIR the files of the backup are written into a new folder and the store is not touched.
            """,
        options: [
            .store, .value("to", "DIR", "Write plain files into this new folder instead", .directory),
            .value(
                "mode", "MODE", "How to restore", .oneOf(RestoreOptions.Mode.allCases.map(\.rawValue))),
            .only, .value("match", "QUERY", "Only records with these words, or field=word"),
            .flag("resurrect", "Bring back what was deleted after the backup was made"),
            .value("schema", "FILE", "Give records the defaults that this schema file has for what they lack", .file),
            .flag("allow-damage", "Restore what is sound of a damaged backup"),
            .flag("force", "With --to: replace the folder"), .dryRun,
        ],
        arguments: [Argument("PATH", "A library or an imbib backup: a folder or an archive", .file)],
        examples: [
            Example("backup-tool restore library.tar.zst --dry-run", "See what would change"),
            Example("backup-tool restore library.tar.zst --match smith2020", "Bring back one reference"),
            Example("backup-tool restore library.tar.zst --to /tmp/library", "Plain files, no store"),
        ],
        reports: true,
        run: { call in
            let path = try call.argument("PATH")
            var options = RestoreOptions()
            options.mode = call.value("mode").flatMap(RestoreOptions.Mode.init(rawValue:)) ?? .merge
            options.kinds = call.kinds(else: options.kinds)
            options.match = call.value("match").map(RecordQuery.init)
            options.resurrect = call.flag("resurrect")
            options.allowDamage = call.flag("allow-damage")
            options.schema = try call.value("schema").map { try call.schema($0) }
            options.dryRun = call.flag("dry-run")
            options.keepsPlan = call.output.isVerbose || call.output.isJSON
            options.limits = try call.limits()
            options.progress = call.output.progress()
            if let folder = call.value("to") { return try extract(path, to: folder, options, call) }
            if call.flag("force") { throw call.usage("--force goes with --to") }
            let result = try Store.withStore(try call.storePath(), dryRun: options.dryRun) { store in
                try Restorer.restore(path, into: store, options)
            }
            return call.report(result, as: "restore", dryRun: options.dryRun)
        })
}

private func extract(
    _ path: String, to folder: String, _ options: RestoreOptions, _ call: Invocation
) throws -> ExitStatus {
    for name in ["mode", "only", "match", "store", "schema"] where call.value(name) != nil {
        throw call.usage("--\(name) does not go with --to, which writes every file")
    }
    if options.dryRun || options.resurrect {
        throw call.usage("--to writes files and knows no --dry-run or --resurrect")
    }
    let result = try Restorer.extract(path, to: folder, replace: call.flag("force"), options)
    if call.output.isJSON {
        call.output.report([
            "message_type": "restore", "path": .string(folder), "files": .int(result.files),
            "bytes": .int(Int(result.bytes)), "findings": .array(result.findings.map(\.json)),
        ])
    } else {
        call.say(result.findings)
        call.output.note(
            "\(HumanText.count(result.files, "file")), \(HumanText.bytes(Int(result.bytes))) in \(printable(folder))")
    }
    return result.findings.contains { $0.severity != .note } ? .incomplete : .done
}
