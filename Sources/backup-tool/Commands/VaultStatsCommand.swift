import BackupKit

extension Command {
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
}

extension Invocation {
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
}
