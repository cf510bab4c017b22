import BackupKit

extension Command {
    static let conflicts = Command(
        "conflicts", "List and resolve conflicts", in: .mend,
        discussion: """
            Two publications with one cite key are never merged silently, and neither are two versions of one file. The \
            store keeps both, and a person decides. A decision reaches the other devices with the next sync.
            """,
        subcommands: [conflictsList, conflictsShow, conflictsResolve])

    private static let conflictsList = Command(
        "list", "List conflicts that wait for a decision", in: .mend, options: [.store],
        examples: [Example("backup-tool conflicts list", "List all conflicts")], reports: true,
        run: { call in
            let store = try call.store(.read)
            let (views, status) = try call.reading(store) { try ConflictDesk.all(in: store) }
            if call.output.isJSON {
                call.output.report([
                    "message_type": "conflicts", "conflicts": .array(views.map { .object($0.summaryMembers) }),
                ])
                return status
            }
            for view in views { try view.printSummary(to: call.output) }
            if let first = views.first {
                let what = HumanText.count(views.count, "conflict")
                let show = TypedCommand.quoted("conflicts show", ["\(first.conflict.id)"])
                call.output.note("\(what). \(show) compares both sides.")
            } else {
                call.output.note("No conflicts.")
            }
            return status
        })

    private static let conflictsShow = Command(
        "show", "Compare both sides of a conflict, field by field", in: .mend,
        discussion: """
            A line that differs begins with ~. A field that only the existing side has begins with -, a field that only \
            the incoming side has with +. The BibTeX text is shown when nothing else differs, or with --verbose.
            """,
        options: [.store], arguments: [Argument("ID", "A number as 'conflicts list' shows it")],
        examples: [Example("backup-tool conflicts show 1", "Compare the two")], reports: true,
        run: { call in
            let id = try call.conflictID(try call.argument("ID"))
            let store = try call.store(.read)
            let (view, status) = try call.reading(store) { try ConflictDesk.view(id, in: store) }
            if call.output.isJSON {
                call.output.report(try view.json())
            } else {
                try view.print(to: call.output)
            }
            return status
        })

    private static let conflictsResolve = Command(
        "resolve", "Decide conflicts", in: .mend,
        discussion: """
            rename-incoming and rename-existing give one publication another cite key: KEY of --key, or the old key with a \
            letter. merge makes one publication of both. The one that stays says which work it is and where it appeared; \
            of each other field the newer value counts, and lists are joined. \
            keep-existing and keep-incoming delete the other one on all devices; its files are linked from the one that \
            stays. keep-both changes neither and closes the conflict. For two versions of a file there are keep-both, \
            keep-existing and keep-incoming. --keep WORK is keep-existing or keep-incoming, whichever keeps WORK.

            When two devices decide one conflict before they sync, the later decision counts on both. There is one \
            exception: when one device merges both works and the other one then deletes the work that holds both, both \
            works stay, the conflict waits again, and 'sync' names it.

            'undo' takes a decision back, and the conflict waits again.
            """,
        options: [
            .store,
            .value("with", "CHOICE", "What to do", .oneOf(ConflictChoice.allCases.map(\.rawValue))),
            .value("keep", "WORK", "Keep this publication or file and delete the other: its id or path"),
            .value("key", "KEY", "With rename-incoming or rename-existing: the new cite key"), .dryRun,
        ],
        arguments: [Argument("ID", "A number as 'conflicts list' shows it", .text, .oneOrMore)],
        examples: [
            Example("backup-tool conflicts resolve 1 --with merge --dry-run", "Show what a merge would change"),
            Example(
                "backup-tool conflicts resolve 1 --with rename-incoming --key Smith2020b",
                "Give the new one its own key"),
        ],
        reports: true,
        run: { call in
            let ids = try call.arguments("ID").map(call.conflictID)
            let key = call.value("key")
            let named = try call.namedChoice(ids)
            if key != nil, ids.count > 1 || ![.renameIncoming, .renameExisting].contains(named) {
                throw call.usage("--key goes with one conflict and rename-incoming or rename-existing")
            }
            let isRehearsal = call.flag("dry-run")
            let store = try call.store(.write)
            let choice =
                try named ?? ConflictDesk.choice(keeping: call.value("keep") ?? "", of: ids[0], in: store)
            let result = try ConflictResolver.resolve(ids, with: choice, newKey: key, in: store, dryRun: isRehearsal)
            call.report(result, choice, dryRun: isRehearsal)
            return result.findings.contains { $0.severity != .note } ? .incomplete : .done
        })
}

