import BackupKit

extension Command {
    static let dedup = Command(
        "dedup", "Merge duplicate records", in: .mend,
        discussion: """
            Some apps make a new record at every save. Records with the same zone, type and local id are duplicates: the \
            oldest name stays, the fields merge (the newer value wins, lists are joined), and the other names become \
            tombstones, which remove them on other devices too. Local-only records are never merged away. 'undo' takes \
            everything back in one step.

            With --schema, records of one type are also duplicates when they agree in the 'key' that the schema file \
            declares for the type, whatever their ids. Look at --dry-run first.
            """,
        options: [
            .store, .value("schema", "FILE", "Also merge records by the keys that this schema file declares", .file),
            .dryRun,
        ],
        examples: [
            Example("backup-tool dedup --dry-run", "See what would be merged"),
            Example("backup-tool dedup --store ~/rota.db", "Merge them"),
            Example("backup-tool dedup --schema rota.json --dry-run", "Merge by the keys of a schema"),
        ],
        reports: true,
        run: { call in
            let isRehearsal = call.flag("dry-run")
            let store = try call.store(.write)
            let result = try Deduplicator.run(
                on: store, schema: try call.value("schema").map(call.soundSchema), dryRun: isRehearsal)
            if call.output.isJSON {
                call.output.report([
                    "message_type": "dedup", "dryRun": .bool(isRehearsal), "records": .int(result.records),
                    "folded": .int(result.folded), "batch": result.batch.map { .int(Int($0)) } ?? .null,
                    "findings": .array(result.findings.map(\.json)), "plan": .array(result.plan.map(\.json)),
                ])
            } else {
                if isRehearsal || call.output.isVerbose { call.show(result.plan, of: result.plan.count) }
                call.say(result.findings)
                call.output.note(result.sentence(dryRun: isRehearsal))
            }
            return result.findings.contains { $0.severity != .note } ? .incomplete : .done
        })
}

extension DedupResult {
    fileprivate func sentence(dryRun: Bool) -> String {
        if folded == 0 { return "There are no duplicates." }
        let names = HumanText.count(folded, "duplicate")
        let what = "\(names) into \(HumanText.count(records, "record"))"
        return dryRun ? "Dry run: \(what) merged, nothing written." : "\(what) merged."
    }
}
