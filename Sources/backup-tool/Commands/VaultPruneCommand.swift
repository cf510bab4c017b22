import BackupKit

extension Option {
    static let maxUnused = Option.value(
        "max-unused", "PERCENT", "Unreferenced data that may stay, in percent of the vault (default: 5)")
}

extension Command {
    static let vaultPrune = Command(
        "prune", "Delete unreferenced data", in: .vault,
        discussion: """
            Removes packs that no snapshot refers to, and repacks those that are referred to in part. An interrupted run \
            is finished by the next one. Nothing is removed while anything is damaged.

            \(Invocation.vaultDiscussion)
            """,
        options: Option.vaultAccess + [.lockWait, .dryRun, .maxUnused],
        examples: [Example("backup-tool vault prune --dry-run", "See how much it would free")],
        reports: true,
        run: { call in
            let options = try call.pruneOptions()
            let vault = try call.openVault()
            let result = try vault.prune(waiting: try call.lockWait(), options, progress: call.output.progress())
            return call.report(result, options)
        })

    static let vaultStats = Command(
        "stats", "Show the size of a vault", in: .vault,
        discussion: Invocation.vaultDiscussion,
        options: Option.vaultAccess + [.lockWait, .noLock],
        arguments: [Argument("SNAPSHOT", "Only the data of these: ids, 'latest' or dates", .text, .any)],
        examples: [Example("backup-tool vault stats latest", "The newest snapshot")],
        reports: true,
        run: { call in
            try call.withVault { vault in
                let words = call.arguments("SNAPSHOT")
                let (all, findings) = try vault.snapshots()
                let chosen = try words.isEmpty ? all : words.map { try vault.resolve($0) }
                call.show(try vault.statistics(of: chosen, progress: call.output.progress()))
                guard words.isEmpty, !findings.isEmpty else { return .done }
                call.say(findings)
                return findings.contains { $0.severity == .damage } ? .damaged : .incomplete
            }
        })

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
    func pruneOptions() throws -> PruneOptions {
        var options = PruneOptions()
        if let text = value(Option.maxUnused.name) {
            // As the configuration's `prune.max-unused`, which a run repeats in its advice.
            guard let percent = Double(text), 0...100 ~= percent else {
                throw usage("--\(Option.maxUnused.name) must be a number from 0 to 100, not '\(printable(text))'")
            }
            options.maxUnused = percent / 100
        }
        options.dryRun = flag(Option.dryRun.name)
        return options
    }

    func report(_ result: PruneResult, _ options: PruneOptions) -> ExitStatus {
        if output.isJSON {
            output.report([
                "message_type": "prune", "dryRun": .bool(options.dryRun), "nothingToDo": .bool(result.wasNothing),
                "packsUnindexed": .int(result.packsUnindexed), "packsRemoved": .int(result.packsRemoved),
                "packsRepacked": .int(result.packsRepacked),
                "bytesBefore": .int(Int(clamping: result.bytesBefore)),
                "bytesFreed": .int(Int(clamping: result.bytesFreed)),
                "bytesUnused": .int(Int(clamping: result.bytesUnused)),
                "bytesUnusedLeft": .int(Int(clamping: result.bytesUnusedLeft)),
                "findings": .array(result.findings.map(\.json)),
            ])
        } else {
            say(result.findings)
            if result.wasNothing {
                output.note("Nothing to remove: \(HumanText.bytes(Int(clamping: result.bytesBefore)))")
            } else {
                let gone = result.packsRemoved + result.packsUnindexed
                output.note(
                    "\(options.dryRun ? "Would free" : "Freed") \(HumanText.bytes(Int(clamping: result.bytesFreed))) of "
                        + "\(HumanText.bytes(Int(clamping: result.bytesBefore))): \(HumanText.count(gone, "pack")) removed, "
                        + "\(HumanText.count(result.packsRepacked, "pack")) repacked")
            }
        }
        return result.findings.isEmpty ? .done : .incomplete
    }

    fileprivate func show(_ statistics: VaultStatistics) {
        if output.isJSON {
            output.report([
                "message_type": "vault-stats", "snapshots_count": .int(statistics.snapshots),
                "total_file_count": .int(statistics.restoreFiles &+ statistics.restoreFolders),
                "total_size": .int(Int(clamping: statistics.restoreBytes)),
                "total_blob_count": .int(statistics.blobs),
                "total_uncompressed_size": .int(Int(clamping: statistics.plainBytes)),
                "total_stored_size": .int(Int(clamping: statistics.storedBytes)), "packs": .int(statistics.packs),
                "packBytes": .int(Int(clamping: statistics.packBytes)),
            ])
            return
        }
        var table = Table([.left("WHAT"), .right("COUNT"), .right("SIZE")])
        table.add(["snapshots", HumanText.count(statistics.snapshots)])
        table.add([
            "files to restore", HumanText.count(statistics.restoreFiles),
            HumanText.bytes(Int(clamping: statistics.restoreBytes)),
        ])
        table.add([
            "blobs they need", HumanText.count(statistics.blobs), HumanText.bytes(Int(clamping: statistics.plainBytes)),
        ])
        table.add(["as stored", "", HumanText.bytes(Int(clamping: statistics.storedBytes))])
        table.add(["packs", HumanText.count(statistics.packs), HumanText.bytes(Int(clamping: statistics.packBytes))])
        table.print(to: output)
    }

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
