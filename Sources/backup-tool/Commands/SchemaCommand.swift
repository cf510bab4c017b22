import BackupKit

extension Command {
    static let schema = Command(
        "schema", "Check schema files", in: .mend,
        discussion: """
            A schema file says which types of records an app has, and what they are made of. It is JSON \
            (docs/schema.md), a Core Data model (.xcdatamodel, or the current one of an .xcdatamodeld), or CloudKit's own \
            schema language (.ckdb).
            """,
        subcommands: [schemaCheck])

    private static let schemaCheck = Command(
        "check", "Check that a schema can sync and grows by additions only", in: .mend,
        discussion: """
            CloudKit takes no unique constraints, no ordered relationships and no delete rule 'deny'. It wants a default or \
            optionality for every attribute, and every relationship optional and with an inverse. With --against, what the old schema had must still be there and mean the same: \
            removing or renaming a field or changing its type is an error, a new optional field is fine.

            The exit code is 4 when there are errors, and 3 when there are only warnings.
            """,
        options: [.value("against", "OLD", "The schema as it was before", .file)],
        arguments: [Argument("FILE", "A schema file", .file)],
        examples: [
            Example("backup-tool schema check library-120.json", "Check one schema"),
            Example("backup-tool schema check library-120.json --against library-110.json", "Check a new version"),
            Example("backup-tool schema check Library.xcdatamodeld", "Check the current Core Data model"),
            Example("backup-tool schema check new.ckdb --against production.ckdb", "Check what CloudKit will deploy"),
        ],
        reports: true,
        run: { call in
            var findings: [Finding] = []
            let schema = try readSchema(try call.argument("FILE"), &findings)
            findings += SchemaLint.check(schema)
            if let path = call.value("against") {
                var ofOld: [Finding] = []
                let old = try readSchema(path, &ofOld)
                // What CloudKit does not take can be compared all the same: the new schema may mend it.
                if let first = ofOld.first(where: { $0.severity == .error && $0.code != .schemaCloudKit }) {
                    throw BackupError(
                        .damaged, "is no sound schema: \(first.subject) \(first.message)", at: path,
                        remedy: "\(TypedCommand.quoted("schema check", [path])) lists everything")
                }
                if (old.form == .cloudKit) != (schema.form == .cloudKit) {
                    throw call.usage("a schema in CloudKit's language compares with another one in it only")
                }
                findings += SchemaEvolution.check(from: old, to: schema)
            }
            return call.report(findings, of: schema)
        })
}

private func readSchema(_ path: String, _ findings: inout [Finding]) throws -> DataSchema {
    try SchemaFile.read(path, &findings, read: readSmallFile)
}

extension Invocation {
    /// The schema that a restore takes its defaults from: a sound one, and of a version that we know.
    func schema(_ path: String) throws -> DataSchema {
        let schema = try soundSchema(path)
        if let refusal = SchemaVersion.refusal(of: schema.version, at: path, instead: "restore without --schema") {
            throw refusal
        }
        return schema
    }

    /// A schema without contradictions, of whatever version.
    func soundSchema(_ path: String) throws -> DataSchema {
        var findings: [Finding] = []
        let schema = try readSchema(path, &findings)
        findings += SchemaLint.check(schema).filter { $0.code == .schemaInvalid }
        if let first = findings.first(where: { $0.severity == .error }) {
            throw BackupError(
                .damaged, "is no sound schema: \(first.subject) \(first.message)", at: path,
                remedy: "'backup-tool schema check FILE' lists everything")
        }
        return schema
    }

    fileprivate func report(_ findings: [Finding], of schema: DataSchema) -> ExitStatus {
        let errors = findings.count { $0.severity == .error }
        let fields = schema.entities.reduce(0) { $0 + $1.attributes.count + $1.relationships.count }
        if output.isJSON {
            output.report([
                "message_type": "schema-check", "ok": .bool(errors == 0), "version": .int(schema.version),
                "entities": .int(schema.entities.count), "fields": .int(fields),
                "findings": .array(
                    findings.map { finding in
                        [
                            "code": .string(finding.code.rawValue), "severity": .string(finding.severity.rawValue),
                            "field": .string(finding.subject), "message": .string(finding.message),
                            "remedy": finding.remedy.map { .string($0) } ?? .null,
                        ]
                    }),
            ])
        } else {
            say(findings)
            let name = schema.form == .cloudKit ? "CloudKit schema" : "version \(schema.version)"
            let size =
                "\(name), \(HumanText.count(schema.entities.count, "entity", "entities")), "
                + HumanText.count(fields, "field")
            if errors == 0 {
                output.note("\(output.err.style.good("OK")): \(size)")
            } else {
                output.say("\(HumanText.count(errors, "error")) in \(size)")
            }
        }
        if errors > 0 { return .damaged }
        return findings.contains { $0.severity == .warning } ? .incomplete : .done
    }
}
