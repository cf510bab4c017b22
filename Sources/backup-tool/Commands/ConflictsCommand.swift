import BackupKit

extension Command {
    static let conflicts = Command(
        "conflicts", "Look at what nobody may decide silently, and decide it", in: .mend,
        discussion: """
            Two publications with one cite key, and two versions of one file, are never merged silently: both are kept, \
            and the conflict waits here.
            """,
        subcommands: [conflictsList, conflictsShow, conflictsResolve])

    private static let conflictsList = Command(
        "list", "List the conflicts that wait", in: .mend, options: [.store],
        examples: [Example("backup-tool conflicts list", "See what waits")], reports: true,
        run: { call in
            let store = try call.store(.read)
            let views = try store.read { try ConflictDesk.all(in: store) }
            if call.output.isJSON {
                call.output.report([
                    "message_type": "conflicts", "conflicts": .array(views.map { .object($0.summaryMembers) }),
                ])
                return .done
            }
            for view in views { view.printSummary(to: call.output) }
            if let first = views.first {
                let what = HumanText.count(views.count, "conflict")
                call.output.note("\(what). 'backup-tool conflicts show \(first.conflict.id)' compares the two sides.")
            } else {
                call.output.note("No conflict waits.")
            }
            return .done
        })

    private static let conflictsShow = Command(
        "show", "Show both sides of a conflict, field by field", in: .mend,
        discussion: """
            Lines that differ begin with ~, what only the existing side has with -, what only the incoming one has \
            with +. The entry's own text is shown when nothing else differs, or with --verbose.
            """,
        options: [.store], arguments: [Argument("ID", "A number as 'conflicts list' shows it")],
        examples: [Example("backup-tool conflicts show 1", "Compare the two")], reports: true,
        run: { call in
            let id = try call.conflictID(try call.argument("ID"))
            let store = try call.store(.read)
            let view = try store.read { try ConflictDesk.view(id, in: store) }
            if call.output.isJSON {
                call.output.report(try view.json())
            } else {
                try view.print(to: call.output)
            }
            return .done
        })

    private static let conflictsResolve = Command(
        "resolve", "Decide conflicts", in: .mend,
        discussion: """
            rename-incoming and rename-existing give one of the two another cite key: the one named by --key, else the \
            old one with a letter. merge makes one publication of both, field by field, the newer value winning and \
            lists united. keep-existing and keep-incoming delete the other one, everywhere; files that only that one \
            linked go to the one that stays. keep-both leaves everything as it is. Of two versions of a file, one or \
            both can be kept.

            What was decided is one step that 'undo' takes back; the conflict then waits again.
            """,
        options: [
            .store,
            .value(
                "with", "CHOICE", "What to do", .oneOf(ConflictChoice.allCases.map(\.rawValue)), required: true),
            .value("key", "KEY", "With rename-incoming or rename-existing: the new cite key"), .dryRun,
        ],
        arguments: [Argument("ID", "A number as 'conflicts list' shows it", .text, .oneOrMore)],
        examples: [
            Example("backup-tool conflicts resolve 1 --with merge --dry-run", "See what a merge would do"),
            Example(
                "backup-tool conflicts resolve 1 --with rename-incoming --key Smith2020b",
                "Give the new one its own key"),
        ],
        reports: true,
        run: { call in
            guard let choice = call.value("with").flatMap(ConflictChoice.init(rawValue:)) else {
                throw call.usage("--with is missing")
            }
            let ids = try call.arguments("ID").map(call.conflictID)
            let key = call.value("key")
            if key != nil, ids.count > 1 || ![.renameIncoming, .renameExisting].contains(choice) {
                throw call.usage("--key goes with one conflict and rename-incoming or rename-existing")
            }
            let isRehearsal = call.flag("dry-run")
            let store = try call.store(.write)
            let result = try ConflictResolver.resolve(ids, with: choice, newKey: key, in: store, dryRun: isRehearsal)
            call.report(result, choice, dryRun: isRehearsal)
            return result.findings.contains { $0.severity != .note } ? .incomplete : .done
        })
}

extension Invocation {
    fileprivate func conflictID(_ word: String) throws -> Int64 {
        guard let id = Int64(word) else { throw usage("'\(printable(word))' is no number of a conflict") }
        return id
    }

    fileprivate func report(_ result: ResolveResult, _ choice: ConflictChoice, dryRun: Bool) {
        if output.isJSON {
            output.report([
                "message_type": "conflicts-resolve", "dryRun": .bool(dryRun), "with": .string(choice.rawValue),
                "settled": .int(result.settled), "batch": result.batch.map { .int(Int($0)) } ?? .null,
                "plan": .array(result.plan.map(\.json)), "findings": .array(result.findings.map(\.json)),
            ])
            return
        }
        if dryRun || output.isVerbose { show(result.plan, of: result.plan.count) }
        say(result.findings)
        let what = HumanText.count(result.settled, "conflict")
        output.note(dryRun ? "Would settle \(what). Nothing was written." : "Settled \(what).")
        if let batch = result.batch { output.detail("'backup-tool undo' takes back batch \(batch)") }
    }
}

