import BackupKit

extension Command {
    static let undo = Command(
        "undo", "Take back the last import, restore or decision", in: .moveData,
        discussion: """
            The store is as it was before: records, attachments, settings, conflicts. What somebody changed since stays \
            as it is and is listed. The last 20 can be taken back, one after the other.
            """,
        options: [.store, .flag("list", "Show what can be undone, and do nothing"), .dryRun],
        examples: [
            Example("backup-tool undo --list", "Show what was done"),
            Example("backup-tool undo --dry-run", "See what the last one would take back"),
        ],
        reports: true,
        run: { call in
            if call.flag("list") { return try printBatches(try call.store(.read), call) }
            let isRehearsal = call.flag("dry-run")
            let result = try call.store(.write).undoLast(dryRun: isRehearsal)
            report(result, call, dryRun: isRehearsal)
            return result.keptNewer.isEmpty ? .done : .incomplete
        })
}

private func printBatches(_ store: Store, _ call: Invocation) throws -> ExitStatus {
    let batches = try store.batches().reversed()
    if call.output.isJSON {
        let entries = batches.map { batch -> JSONValue in
            [
                "batch": .int(Int(batch.id)), "kind": .string(batch.kind), "source": .string(batch.source),
                "startedAt": .string(batch.startedAt.iso8601),
                "undoneAt": batch.undoneAt.map { .string($0.iso8601) } ?? .null,
            ]
        }
        call.output.report(["message_type": "undo-list", "batches": .array(entries)])
        return .done
    }
    if batches.isEmpty { call.output.note("Nothing was imported or restored yet.") }
    var table = Table([.right("BATCH"), .left("WHEN"), .left("WHAT"), .left("STATE"), .left("FROM")])
    for batch in batches {
        table.add([
            String(batch.id), String(batch.startedAt.iso8601.prefix(19)), batch.kind,
            batch.undoneAt == nil ? "done" : "undone", batch.source,
        ])
    }
    if !batches.isEmpty { table.print(to: call.output) }
    return .done
}

private func report(_ result: UndoResult, _ call: Invocation, dryRun: Bool) {
    if call.output.isJSON {
        call.output.report([
            "message_type": "undo", "dryRun": .bool(dryRun), "batch": .int(Int(result.batch.id)),
            "kind": .string(result.batch.kind), "source": .string(result.batch.source),
            "removed": .int(result.removed), "reverted": .int(result.reverted), "attachments": .int(result.assets),
            "settings": .int(result.settings), "conflicts": .int(result.conflicts),
            "keptNewer": .array(result.keptNewer.map { .string($0.description) }),
        ])
        return
    }
    for id in result.keptNewer {
        call.output.warn("was changed since and stays as it is", at: id.description)
    }
    let counts = [
        (result.removed, HumanText.count(result.removed, "record") + " removed"),
        (result.reverted, HumanText.count(result.reverted, "record") + " as before"),
        (result.assets, HumanText.count(result.assets, "attachment")),
        (result.settings, HumanText.count(result.settings, "setting")),
        (result.conflicts, HumanText.count(result.conflicts, "conflict") + " open again"),
    ].filter { $0.0 > 0 }.map(\.1).joined(separator: ", ")
    let what = "\(result.batch.kind) of \(printable(result.batch.source))"
    call.output.note(dryRun ? "Would take back the \(what): \(counts)." : "Took back the \(what): \(counts).")
}
