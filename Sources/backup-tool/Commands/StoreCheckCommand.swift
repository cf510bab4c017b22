import BackupKit

extension Command {
    static let storeCheck = Command(
        "check", "Check the store's rows, files and queues", in: .store,
        discussion: """
            Runs SQLite's integrity check, compares every row with the hash that it got when it was written and every \
            file with its SHA-256, and looks for tombstones that hold data, queues that are stuck and indexes that \
            disagree. Nothing is changed. Ends with 4 when something is damaged, with 3 when something needs attention.
            """,
        options: [.store, .flag("quick", "Compare the sizes of files, not their contents")],
        examples: [
            Example("backup-tool store check", "Check everything"),
            Example("backup-tool store check --json", "One object with all findings"),
        ],
        reports: true,
        run: { call in
            let path = try call.storePath()
            let result = try StoreCheck.run(path, files: call.flag("quick") ? .sizes : .digests)
            if call.output.isJSON {
                call.output.report([
                    "message_type": "store-check", "path": .string(path), "ok": .bool(result.findings.isEmpty),
                    "records": .int(result.records), "attachments": .int(result.assets),
                    "findings": .array(result.findings.map(\.json)),
                ])
            } else {
                call.say(result.findings)
                let looked =
                    "\(HumanText.count(result.records, "record")), \(HumanText.count(result.assets, "attachment"))"
                let verdict = result.findings.isEmpty ? "The store is sound" : "The store needs attention"
                call.output.note("\(verdict): \(looked) checked.")
            }
            return .of(result.findings)
        })

    static let storeRepair = Command(
        "repair", "Repair what 'store check' finds", in: .store,
        discussion: """
            Rebuilds indexes, frees queues, and repairs damaged rows from the backup of --from. Where a hash proves that \
            the backup has the same row, the row is again what it was. Else it gets the backup's version, which may be \
            older, and the damaged values are kept in a file beside the store. All that is one transaction. Then missing \
            and damaged attachments are copied from the backup, if it has the same bytes, and so are files that a record \
            links and the store has lost every trace of. 'undo' steps over a repair. The exit code is 4 when damage is \
            left, and 3 when something needs attention.

            --accept is for what no backup has. A row that another program changed stays as it is. A row that cannot be \
            read is taken out of the store, and its values are kept in that file. A file that is lost is no longer \
            missed, and a damaged one is taken as it is; 'undo' takes back both.
            """,
        options: [
            .store, .value("from", "SOURCE", "Take sound rows and files from this store or backup", .backup),
            .flag("accept", "Keep changed rows as they are; give up what is lost"), .dryRun,
        ] + Option.passwords,
        examples: [
            Example("backup-tool store repair --from library.tar.zst --dry-run", "See what a backup would mend"),
            Example("backup-tool store repair --from vault:/mnt/vault@latest", "Repair from the newest snapshot"),
        ],
        reports: true,
        run: { call in
            var options = StoreMending.Options()
            options.from = call.value("from")
            options.accept = call.flag("accept")
            options.dryRun = call.flag("dry-run")
            options.limits = try call.limits()
            let result = try StoreMending.run(call.storePath(), options)
            call.show(result, dryRun: options.dryRun)
            let status = ExitStatus.of(result.left)
            let isOlder = result.steps.contains { $0.action == .older }
            return status == .done && isOlder ? .incomplete : status
        })
}

extension Invocation {
    fileprivate func show(_ result: StoreRepairResult, dryRun: Bool) {
        if output.isJSON {
            output.report([
                "message_type": "store-repair", "dryRun": .bool(dryRun),
                "steps": .array(
                    result.steps.map {
                        [
                            "action": .string($0.action.rawValue), "subject": .string($0.subject),
                            "message": .string($0.message),
                        ]
                    }),
                "left": .array(result.left.map(\.json)), "keptIn": result.keptIn.map { .string($0) } ?? .null,
            ])
            return
        }
        for step in result.steps { output.print("\(printable(step.subject)): \(step.message)") }
        say(result.left)
        if let file = result.keptIn { output.note("The damaged values are kept in \(printable(file)).") }
        let count = HumanText.count(result.steps.count, "repair")
        output.note(dryRun ? "Dry run: \(count) possible, nothing written." : "\(count) made.")
    }
}
