import BackupKit

extension Command {
    static let vaultRepair = Command(
        "repair", "Mend a damaged index and remove damaged data", in: .vault,
        discussion: """
            Reads all packs. An index that is damaged, missing or wrong is made anew from what the packs say of \
            themselves. What is whole in a damaged pack, or in one under a wrong name, is copied into a \
            new one. Damaged files are copied into the folder of --save, and removed from the vault. \
            The next 'vault backup' stores again what the library still has, which makes older snapshots whole, too. \
            Those that 'vault check' names after that have lost something for \
            good; 'vault forget' removes them. Nothing is changed while a file cannot be read.

            The exit code is 3 when something was lost that may be stored again, and 4 when --dry-run finds damage. \
            Where there is a copy of the vault, bring the file back from there instead. \(Invocation.vaultDiscussion)
            """,
        options: Option.vaultAccess + [
            .lockWait, .dryRun, .value("save", "FOLDER", "Where damaged files are put before they go", .directory),
        ],
        examples: [
            Example("backup-tool vault repair --dry-run", "What is damaged, and how much of it is whole"),
            Example("backup-tool vault repair --save damaged", "Mend it"),
        ],
        reports: true,
        run: { call in
            let folder = call.value("save")
            let isRehearsal = call.flag(Option.dryRun.name)
            guard isRehearsal || folder != nil else {
                throw call.usage("say where damaged files are to be put: --save FOLDER")
            }
            let result = try call.withVault(isRehearsal ? .reading : .removing) {
                try $0.repair(saving: folder, dryRun: isRehearsal, progress: call.output.progress())
            }
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
                    "\(isRehearsal ? "Would make" : "Made") the index anew: "
                        + "\(HumanText.count(result.indexFiles, "file")) damaged, "
                        + "\(HumanText.count(result.packsIndexed, "pack")) not in it or described wrongly")
            }
            if result.packs > 0 {
                output.note(
                    "\(isRehearsal ? "Would replace" : "Replaced") \(HumanText.count(result.packs, "damaged pack")): "
                        + "\(HumanText.count(result.blobsLost, "blob")) lost, \(result.blobsKept) kept")
            }
            if result.isNothing {
                output.note("No pack is damaged; 'backup-tool vault check' tells whether anything else is.")
            } else if isRehearsal {
                output.note("'backup-tool vault repair --save FOLDER' does so, and keeps the damaged files in FOLDER.")
            } else {
                output.note(
                    result.findings.isEmpty
                        ? "Run 'backup-tool vault backup' now, and then 'backup-tool vault check'."
                        : "See to what is said above and run this again, before the next 'vault backup'.")
            }
        }
        if isRehearsal && !result.isNothing { return .damaged }
        return result.findings.isEmpty && result.blobsLost == 0 ? .done : .incomplete
    }
}
