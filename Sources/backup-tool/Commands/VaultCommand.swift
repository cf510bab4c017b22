import BackupKit

extension Command {
    static let vault = Command(
        "vault", "Keep encrypted, deduplicated snapshots, in restic's format", in: .vault,
        discussion: """
            A vault is a restic repository: 'restic restore' gives back as plain files what this tool keeps in it, and \
            both programs can work with the same vault.

            The vault is the first of: --vault, $BACKUP_TOOL_VAULT, the configuration that --config names, \
            $RESTIC_REPOSITORY, $RESTIC_REPOSITORY_FILE, the usual configuration.

            The password is the first of: --password-file, --password-command, $BACKUP_TOOL_PASSWORD_FILE, \
            $BACKUP_TOOL_PASSWORD_COMMAND, $BACKUP_TOOL_PASSWORD, the configuration for its own vault, restic's \
            variables. On a terminal it is asked for.
            """,
        subcommands: [
            vaultInit, vaultBackup, vaultSnapshots, vaultCheck, vaultForget, vaultPrune, vaultRepair, vaultUnlock,
            vaultKey, vaultStats, vaultCopy,
        ])

    private static let vaultInit = Command(
        "init", "Create an empty vault", in: .vault,
        discussion: """
            Nothing opens a vault without its password. Keep a copy of it in another place.

            \(Invocation.vaultDiscussion)
            """,
        options: Option.vaultAccess + [
            .flag(
                "resume",
                "Finish an interrupted 'vault init', or write a lost file 'config' anew; with the vault's password")
        ],
        examples: [
            Example("backup-tool vault init --vault /backup/library --password-file ~/.password", "A new vault")
        ],
        reports: true,
        run: { call in
            let path = try call.vaultPath()
            try Store.refuseVault(at: path)
            let password = try call.passwordSource()?.read() ?? call.newPassword("password-file", "password-command")
            // Before there are folders.
            try KeyRing.check(newPassword: password)
            let vault = try Vault.create(
                try FolderBackend.create(path), password: password, resume: call.flag("resume"))
            if call.output.isJSON {
                call.output.report([
                    "message_type": "initialized", "id": .string(vault.id.hex), "repository": .string(path),
                ])
            } else {
                call.output.note("New vault \(vault.id.hex.prefix(10)): \(printable(path))")
                call.output.note("Keep its password in a second place: without it nothing opens the vault.")
            }
            return .done
        })

    private static let vaultSnapshots = Command(
        "snapshots", "List the snapshots of a vault", in: .vault,
        discussion: Invocation.vaultDiscussion,
        options: Option.vaultAccess + [.lockWait, .noLock],
        arguments: [
            Argument(
                "SNAPSHOT", "Only these: the beginning of an id, 'latest', or a date (the last one up to it)",
                .text, .any)
        ],
        examples: [
            Example("backup-tool vault snapshots", "All of them"),
            Example("backup-tool vault snapshots latest --json", "The newest, as restic prints it"),
        ],
        reports: true,
        run: { call in
            try call.withVault { vault in
                let words = call.arguments("SNAPSHOT")
                let (all, findings) = try vault.snapshots()
                let shown = words.isEmpty ? all : try words.map { try vault.resolve($0) }
                if call.output.isJSON {
                    // An array, and nothing around it: that is what restic's users parse.
                    call.output.report(.array(shown.map(\.json)))
                } else {
                    var table = Table([
                        .left("ID"), .left("TIME"), .right("FILES"), .right("SIZE"), .left("HOST"), .left("TAGS"),
                        .left("PATHS"),
                    ])
                    for snapshot in shown {
                        let file = snapshot.file
                        table.add([
                            snapshot.shortID, file.time.localText, file.fileCount.map(HumanText.count) ?? "",
                            file.byteCount.map(HumanText.bytes) ?? "", file.hostname,
                            file.tagsWithDoubtsFirst.joined(separator: ","), file.paths.joined(separator: " "),
                        ])
                    }
                    if !shown.isEmpty { table.print(to: call.output) }
                    call.output.note(HumanText.count(shown.count, "snapshot"))
                }
                call.say(findings)
                return findings.isEmpty ? .done : .damaged
            }
        })

    private static let vaultUnlock = Command(
        "unlock", "Remove stale locks", in: .vault,
        discussion: """
            A lock is stale when its process has ended, its machine has restarted, or nobody has refreshed it for 30 \
            minutes. Other commands ignore stale locks. The exit code is 3 when a lock stays.

            \(Invocation.vaultDiscussion)
            """,
        options: Option.vaultAccess + [
            .flag("remove-all", "Remove all locks, also those of running processes, which then stop")
        ],
        examples: [Example("backup-tool vault unlock", "Remove stale locks after a crash")],
        reports: true,
        run: { call in
            let fates = try call.openVault().unlock(all: call.flag("remove-all"))
            let (removed, left) = (fates.filter(\.isRemoved), fates.filter { !$0.isRemoved })
            if call.output.isJSON {
                call.output.report([
                    "message_type": "unlock", "removed": .array(removed.map { .string($0.id.hex) }),
                    "left": .array(left.map { ["id": .string($0.id.hex), "reason": .string($0.reason)] }),
                ])
            } else {
                for lock in removed { call.output.detail("\(lock.id.hex.prefix(10)): \(printable(lock.reason))") }
                call.output.note("\(HumanText.count(removed.count, "lock")) removed")
            }
            call.say(left.map(\.finding))
            return left.isEmpty ? .done : .incomplete
        })
}
