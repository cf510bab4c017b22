import BackupKit

extension Command {
    static let diff = Command(
        "diff", "Show how two libraries differ", in: .look,
        discussion: """
            Each side is a store, or anything that can be restored: a folder, an archive, an imbib backup. Records are \
            compared field by field. A backup whose manifest has the content digest of the other side is equal to it; its \
            files are not read ('verify' reads them). An attachment of a store whose file is missing or was changed is \
            named, and the run ends with 3; a file that still has its size and time is not read ('store check' reads every \
            file). Otherwise the exit code says whether the comparison worked, not whether they differ.
            """,
        options: Option.passwords,
        arguments: [Argument("A", "The old side", .backup), Argument("B", "The new side", .backup)],
        examples: [
            Example("backup-tool diff monday.tar.zst tuesday.tar.zst", "See what happened in between"),
            Example("backup-tool diff library.tar.zst store.db", "See what changed since the backup"),
        ],
        reports: true,
        run: { call in
            var count = 0
            let findings = try Differ.diff(try call.argument("A"), try call.argument("B"), limits: try call.limits()) {
                difference in
                count += 1
                printDifference(difference, call)
            }
            call.say(findings)
            if call.output.isJSON {
                call.output.report(["message_type": "diff", "differences": .int(count)])
            }
            call.output.note(count == 0 ? "No difference." : HumanText.count(count, "difference") + ".")
            return findings.isEmpty ? .done : .incomplete
        })
}

private func printDifference(_ difference: Difference, _ call: Invocation) {
    let output = call.output
    if output.isJSON {
        output.report([
            "message_type": "difference", "change": .string(difference.change.rawValue),
            "kind": .string(difference.kind.rawValue), "subject": .string(difference.subject),
            "label": .string(difference.label), "fields": .array(difference.fields.map(\.json)),
        ])
        return
    }
    let style = output.out.style
    let mark =
        switch difference.change {
        case .added: style.good("+")
        case .changed: style.changed("~")
        case .removed, .deleted: style.bad("-")
        }
    let label = difference.label.isEmpty ? "" : "  \(printable(difference.label))"
    output.print("\(mark) \(difference.kind.rawValue) \(printable(difference.subject))\(label)")
    for change in difference.fields { output.print("    \(change.summary)") }
}
