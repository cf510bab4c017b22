import BackupKit

extension Command {
    static let restore = Command(
        "restore", "Restore a backup into the store, or as plain files", in: .moveData,
        discussion: """
            The backup is checked first. A damaged one is refused; --allow-damage restores what is sound and lists the \
            rest. The restore is one step, which 'undo' takes back.

            --mode merge (default) adds what is missing and overwrites no newer field. What the backup has as \
            deleted, and nobody has changed since, is deleted. --mode replace makes the store equal to the backup. It \
            leaves records that were deleted later, or that are kept on this device only. Settings are restored only \
            with --only settings (or a list that names them).

            --match chooses records by words that must all be found, by field=word (citeKey= and localId= need the whole \
            value), or by a record's name as it is printed (zone/name). A month or a day, such as 2026-03, also chooses \
            notes that were written or changed then (UTC). The exit code is 3 when a chosen record stays deleted.

            --sync-policy says how to treat records that were deleted after the backup was made. honor (default): they \
            stay deleted. resurrect: once all devices have synced, all have every record of the backup; newer fields \
            stay. quarantine: a version that the store does not have is kept apart on this device and not synced, until \
            'store enable-cloud' releases it.

            --simulate N plays the restore and the next syncs with N copies of the store and a copy of the hub. It says \
            what becomes of each record, and changes nothing. The exit code is 3 when a restored record would be deleted \
            again. Attachments are not simulated.

            A missing store is made at the usual place; one that --store names is made only with --create.

            With --to DIR the files of the backup are written into a new folder and the store is not touched.
            """,
        options: [
            .store, .create, .value("to", "DIR", "Write plain files into this new folder instead", .directory),
            .value(
                "mode", "MODE", "How to restore", .oneOf(RestoreOptions.Mode.allCases.map(\.rawValue))),
            .only,
            .value(
                "match", "QUERY", "Restore only records that match QUERY (words, field=word or zone/name)",
                repeated: true),
            .value(
                "sync-policy", "POLICY", "How to treat records deleted after the backup was made",
                .oneOf(SyncPolicy.allCases.map(\.rawValue))),
            .flag("resurrect", "Short for --sync-policy resurrect: bring back what was deleted since"),
            .value("simulate", "N", "Simulate the restore and the next syncs of N devices, change nothing"),
            .value("hub", "PATH", "With --simulate: the hub (default: that of the last sync)", .file),
            .value("schema", "FILE", "Fill missing attributes with the defaults of this schema file", .file),
            .flag("allow-damage", "Restore what is sound of a damaged backup"),
            .flag("force", Option.forced("With --to: replace the folder where it is")), .dryRun,
        ] + Option.passwords,
        arguments: [
            Argument("PATH", "A library or an imbib backup: a folder, an archive or vault:PATH@SNAPSHOT", .backup)
        ],
        examples: [
            Example("backup-tool restore library.tar.zst --dry-run", "See what would change"),
            Example("backup-tool restore library.tar.zst --match citeKey=smith2020", "Bring back one reference"),
            Example(
                "backup-tool restore library.tar.zst --resurrect --simulate 3", "Whether it survives the next syncs"),
            Example("backup-tool restore library.tar.zst --to /tmp/library", "Plain files, no store"),
        ],
        reports: true,
        run: { call in
            let path = try call.argument("PATH")
            var options = RestoreOptions()
            options.mode = call.value("mode").flatMap(RestoreOptions.Mode.init(rawValue:)) ?? .merge
            options.kinds = call.kinds(else: options.kinds)
            options.namesKinds = !call.values("only").isEmpty
            let queries = call.values("match")
            options.match = queries.isEmpty ? nil : RecordQuery(queries)
            if options.match?.isBlank == true { throw call.usage("--match needs a word to look for") }
            options.policy = try call.syncPolicy()
            if options.policy == .quarantine, options.mode == .replace {
                throw call.usage("--mode replace does not go with a quarantine, which touches nothing")
            }
            options.allowDamage = call.flag("allow-damage")
            options.schema = try call.value("schema").map { try call.schema($0) }
            options.dryRun = call.flag("dry-run")
            options.keepsPlan = call.output.isVerbose || call.output.isJSON
            options.limits = try call.limits()
            options.progress = call.output.progress()
            if let folder = call.value("to") { return try extract(path, to: folder, options, call) }
            if call.flag("force") { throw call.usage("--force goes with --to") }
            if let devices = try call.integer("simulate", in: 2...16) {
                try call.checkStoreIsThere()
                let result = try Simulation.run(
                    path, store: try call.storePath(), devices: devices, hub: call.value("hub"), options)
                return call.report(result)
            }
            if call.value("hub") != nil { throw call.usage("--hub goes with --simulate") }
            let result = try call.withStore(dryRun: options.dryRun) { store in
                try Restorer.restore(path, into: call.watched(store), options)
            }
            return call.report(result, as: "restore", dryRun: options.dryRun)
        })
}