extension ConflictView {
    private var day: String { String(conflict.detectedAt.iso8601.prefix(10)) }

    fileprivate var summaryMembers: [JSON.Member] {
        [
            .init("id", JSON(conflict.id)), .init("kind", .string(conflict.kind)),
            .init("subject", .string(conflict.subject)), .init("detectedAt", .string(conflict.detectedAt.iso8601)),
            .init("existing", existing?.json ?? .null), .init("incoming", incoming?.json ?? .null),
            .init("moot", isMoot.map { .string($0) } ?? .null),
        ]
    }

    fileprivate func json() throws -> JSONValue {
        let rows = try rows().map { row -> JSONValue in
            [
                "field": .string(row.field), "existing": row.existing.map { .string($0) } ?? .null,
                "incoming": row.incoming.map { .string($0) } ?? .null, "differs": .bool(row.differs),
            ]
        }
        return .object(
            [.init("message_type", "conflict")] + summaryMembers + [
                .init("fields", .array(rows)), .init("choices", .array(choices.map { .string($0.rawValue) })),
                .init("newKey", newKey.map { .string($0) } ?? .null),
            ])
    }

    /// Three lines that fit a terminal of 80 columns.
    fileprivate func printSummary(to output: Output) {
        let columns = output.out.columns ?? 80
        let style = output.out.style
        let number = padded(String(conflict.id), to: 3, right: true)
        let head = "\(number)  \(conflict.kind) \(printable(conflict.subject))"
        output.print(style.bold(truncated(head, to: columns - 18)) + "  found \(day)")
        for (name, side) in [("existing", existing), ("incoming", incoming)] {
            let text = side.map { printable($0.label) } ?? "(gone)"
            output.print("     \(name)  \(truncated(text, to: columns - 15))")
        }
        if let isMoot { output.print("     \(style.dim("nothing left to decide: \(isMoot)"))") }
    }

    fileprivate func print(to output: Output) throws {
        let what = conflict.isAboutAssets ? "two versions of" : "two publications with the cite key"
        output.print("Conflict \(conflict.id): \(what) \(printable(conflict.subject)), found \(day)")
        output.print("")
        var table = SideBySide("EXISTING", "INCOMING")
        table.add(
            conflict.isAboutAssets ? "(path)" : "(record)", existing?.id ?? "(gone)", incoming?.id ?? "(gone)",
            differs: false)
        if !conflict.isAboutAssets {
            table.add("(modified)", existing?.modifiedAt.iso8601, incoming?.modifiedAt.iso8601, differs: false)
        }
        let rows = try rows()
        let isDerived: (Row) -> Bool = { $0.field == "rawBibTeX" || $0.field == "rawBase64" }
        let hidesText = !output.isVerbose && rows.contains { $0.differs && !isDerived($0) }
        for row in rows where !(hidesText && isDerived(row)) {
            table.add(row.field, row.existing.map(plain), row.incoming.map(plain), differs: row.differs)
        }
        for line in table.lines(columns: min(output.out.columns ?? 80, 160), style: output.out.style) {
            output.print(line)
        }
        output.print("")
        if let isMoot {
            output.print("There is nothing left to decide: \(isMoot). --with keep-both takes it off the list.")
            return
        }
        output.print("Decide with 'backup-tool conflicts resolve \(conflict.id) --with CHOICE':")
        for choice in choices { output.print("  \(padded(choice.rawValue, to: 16))  \(meaning(of: choice))") }
    }

    private func meaning(of choice: ConflictChoice) -> String {
        let key = printable(newKey ?? "")
        return switch choice {
        case .renameIncoming: "the incoming one becomes \(key), or what --key says"
        case .renameExisting: "the existing one becomes \(key), or what --key says"
        case .merge: "one of both: the newer value of each field, lists united"
        case .keepBoth: "leave both as they are"
        case .keepExisting: conflict.isAboutAssets ? "remove the incoming file" : "delete the incoming one, everywhere"
        case .keepIncoming:
            conflict.isAboutAssets
                ? "the incoming file takes the place of the existing one" : "delete the existing one, everywhere"
        }
    }

    /// A string without its quotes and on one line; other values as JSON.
    private func plain(_ value: String) -> String {
        let text = (try? JSON(parsing: value))?.string ?? value
        return text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}

extension ConflictView.Side {
    fileprivate var json: JSONValue {
        ["id": .string(id), "label": .string(label), "modifiedAt": .string(modifiedAt.iso8601)]
    }
}