extension Invocation {
    fileprivate func conflictID(_ word: String) throws -> Int64 {
        guard let id = Int64(word) else { throw usage("'\(printable(word))' is not a conflict number") }
        return id
    }

    /// What `--with` says; nil where `--keep` says it.
    fileprivate func namedChoice(_ ids: [Int64]) throws -> ConflictChoice? {
        let choice = value("with").flatMap(ConflictChoice.init(rawValue:))
        if value("keep") == nil {
            guard let choice else {
                let choices = ConflictChoice.allCases.map(\.rawValue).joined(separator: ", ")
                throw usage("--with is missing; it takes one of \(choices)")
            }
            return choice
        }
        guard choice == nil, ids.count == 1 else { throw usage("--keep goes with one conflict and without --with") }
        return nil
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
        for item in result.plan where item.action == .remove && !item.changes.isEmpty {
            let names = item.changes.map { printable($0.name) }.joined(separator: ", ")
            output.note("Not taken from \(printable(item.subject)): \(names).")
        }
        let what = HumanText.count(result.settled, "conflict")
        output.note(dryRun ? "Dry run: \(what) resolved, nothing written." : "Resolved \(what).")
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
    fileprivate func printSummary(to output: Output) throws {
        let columns = output.out.columns ?? 80
        let style = output.out.style
        let number = padded(String(conflict.id), to: 3, right: true)
        let head = "\(number)  \(conflict.kind) \(printable(conflict.subject))"
        output.print(style.bold(truncated(head, to: columns - 18)) + "  found \(day)")
        let apart = try fieldThatTellsApart()
        for (name, side, value) in [("existing", existing, apart?.existing), ("incoming", incoming, apart?.incoming)] {
            let fact = apart.map { printable("\($0.field): \(value.map(plain) ?? "none")") }
            let end = fact.map { "  (\(truncated($0, to: 28)))" } ?? ""
            let text = side.map { printable($0.label) } ?? "(gone)"
            output.print("     \(name)  \(truncated(text, to: columns - 15 - displayWidth(end)))\(end)")
        }
        if let isMoot { output.print("     \(style.dim("nothing left to decide: \(isMoot)"))") }
    }

    /// The first field in which two sides differ that are called the same.
    private func fieldThatTellsApart() throws -> Row? {
        guard let existing, let incoming, existing.label == incoming.label else { return nil }
        return try rows().first { $0.differs && !isDerived($0) }
    }

    private func isDerived(_ row: Row) -> Bool { row.field == "rawBibTeX" || row.field == "rawBase64" }

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
        let hidesText = !output.isVerbose && rows.contains { $0.differs && !isDerived($0) }
        for row in rows where !(hidesText && isDerived(row)) {
            table.add(row.field, row.existing.map(plain), row.incoming.map(plain), differs: row.differs)
        }
        for line in table.lines(columns: min(output.out.columns ?? 80, 160), style: output.out.style) {
            output.print(line)
        }
        output.print("")
        if let isMoot {
            output.print("There is nothing left to decide: \(isMoot).")
            return
        }
        let resolve = TypedCommand.quoted("conflicts resolve", ["\(conflict.id)"], options: ["with": "CHOICE"])
        output.print(output.advice.completed("Decide with \(resolve):"))
        for choice in choices {
            let lines = cellLines(meaning(of: choice), to: max((output.out.columns ?? 160) - 20, 12))
            for (index, line) in lines.enumerated() {
                output.print("  \(padded(index == 0 ? choice.rawValue : "", to: 16))  \(line)")
            }
        }
    }

    private func meaning(of choice: ConflictChoice) -> String {
        let key = printable(newKey ?? "")
        return switch choice {
        case .renameIncoming: "rename the incoming one to \(key), or to --key"
        case .renameExisting: "rename the existing one to \(key), or to --key"
        case .merge: "make one of both: newer fields, union of lists"
        case .keepBoth: "keep both as they are"
        case .keepExisting:
            conflict.isAboutAssets ? "delete the incoming file" : "delete the incoming one on all devices"
        case .keepIncoming:
            conflict.isAboutAssets
                ? "replace the existing file by the incoming one" : "delete the existing one on all devices"
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
