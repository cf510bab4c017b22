import BackupKit

extension Command {
    static let vaultCheck = Command(
        "check", "Check that a vault is whole", in: .vault,
        discussion: """
            Reads every index, snapshot and tree, and checks that each pack exists and has the right size. --read-data \
            also reads the packs and checks every blob. Damage is listed with the files of the snapshots that it \
            affects.

            The exit code is 4 when damage was found, and 3 when something else needs attention.

            \(Invocation.vaultDiscussion)
            """,
        options: Option.vaultAccess + [
            .lockWait, .noLock, .flag("read-data", "Read all packs"),
            .value(
                "read-data-subset", "SUBSET",
                "Read some packs: part n of t as n/t, such as 1/7 on the first day of seven, or a random share such as 5%"
            ),
        ],
        examples: [
            Example("backup-tool vault check", "Check all but the contents of packs"),
            Example("backup-tool vault check --read-data", "Check everything"),
            Example("backup-tool vault check --read-data-subset 3/30", "Check a thirtieth of the packs"),
        ],
        reports: true,
        run: { call in
            let packs = try call.checkedPacks()
            return try call.withVault { vault in
                call.report(try vault.checkLibraries(packs, progress: call.output.progress()))
            }
        })
}

extension Invocation {
    fileprivate func checkedPacks() throws -> CheckedPacks {
        guard let text = value("read-data-subset") else { return flag("read-data") ? .all : .none }
        guard !flag("read-data") else { throw usage("--read-data and --read-data-subset exclude each other") }
        guard let packs = CheckedPacks(subset: text) else {
            throw usage("--read-data-subset must be n/t with t up to 256, or a percentage, not '\(printable(text))'")
        }
        return packs
    }

    fileprivate func report(_ result: VaultCheckResult) -> ExitStatus {
        let damage = result.findings.count { $0.severity == .damage }
        if output.isJSON {
            output.report([
                "message_type": "vault-check", "ok": .bool(result.isSound), "snapshots": .int(result.snapshots),
                "packs": .int(result.packs), "blobs": .int(result.blobs), "packsRead": .int(result.packsRead),
                "bytesRead": .int(Int(result.bytesRead)),
                "affected": .array(
                    result.affected.map {
                        [
                            "snapshot": .string($0.snapshot.id.hex), "path": .string($0.path),
                            "reason": .string($0.reason),
                            "records": .array(
                                $0.records.map {
                                    [
                                        "localId": .string($0.localID), "citeKey": .string($0.citeKey),
                                        "title": .string($0.title),
                                    ]
                                }),
                        ]
                    }),
                "affectedCount": .int(result.affectedCount), "findings": .array(result.findings.map(\.json)),
            ])
        } else {
            say(result.findings)
            let what = "\(HumanText.count(result.snapshots, "snapshot")), \(HumanText.count(result.packs, "pack"))"
            let read = result.packsRead > 0 ? ", \(HumanText.bytes(Int(result.bytesRead))) read" : ""
            if damage == 0 {
                output.note("\(output.err.style.good("OK")): \(what)\(read)")
            } else {
                output.say("\(HumanText.count(damage, "piece")) of damage in \(what)\(read)")
            }
        }
        if damage > 0 { return .damaged }
        return result.findings.contains { $0.severity != .note } ? .incomplete : .done
    }
}
