import BackupKit

extension Command {
    static let vaultRepair = Command(
        "repair", "Let go of what is damaged, so that it is stored again", in: .vault,
        discussion: """
            Reads all packs. What is whole in a damaged one is copied into a new one; the damaged file is copied into the \
            folder of --save, and removed from the vault. The next 'vault backup' stores again what the library still \
            has, which heals older snapshots, too. Those that 'vault check' names after that have lost something for \
            good; 'vault forget' lets go of them. Nothing is changed while a file cannot be read.

            The exit code is 3 when something was lost that may be stored again, and 4 when --dry-run finds damage. \
            Where there is a copy of the vault, bring the file back from there instead. \(Invocation.vaultDiscussion)
            """,
        options: Option.vaultAccess + [
            .lockWait, .dryRun, .value("save", "FOLDER", "Where damaged files are put before they go", .directory),
        ],
        examples: [
            Example("backup-tool vault repair --dry-run", "What is damaged, and how much of it is whole"),
            Example("backup-tool vault repair --save damaged", "Let go of it"),
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
                "findings": .array((result.damage + result.findings).map(\.json)),
            ])
        } else {
            say(result.damage.map { Finding($0.code, $0.severity, $0.subject, $0.message) } + result.findings)
            if result.packs == 0 {
                output.note("No pack is damaged; 'vault check' tells whether anything else is.")
            } else {
                output.note(
                    "\(isRehearsal ? "Would let go of" : "Let go of") \(HumanText.count(result.packs, "pack")): "
                        + "\(HumanText.count(result.blobsLost, "blob")) lost, \(result.blobsKept) kept")
                if !isRehearsal {
                    output.note(
                        result.findings.isEmpty
                            ? "Run 'backup-tool vault backup' now, and then 'vault check'."
                            : "See to what is said above and run this again, before the next 'vault backup'.")
                }
            }
        }
        if isRehearsal && result.packs > 0 { return .damaged }
        return result.findings.isEmpty && result.blobsLost == 0 ? .done : .incomplete
    }
}
