import BackupKit
import Glibc

extension Command {
    static let list = Command(
        "list", "List the files in a backup", in: .look,
        discussion: """
            The files of a folder or an archive with their sizes and times; --verbose adds their SHA-256. With --json, one \
            object a line.
            """,
        options: Option.passwords,
        arguments: [Argument("PATH", "A folder, an archive or vault:PATH@SNAPSHOT", .backup)],
        examples: [Example("backup-tool list library.tar.zst", "Show what is inside")],
        reports: true,
        run: { call in
            let listing = try Listing.of(try call.argument("PATH"), limits: try call.limits())
            defer { call.say(listing.findings) }
            if call.output.isJSON {
                for entry in listing.entries {
                    if call.output.isClosed { break }
                    call.output.report([
                        "message_type": "entry", "path": .string(entry.path), "size": .int(Int(entry.size)),
                        "modified": .string(entry.modified.iso8601),
                        "sha256": entry.digest.map { .string($0.hex) } ?? .null,
                    ])
                }
                return .of(listing.findings)
            }
            var table = Table([.right("SIZE"), .left("MODIFIED"), .whole("NAME")])
            for entry in listing.entries {
                let time = entry.modified.iso8601.prefix(16).map { $0 == "T" ? " " : String($0) }.joined()
                let digest = call.output.isVerbose ? (entry.digest.map { "  \($0.hex)" } ?? "") : ""
                table.add([HumanText.bytes(Int(entry.size)), time, entry.path + digest])
            }
            table.print(to: call.output)
            return .of(listing.findings)
        })

    static let show = Command(
        "show", "Show the manifest of a backup, or one file of it", in: .look,
        discussion: """
            Without ENTRY, the manifest in words: when it was written, by what, and what it holds. With ENTRY, the \
            bytes of that file, without reading the rest where the archive allows it.
            """,
        options: Option.passwords,
        arguments: [
            Argument("PATH", "A folder, an archive or vault:PATH@SNAPSHOT", .backup),
            Argument("ENTRY", "A name as 'list' shows it", .text, .optional),
        ],
        examples: [
            Example("backup-tool show library.tar.zst", "See what it is and how much it holds"),
            Example("backup-tool show library.tar.zst library.bib", "Print one file"),
        ],
        reports: true,
        run: { call in
            let path = try call.argument("PATH")
            if let entry = call.arguments("ENTRY").first { return try printEntry(entry, of: path, call) }
            let listing = try Listing.of(path, limits: try call.limits())
            defer { call.say(listing.findings) }
            let status = ExitStatus.of(listing.findings)
            if call.output.isJSON {
                call.output.report(
                    .object(
                        [.init(key: "message_type", value: "show")]
                            + listing.facts.map {
                                .init(key: $0.key, value: $0.number.map { .int($0) } ?? .string($0.value))
                            }
                            + [.init(key: "files", value: .int(listing.entries.count))]))
                return status
            }
            for fact in listing.facts {
                let name = (fact.name + ":").padded(to: 16)
                call.output.print("\(name)\(printable(fact.value))")
            }
            let bytes = listing.entries.reduce(0) { $0 + Int($1.size) }
            call.output.print(
                "\("files:".padded(to: 16))\(HumanText.count(listing.entries.count)), \(HumanText.bytes(bytes))")
            return status
        })

    static let diff = Command(
        "diff", "Show how two libraries differ", in: .look,
        discussion: """
            Each side is a store, or anything that can be restored: a folder, an archive, an imbib backup. Records are \
            compared field by field. An attachment of a store whose file is missing or was changed is named, and the run \
            ends with 3; a file that still has its size and time is not read ('store check' reads every file). Otherwise \
            the exit code says whether the comparison worked, not whether they differ.
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

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(1, width - count))
    }
}

private func printEntry(_ entry: String, of path: String, _ call: Invocation) throws -> ExitStatus {
    if call.output.isJSON { throw call.usage("--json does not go with ENTRY, whose bytes are printed as they are") }
    let out = try FileHandle.standardOutput()
    try Listing.read(entry, of: path, limits: try call.limits()) { try out.write($0) }
    return .done
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
