import BackupKit

extension Command {
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
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(1, width - count))
    }
}

private func printEntry(_ entry: String, of path: String, _ call: Invocation) throws -> ExitStatus {
    if call.output.isJSON { throw call.usage("--json does not go with ENTRY, whose bytes are printed as they are") }
    let out = try FileHandle.standardOutput()
    let findings = try Listing.read(entry, of: path, limits: try call.limits()) { try out.write($0) }
    call.say(findings)
    return .of(findings)
}
