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
}
