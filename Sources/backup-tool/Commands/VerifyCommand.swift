import BackupKit

extension Command {
    static let verify = Command(
        "verify", "Check that a backup is whole", in: .moveData,
        discussion: """
            quick checks structure, names and sizes. full, the usual level, reads every byte and compares its SHA-256 \
            with the manifest, counts, finds what is missing or was added, and parses every format. deep restores into \
            a scratch store as well, which must arrive at the manifest's content digest.

            The exit code is 4 when damage was found: an export that lost its manifest is damaged, too. It is 3 when \
            what was found is no damage but proves nothing, such as imbib's checksums, or an imbib backup without its \
            manifest.
            """,
        options: [
            .value(
                "level", "LEVEL", "How thoroughly to check", .oneOf(VerifyResult.Level.allCases.map(\.rawValue)))
        ] + Option.passwords,
        arguments: [
            Argument("PATH", "A library or an imbib backup: a folder, an archive or vault:PATH@SNAPSHOT", .backup)
        ],
        examples: [
            Example("backup-tool verify library.tar.zst", "Read and check everything"),
            Example("backup-tool verify library.tar.zst --level deep", "Prove that it restores"),
            Example("backup-tool verify library.tar.zst --json", "Findings for a script"),
        ],
        reports: true,
        run: { call in
            let level = call.value("level").flatMap(VerifyResult.Level.init(rawValue:)) ?? .full
            let result = try Verifier.verify(
                try call.argument("PATH"), level: level, limits: try call.limits(), progress: call.output.progress())
            if call.output.isJSON {
                call.output.report([
                    "message_type": "verify", "ok": .bool(result.isOK), "level": .string(level.rawValue),
                    "files": .int(result.files), "bytes": .int(Int(result.bytes)),
                    "contentDigest": result.contentDigest.map { .string($0.hex) } ?? .null,
                    "elsewhere": .array(result.elsewhere.map { .string($0) }),
                    "findings": .array(result.findings.map(\.json)),
                ])
            } else {
                call.say(result.findings)
                let damage = result.findings.count { $0.severity == .damage }
                let what = "\(HumanText.count(result.files, "file")), \(HumanText.bytes(Int(result.bytes)))"
                if damage == 0 {
                    call.output.note("\(call.output.err.style.good("OK")): \(what) checked (\(level.rawValue))")
                } else {
                    call.output.say("\(HumanText.count(damage, "piece")) of damage in \(what)")
                }
                if !result.elsewhere.isEmpty {
                    let count = result.elsewhere.count
                    call.output.note(
                        "\(HumanText.count(count, "linked file")) \(count == 1 ? "was" : "were") on other devices only, so "
                            + "the backup does not have \(count == 1 ? "it" : "them"): \(firstNames(result.elsewhere))")
                }
            }
            if !result.isOK { return .damaged }
            return result.needsAttention ? .incomplete : .done
        })
}
