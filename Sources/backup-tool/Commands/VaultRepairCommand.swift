import BackupKit

extension Command {
    static let vaultRepair = Command(
        "repair", "Rebuild a damaged index, remove damaged data", in: .vault,
        discussion: """
            Reads all packs. An index that is damaged, missing or wrong is rebuilt from the headers of the packs. Sound \
            blobs of a damaged or misnamed pack are copied into a new pack. Damaged files are copied to --save and \
            removed from the vault. Nothing is changed while a file cannot be read.

            Where there is a copy of the vault, bring the damaged file back from there instead. Otherwise run 'vault \
            backup' next: it stores again what the library still has, which also repairs older snapshots. Snapshots that \
            'vault check' still names have lost data for good; 'vault forget' removes them.

            The exit code is 3 when data was lost that may be stored again, and 4 when --dry-run finds damage. It is 3, \
            too, when --dry-run finds none and cannot lock the vault, as on a full disk.

            \(Invocation.vaultDiscussion)
            """,
        options: Option.vaultAccess + [
            .lockWait, .dryRun,
            .value(
                "save", "FOLDER", "Copy damaged files to this folder first (required, except with --dry-run)",
                .directory),
        ],
        examples: [
            Example("backup-tool vault repair --dry-run", "See what is damaged"),
            Example("backup-tool vault repair --save damaged", "Repair it"),
        ],
        reports: true,
        run: { call in
            let folder = call.value("save")
            let isRehearsal = call.flag(Option.dryRun.name)
            guard isRehearsal || folder != nil else {
                throw call.usage("say where damaged files are to be put: --save FOLDER")
            }
            var unlocked: [Finding] = []
            var result = try call.withVault(
                isRehearsal ? .reading : .removing,
                unlocked: { error in
                    unlocked.append(
                        Finding(
                            .skipped, .warning, error.subject ?? "the vault",
                            "the vault could not be locked (\(error.message)), and a repair has to lock it",
                            remedy: error.remedy ?? "mend that, and run this again before the repair"))
                }
            ) {
                try $0.repair(saving: folder, dryRun: isRehearsal, progress: call.output.progress())
            }
            result.findings += unlocked
            return call.report(result, isRehearsal)
        })
}

extension Invocation {
    fileprivate func report(_ result: RepairResult, _ isRehearsal: Bool) -> ExitStatus {
        if output.isJSON {
            output.report([
                "message_type": "repair", "dryRun": .bool(isRehearsal), "packs": .int(result.packs),
                "blobsLost": .int(result.blobsLost), "blobsKept": .int(result.blobsKept),
                "indexFiles": .int(result.indexFiles), "packsIndexed": .int(result.packsIndexed),
                "findings": .array((result.damage + result.findings).map(\.json)),
            ])
        } else {
            say(result.damage.map { Finding($0.code, $0.severity, $0.subject, $0.message) } + result.findings)
            if !result.isIndexWhole {
                output.note(
                    "\(isRehearsal ? "Would rebuild" : "Rebuilt") the index: "
                        + "\(HumanText.count(result.indexFiles, "file")) damaged, "
                        + "\(HumanText.count(result.packsIndexed, "pack")) not in it or described wrongly")
            }
            let lost = "\(HumanText.count(result.blobsLost, "blob")) lost"
            if result.packs > 0, result.packs == result.packsMissing {
                let packs = HumanText.count(result.packs, "missing pack")
                let was = result.packs == 1 ? "was" : "were"
                output.note(
                    isRehearsal
                        ? "Would remove \(packs) from the index: \(lost)."
                        : "\(packs) \(was) removed from the index: \(lost).")
            } else if result.packs > 0 {
                output.note(
                    "\(isRehearsal ? "Would replace" : "Replaced") \(HumanText.count(result.packs, "damaged pack")): "
                        + "\(lost), \(result.blobsKept) kept")
            }
            if result.isNothing {
                output.note("No pack is damaged; 'backup-tool vault check' tells whether anything else is.")
            } else if isRehearsal {
                output.note(
                    "'backup-tool vault repair --save FOLDER' repairs it, and keeps the damaged files in FOLDER.")
            } else {
                output.note(
                    result.findings.isEmpty
                        ? "Run 'backup-tool vault backup' now, and then 'backup-tool vault check'."
                        : "Mend what is listed above and run this again, before the next 'backup-tool vault backup'.")
            }
        }
        if isRehearsal && !result.isNothing { return .damaged }
        return result.findings.isEmpty && result.blobsLost == 0 ? .done : .incomplete
    }
}
