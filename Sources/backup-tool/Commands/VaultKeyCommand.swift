import BackupKit

extension Command {
    static let vaultKey = Command(
        "key", "Manage the passwords of a vault", in: .vault,
        discussion: "Every password has a key file of its own, and each of them opens all that is in the vault.",
        subcommands: [keyList, keyAdd, keyPasswd, keyRemove])

    private static let keyList = Command(
        "list", "List the keys", in: .vault,
        discussion: Invocation.vaultDiscussion,
        options: Option.vaultAccess,
        examples: [Example("backup-tool vault key list", "The star marks the key in use")],
        reports: true,
        run: { call in
            let vault = try call.openVault()
            let (entries, findings) = try vault.listKeys()
            if call.output.isJSON {
                call.output.report(
                    .array(
                        entries.map { entry in
                            [
                                "current": .bool(entry.id == vault.keyID), "id": .string(entry.id.hex),
                                "userName": .string(entry.userName), "hostName": .string(entry.hostName),
                                "created": .string(entry.created),
                            ]
                        }))
            } else {
                var table = Table([.left(" ID"), .left("USER"), .left("HOST"), .left("CREATED")])
                for entry in entries {
                    table.add([
                        (entry.id == vault.keyID ? "*" : " ") + entry.id.hex.prefix(8), entry.userName, entry.hostName,
                        String(entry.created.prefix(10)),
                    ])
                }
                table.print(to: call.output)
            }
            call.say(findings)
            return findings.isEmpty ? .done : .damaged
        })

    private static let keyAdd = Command(
        "add", "Add a password", in: .vault,
        discussion: Invocation.vaultDiscussion,
        options: Option.vaultAccess + Option.newPasswords + [
            .lockWait,
            .value("user", "NAME", "A user's name to write into the key file, for all to read"),
            .value("host", "NAME", "A machine's name to write into the key file, for all to read"),
        ],
        examples: [
            Example("backup-tool vault key add --new-password-file ~/second", "A second password for the safe")
        ],
        reports: true,
        run: { call in
            let password = try call.newPassword()
            let id = try call.withVault(.adding) {
                try $0.addKey(password: password, userName: call.value("user"), hostName: call.value("host"))
            }
            return call.report(key: id, "added")
        })

    private static let keyPasswd = Command(
        "passwd", "Change the password that the vault was opened with", in: .vault,
        discussion: """
            The others stay. Somebody who has a copy of the vault from before opens that one with the old password \
            still. \(Invocation.vaultDiscussion)
            """,
        options: Option.vaultAccess + Option.newPasswords + [.lockWait],
        examples: [Example("backup-tool vault key passwd --new-password-file ~/new", "Change it")],
        reports: true,
        run: { call in
            let password = try call.newPassword()
            let id = try call.withVault(.removing) { try $0.changePassword(password) }
            return call.report(key: id, "replaces the old one")
        })

    private static let keyRemove = Command(
        "remove", "Remove a password", in: .vault,
        discussion: "The key in use stays in any case. \(Invocation.vaultDiscussion)",
        options: Option.vaultAccess + [.lockWait],
        arguments: [Argument("ID", "The beginning of the key's id")],
        examples: [Example("backup-tool vault key remove 1a2b3c4d", "It opens nothing any more")],
        reports: true,
        run: { call in
            let prefix = try call.argument("ID")
            let id = try call.withVault(.removing) { try $0.removeKey(prefix) }
            return call.report(key: id, "removed")
        })
}

extension Invocation {
    fileprivate func report(key id: SHA256Digest, _ what: String) -> ExitStatus {
        if output.isJSON {
            output.report(["message_type": "vault-key", "id": .string(id.hex)])
        } else {
            output.note("Key \(id.hex.prefix(8)) \(what)")
        }
        return .done
    }
}
