import BackupKit

extension Command {
    static let dedup = Command(
        "dedup", "Fold records that got several names into one", in: .mend,
        discussion: """
            Some apps made a new record of every save. Records of one type and one local id in one zone are one record: \
            the oldest name survives, the fields merge (the newer value of each, lists united), and the other names \
            become tombstones, so that other devices give them up too. Records that are kept on this device only are \
            never folded away. One step, which 'undo' takes back; a second run finds nothing.

            With --schema, records of one type that agree in the 'key' which the schema file declares for it are one \
            record, too, whatever their ids. Look at --dry-run first.
            """,
        options: [
            .store, .value("schema", "FILE", "Also merge records by the keys that this schema file declares", .file),
            .dryRun,
        ],
        examples: [
            Example("backup-tool dedup --dry-run", "See what would be folded"),
            Example("backup-tool dedup --store ~/rota.db", "Fold it"),
            Example("backup-tool dedup --schema rota.json --dry-run", "One record a day, whatever the ids"),
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
        let names = HumanText.count(folded, "name")
        let what = "\(names) into \(HumanText.count(records, "record"))"
        return dryRun ? "Would fold \(what). Nothing was written." : "Folded \(what)."
    }
}