extension Invocation {
    fileprivate func syncPolicy() throws -> SyncPolicy {
        let named = value("sync-policy").flatMap(SyncPolicy.init(rawValue:))
        guard flag("resurrect") else { return named ?? .honor }
        if let named, named != .resurrect {
            throw usage("--resurrect means --sync-policy resurrect, not \(named.rawValue)")
        }
        return .resurrect
    }

    fileprivate func report(_ result: SimulationResult) -> ExitStatus {
        let status: ExitStatus = result.needsAttention ? .incomplete : .done
        guard !output.isJSON else {
            output.report(result.json)
            return status
        }
        for record in result.records {
            if output.isClosed { return status }
            let reason = record.reason.map { ": \($0)" } ?? ""
            let what = "\(record.outcome.text(output.out.style))\(printable(reason))"
            output.print("\(printable(record.label))  \(output.out.style.dim(printable("\(record.id)")))  \(what)")
        }
        say(result.restore.findings + result.findings)
        let counts = SimulatedRecord.Outcome.allCases.compactMap { outcome in
            result.counts[outcome].map { count in
                let plural = outcome == .conflict && count != 1 ? "s" : ""
                return "\(HumanText.count(count)) \(outcome.words)\(plural)"
            }
        }
        let hub = result.hub.map { "a copy of \(printable($0))" } ?? "a new hub"
        let rounds = HumanText.count(result.rounds, "round")
        output.note("\(counts.isEmpty ? "no records" : counts.joined(separator: ", ")).")
        output.note("\(result.devices) devices and \(hub), at rest after \(rounds) of syncs. Nothing was written.")
        return status
    }
}

extension SimulatedRecord.Outcome {
    fileprivate var words: String {
        switch self {
        case .everywhere: "alive everywhere"
        case .deletedAgain: "deleted again"
        case .staysDeleted: "stays deleted"
        case .hereOnly: "kept here only"
        case .conflict: "conflict"
        }
    }

    fileprivate func text(_ style: Style) -> String {
        switch self {
        case .everywhere: style.good(words)
        case .deletedAgain: style.bad(words)
        case .staysDeleted, .hereOnly: style.dim(words)
        case .conflict: style.warning(words)
        }
    }
}

extension SimulationResult {
    fileprivate var json: JSONValue {
        [
            "message_type": "simulation", "devices": .int(devices), "hub": hub.map(JSONValue.string) ?? .null,
            "rounds": .int(rounds),
            "outcomes": .object(
                SimulatedRecord.Outcome.allCases.map { .init(key: $0.rawValue, value: .int(counts[$0] ?? 0)) }),
            "records": .array(
                records.map { record in
                    [
                        "record": .string(record.id.description), "label": .string(record.label),
                        "outcome": .string(record.outcome.rawValue),
                        "reason": record.reason.map(JSONValue.string) ?? .null,
                    ]
                }),
            "restore": restore.json(as: "restore", dryRun: true), "findings": .array(findings.map(\.json)),
        ]
    }
}

private func extract(
    _ path: String, to folder: String, _ options: RestoreOptions, _ call: Invocation
) throws -> ExitStatus {
    for name in ["mode", "only", "match", "store", "schema", "sync-policy", "simulate", "hub"]
    where call.value(name) != nil {
        throw call.usage("--\(name) does not go with --to, which writes every file")
    }
    for name in ["dry-run", "resurrect"] where call.flag(name) {
        throw call.usage("--\(name) does not go with --to, which writes every file")
    }
    try call.checkNewFolder(
        folder, remedy: "--to writes a folder; 'backup-tool export -o ARCHIVE' writes an archive")
    let result = try Restorer.extract(
        path, to: folder, besides: try? call.storePath(), replace: call.flag("force"), options)
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
