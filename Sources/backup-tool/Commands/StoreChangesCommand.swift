import BackupKit

extension Command {
    static let storeChanges = Command(
        "changes", "List what changed since a token", in: .store,
        discussion: """
            Without --since, everything. The last line is the token to go on with. A token of another store is refused. \
            With --json, one object a line.
            """,
        options: [
            .store, .value("since", "TOKEN", "Begin after this point"),
            .value("limit", "N", "List at most N; the printed token continues after them"),
        ],
        examples: [Example("backup-tool store changes --since bt1:4f6d…:120", "See what is new")],
        reports: true,
        run: { call in
            let text = call.value("since")
            let token = text.flatMap { ChangeToken($0) }
            if let text, token == nil { throw call.usage("'\(printable(text))' is not a change token") }
            let limit = try call.integer("limit", in: 1...Int.max) ?? .max
            let store = try call.store(.read)
            let end = try store.read {
                try store.changes(since: token, limit: limit) { change in
                    printChange(change, call.output)
                }
            }
            if call.output.isJSON {
                call.output.report([
                    "message_type": "token", "token": .string(end.token.description), "more": .bool(end.more),
                ])
            } else {
                call.output.print("\(printable(end.token.description))\(end.more ? "  (more follow)" : "")")
            }
            return .done
        })
}

private func printChange(_ change: Change, _ output: Output) {
    switch change {
    case .removed(let id, let localID):
        if output.isJSON {
            output.report([
                "message_type": "change", "change": "removed", "zone": .string(id.zone), "recordName": .string(id.name),
                "localId": .string(localID),
            ])
        } else {
            output.print("\(output.out.style.bad("removed"))  \(printable(id.description))")
        }
    case .changed(let record):
        let what = record.isDeleted ? "deleted" : "changed"
        if output.isJSON {
            output.report([
                "message_type": "change", "change": .string(what), "zone": .string(record.id.zone),
                "recordName": .string(record.id.name), "recordType": .string(record.type),
                "localId": .string(record.localID), "modifiedAt": .string(record.modifiedAt.iso8601),
                "localOnly": .bool(record.isLocalOnly),
            ])
        } else {
            let style = output.out.style
            let mark = record.isDeleted ? style.bad(what) : style.changed(what)
            output.print("\(mark)  \(printable(record.id.description))  \(printable(RecordLabel.text(of: record)))")
        }
    }
}
