import BackupKit

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
}
