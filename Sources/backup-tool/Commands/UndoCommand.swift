import BackupKit

extension Command {
    static let undo = Command(
        "undo", "Take back the last change, or redo it", in: .moveData,
        discussion: """
            An undo takes back the last import, restore, decision, dedup, or 'store' command that changed records: \
            delete, set-local, enable-cloud, share, unshare, adopt. Then the store is as it was before: records, \
            attachments, settings, conflicts. In a store that syncs, a record that comes back gets the current time, so \
            that it comes back on the other devices, too. What somebody changed since stays as it \
            is and is listed. Files that were missing or damaged before a restore stay mended. The last 20 changes can \
            be taken back, one after the other; 'undo --redo' brings back what the last undo took.

            When the last command changed nothing, undo refuses and names what was done before it; --batch takes that \
            back.
            """,
        options: [
            .store, .flag("list", "Show what can be undone, and do nothing"),
            .flag("redo", "Take back the last undo"),
            .value("batch", "N", "Take back batch N, which must be the last (see --list)"), .dryRun,
        ],
        examples: [
            Example("backup-tool undo --list", "Show what was done"),
            Example("backup-tool undo --dry-run", "See what the last one would take back"),
            Example("backup-tool undo --redo", "Bring back what the last undo took"),
        ],
        reports: true,
        run: { call in
            let others = ["redo", "batch", "dry-run"].filter { call.line.options[$0] != nil }
            if call.flag("list"), let other = others.first {
                throw call.usage("--\(other) does not go with --list, which only shows what can be undone")
            }
            if call.flag("list") { return try printBatches(try call.store(.read), call) }
            let isRehearsal = call.flag("dry-run")
            let batch = try call.integer("batch", in: 1...Int.max).map { Int64($0) }
            let isRedo = call.flag("redo")
            if isRedo, batch != nil { throw call.usage("--batch does not go with --redo") }
            let store = try call.store(.write)
            let result = try isRedo ? store.redoLast(dryRun: isRehearsal) : store.undoLast(batch, dryRun: isRehearsal)
            try report(result, in: store, call, dryRun: isRehearsal)
            let isWhole = result.keptNewer.isEmpty && result.purged.isEmpty && result.fileFindings.isEmpty
            return isWhole ? .done : .incomplete
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
            batch.undoneAt == nil ? "done" : batch.kind == Store.undoBatch ? "redone" : "undone",
            try batch.source + (store.filesRemoved(by: batch).map { "; removed \($0)" } ?? ""),
        ])
    }
    if !batches.isEmpty { table.print(to: call.output) }
    return .done
}

private func report(_ result: UndoResult, in store: Store, _ call: Invocation, dryRun: Bool) throws {
    let kept = try result.findings(in: store)
    if call.output.isJSON {
        call.output.report([
            "message_type": "undo", "dryRun": .bool(dryRun), "batch": .int(Int(result.batch.id)),
            "kind": .string(result.batch.kind), "source": .string(result.batch.source),
            "removed": .int(result.removed), "reverted": .int(result.reverted), "attachments": .int(result.assets),
            "setBack": .int(result.setBack),
            "settings": .int(result.settings), "conflicts": .int(result.conflicts),
            "keptNewer": .array(result.keptNewer.map { .string($0.description) }),
            "purged": .array(result.purged.map { .string($0.description) }),
            "findings": .array((kept + result.fileFindings).map(\.json)),
        ])
        return
    }
    call.say(kept)
    let list = [
        (result.removed, HumanText.count(result.removed, "record") + " removed"),
        (result.reverted, HumanText.count(result.reverted, "record") + " as before"),
        (result.assets, HumanText.count(result.assets, "attachment")),
        (result.settings, HumanText.count(result.settings, "setting")),
        (result.conflicts, HumanText.count(result.conflicts, "conflict") + " open again"),
    ].filter { $0.0 > 0 }.map(\.1).joined(separator: ", ")
    let setBack = HumanText.count(result.setBack, "attachment") + " that it had set back stay"
    let stays = result.setBack == 0 ? "" : "; \(setBack)\(result.setBack == 1 ? "s" : "")"
    let counts = (list.isEmpty ? "nothing changed" : list) + stays
    call.say(result.fileFindings)
    // An undo is named after what it took back.
    let isRedo = result.batch.kind == Store.undoBatch
    let what = printable(isRedo ? result.batch.source : "\(result.batch.kind) of \(result.batch.source)")
    switch (isRedo, dryRun) {
    case (true, true): call.output.note("Would bring back the \(what): \(counts).")
    case (true, false):
        let advice = list.isEmpty ? "" : " 'backup-tool undo' takes it back again."
        call.output.note("Brought back the \(what): \(counts).\(advice)")
    case (false, true): call.output.note("Would take back the \(what): \(counts).")
    case (false, false):
        let advice = list.isEmpty ? "" : " 'backup-tool undo --redo' brings it back."
        call.output.note("Took back the \(what): \(counts).\(advice)")
    }
}
