import BackupKit

extension Command {
    static let vaultCopy = Command(
        "copy", "Copy snapshots from another vault", in: .vault,
        discussion: """
            Into --vault, from the vault named by --from, whose password comes from --from-password-file or \
            --from-password-command. What is here already is not copied again. Use it to keep a second vault on another disk, \
            with another password.
            """,
        options: Option.vaultAccess + [
            .lockWait, .value("from", "PATH", "The vault to copy from", .vault, required: true),
            .value("from-password-file", "FILE", "Read that vault's password from this file", .file),
            .value("from-password-command", "COMMAND", "Use the output of this shell command as its password"),
        ],
        arguments: [Argument("SNAPSHOT", "Only these: ids, 'latest' or dates", .text, .any)],
        examples: [
            Example(
                "backup-tool vault copy --from /backup/v --from-password-file ~/.old",
                "Copy what is new")
        ],
        reports: true,
        run: { call in
            guard
                let secret = try PasswordSource.find(
                    file: call.value("from-password-file"), command: call.value("from-password-command"),
                    variable: { _ in nil })
            else { throw call.usage("give --from-password-file or --from-password-command") }
            let folder = try call.vaultFolder(call.value("from") ?? "")
            let advice = call.output.advice.forVault(
                folder, passwordFile: call.value("from-password-file"),
                passwordCommand: call.value("from-password-command"))
            let source = try advice.completing {
                try Vault.open(try FolderBackend(folder), password: try secret.read())
            }
            let outcome = try advice.completing {
                try source.reading(
                    wait: call.lockWait(), unlocked: { call.output.warn("read without a lock: \($0.message)") }
                ) { source in
                    let words = call.arguments("SNAPSHOT")
                    let all = try source.snapshots()
                    let chosen = try words.isEmpty ? all.snapshots : words.map { try source.resolve($0) }
                    // What fails from here on is the other vault's, and its advice, too.
                    return Result {
                        try call.withVault(.adding) { vault in
                            let result = try vault.copy(chosen, from: source, progress: call.output.progress())
                            return call.report(result, (all.findings + result.sourceFindings).map(advice.completed))
                        }
                    }
                }
            }
            return try outcome.get()
        })
}

extension Invocation {
    fileprivate func report(_ result: VaultCopyResult, _ ofSource: [Finding]) -> ExitStatus {
        let findings = ofSource + result.findings
        if output.isJSON {
            output.report([
                "message_type": "copy",
                "copied": .array(
                    result.copied.map { ["from": .string($0.from.hex), "to": .string($0.to.hex)] }),
                "leftOut": .array(result.leftOut.map { .string($0.hex) }),
                "skipped": .int(result.skipped), "blobs": .int(result.blobs),
                "bytes": .int(Int(clamping: result.bytes)),
                "findings": .array(findings.map(\.json)),
            ])
        } else {
            say(findings)
            let left = result.leftOut.count
            output.note(
                "\(HumanText.count(result.copied.count, "snapshot")) copied, \(HumanText.count(result.skipped)) here already"
                    + (left > 0 ? ", \(HumanText.count(left)) left out; " : "; ")
                    + "\(HumanText.count(result.blobs, "blob")), \(HumanText.bytes(Int(clamping: result.bytes)))")
        }
        if ofSource.contains(where: { $0.severity == .damage }) { return .damaged }
        return findings.allSatisfy { $0.severity == .note } ? .done : .incomplete
    }
}
