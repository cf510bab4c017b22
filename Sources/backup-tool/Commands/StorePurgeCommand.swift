import BackupKit

extension Command {
    static let storePurge = Command(
        "purge", "Remove deleted records for good", in: .store,
        discussion: """
            A delete leaves older versions of a record in the undo history, in quarantine and in free pages of the \
            database. This removes them: undo history, quarantine, ancestors, kept copies of files, free pages and the \
            log. The tombstone stays, so that no late device, restore or import brings the record back; --allow-return lets \
            those that you name come back. This cannot be undone, so it asks \
            for --confirm; without it the plan is shown. Exports and snapshots are not changed: those of --source and of \
            the configuration's vault that still hold a record are listed, and the run ends with 3.
            """,
        options: [
            .store, .value("deleted-before", "TIME", "All records deleted before this time, or longer ago than 30d"),
            .flag("with-files", "Also remove attachments that only these records link"),
            .value(
                "source", "SOURCE", "Look for the records in this export, snapshot, vault or store", .backup,
                repeated: true),
            .flag("allow-return", "Let the purged records ID come back by the next restore or import"),
            .flag("confirm", "Do it: what is purged cannot come back"), .dryRun,
        ] + Option.passwords,
        arguments: [Argument("ID", "A local id, a record name, or zone/name, of deleted records", .text, .any)],
        examples: [
            Example("backup-tool store purge --deleted-before 30d", "See what would be removed"),
            Example(
                "backup-tool store purge Z/17 --confirm --source vault:/mnt/vault", "One record, and who still has it"),
        ],
        reports: true,
        run: { call in
            if call.flag("allow-return") { return try allowReturn(call) }
            var options = PurgeOptions()
            options.ids = call.arguments("ID")
            options.deletedBefore = try call.value("deleted-before").map { try call.time($0) }
            options.withFiles = call.flag("with-files")
            options.dryRun = call.flag("dry-run") || !call.flag("confirm")
            options.limits = try call.limits()
            options.sources = call.values("source")
            if options.sources.isEmpty, let vault = try call.usualVault() {
                options.sources = [VaultAddress.text(ofVault: vault)]
            }
            let store = try call.store(.write)
            if options.ids.isEmpty, options.deletedBefore == nil, try !Purge.isPending(store) {
                throw call.usage("name the records, or give --deleted-before")
            }
            let result = try Purge.run(store, options)
            return call.report(result, options)
        })
}

private func allowReturn(_ call: Invocation) throws -> ExitStatus {
    for name in ["deleted-before", "with-files", "source", "confirm"] where call.flag(name) {
        throw call.usage("--\(name) does not go with --allow-return, which removes nothing")
    }
    let ids = call.arguments("ID")
    if ids.isEmpty { throw call.usage("name the purged records that may come back") }
    let isDry = call.flag("dry-run")
    let allowed = try call.store(.write).allowReturn(of: ids, dryRun: isDry)
    if call.output.isJSON {
        call.output.report([
            "message_type": "store-purge", "dryRun": .bool(isDry),
            "allowed": .array(allowed.map { .string($0.description) }),
        ])
        return .done
    }
    for id in allowed { call.output.print(printable(id.description)) }
    let count = HumanText.count(allowed.count, "purged record")
    call.output.note(
        isDry
            ? "Dry run: \(count) would be allowed to come back; nothing written."
            : "\(count) may come back. 'backup-tool restore BACKUP --match ID --resurrect' brings one back.")
    return .done
}

extension Invocation {
    /// A time, or how long ago.
    fileprivate func time(_ text: String) throws -> Timestamp {
        if let time = Timestamp(iso8601: text) { return time }
        guard let age = CalendarSpan(text)?.approximateSeconds else {
            throw usage(
                "--deleted-before must be a time such as 2026-02-14 or an age of more than zero such as 30d, not '\(printable(text))'"
            )
        }
        let now = Clock.system.now().milliseconds
        return Timestamp(milliseconds: now - min(age, now / 1000) * 1000)
    }

    fileprivate func report(_ result: PurgeResult, _ options: PurgeOptions) -> ExitStatus {
        let isPlan = options.dryRun
        let fileCount = result.files.count + result.earlierFiles.count
        let isEmpty = result.records.isEmpty && fileCount == 0 && result.versions == 0
        if output.isJSON {
            output.report([
                "message_type": "store-purge", "dryRun": .bool(isPlan),
                "records": .array(result.records.map { .string($0.description) }), "versions": .int(result.versions),
                "files": .array(result.files.map { .string($0) }),
                "earlierFiles": .array(result.earlierFiles.map { .string($0) }),
                "linked": .array(result.linked.map { .string($0) }),
                "unsynced": .array(result.unsynced.map { .string($0) }),
                "unsearched": .array(result.unsearched.map(\.json)),
                "finishesAnother": .bool(result.finishesAnother),
                "holders": .array(
                    result.holders.map {
                        [
                            "source": .string($0.source),
                            "records": .array($0.records.map { .string($0.description) }),
                        ]
                    }),
            ])
        } else {
            for id in result.records { output.print(printable(id.description)) }
            for path in result.files { output.print("file \(printable(path))") }
            for path in result.earlierFiles { output.print("earlier file of \(printable(path))") }
            for path in result.linked {
                output.warn("only these records linked this file, and it stays: --with-files removes it", at: path)
            }
            for path in result.unsynced {
                output.warn(
                    "the hub still has this file, so its name stays until 'backup-tool sync' has told the hub",
                    at: path)
            }
            for holder in result.holders {
                output.warn("still holds \(HumanText.count(holder.records.count)) of these records", at: holder.source)
            }
            say(result.unsearched)
            let what =
                "\(HumanText.count(result.records.count, "record")), \(HumanText.count(result.versions, "older version")), "
                + "\(HumanText.count(fileCount, "file"))"
            if result.finishesAnother {
                output.note(
                    isPlan
                        ? "A purge that was cut short is not finished: --confirm removes what it has left."
                        : "The purge that was cut short is finished.")
            }
            output.note(
                isEmpty
                    ? "There is nothing \(result.finishesAnother ? "else " : "")to remove."
                    : isPlan
                        ? "Plan: \(what) would be removed for good; nothing written. --confirm does it."
                        : "Removed for good: \(what).")
        }
        let isWhole =
            result.holders.isEmpty && result.linked.isEmpty && result.unsynced.isEmpty && result.unsearched.isEmpty
        let isDone = !isPlan || isEmpty && !result.finishesAnother || flag("dry-run")
        return isWhole && isDone ? .done : .incomplete
    }
}
