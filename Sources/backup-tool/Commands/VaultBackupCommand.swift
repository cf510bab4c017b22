import BackupKit
import Synchronization

extension Command {
    static let vaultBackup = Command(
        "backup", "Take a snapshot of the library", in: .vault,
        discussion: """
            A snapshot is of one moment, even while apps go on writing, and holds the files that 'export' writes, below \
            /library: 'restic restore' gives them back without this tool. What the vault has already is not stored again, \
            and attachments that have not changed are not even read.

            Whatever could not be backed up is listed with its reason, and the exit code is 3. With --json the messages \
            are those of restic. \(Invocation.vaultDiscussion)
            """,
        options: [.store] + Option.vaultAccess + [
            .value("tag", "TAG", "Give the snapshot this tag", .tags, repeated: true),
            .value("host", "NAME", "Record this host name instead of this machine's"),
            .value("time", "TIME", "Record this time instead of now"),
            .flag("force", "Read every attachment again, even if it looks unchanged"),
            .flag("skip-if-unchanged", "Take no snapshot when nothing has changed"),
            .only, .lockWait, .dryRun,
        ],
        examples: [
            Example("backup-tool vault backup --vault /backup/library", "Back up the library"),
            Example("backup-tool vault backup --tag nightly --skip-if-unchanged -q", "From cron"),
        ],
        reports: true,
        run: { call in
            let options = try backupOptions(call)
            let store = try call.store(.read)
            return try call.backUp(store, into: try call.openVault(), options)
        })
}

extension Invocation {
    /// Takes a snapshot and says what came of it.
    func backUp(_ store: Store, into vault: Vault, _ options: VaultBackupOptions) throws -> ExitStatus {
        let reporter = BackupReporter(self, options.dryRun)
        var options = options
        options.report = { reporter.status($0) }
        return reporter.finish(try VaultBackup.run(store, into: vault, options))
    }
}

private func backupOptions(_ call: Invocation) throws -> VaultBackupOptions {
    var options = VaultBackupOptions()
    options.tags = call.values("tag").flatMap { $0.split(separator: ",").map(String.init) }
    if let host = call.value("host") { options.host = host }
    if let text = call.value("time") {
        guard let time = GoTime(text) ?? LocalTime(text).map({ GoTime($0.instant) }) else {
            throw call.usage("--time must be a time such as 2026-11-21T03:00:00Z, not '\(printable(text))'")
        }
        options.time = time
    }
    options.force = call.flag("force")
    options.skipIfUnchanged = call.flag("skip-if-unchanged")
    options.dryRun = call.flag("dry-run")
    options.kinds = call.kinds()
    options.lockWait = try call.lockWait()
    return options
}

/// Says what a backup does: to people with a bar and two lines, to programs in restic's messages.
private final class BackupReporter: Sendable {
    private let call: Invocation
    private let isDry: Bool
    private let progress: Progress
    private let start = Clock.system.now()
    /// When the last status was printed.
    private let last = Mutex(Timestamp(milliseconds: 0))

    init(_ call: Invocation, _ isDry: Bool) {
        self.call = call
        self.isDry = isDry
        progress = call.output.progress()
    }

    func status(_ status: VaultBackupStatus) {
        progress.report(
            ProgressEvent(
                "backing up", done: UInt64(max(0, status.bytes)), of: UInt64(max(0, status.totalBytes)),
                item: status.item))
        guard call.output.isJSON else { return }
        let now = Clock.system.now()
        // As often as restic tells a program that listens.
        let isDue = last.withLock { last in
            guard now.milliseconds - last.milliseconds >= 1000 else { return false }
            last = now
            return true
        }
        guard isDue else { return }
        let share = status.totalBytes > 0 ? Double(status.bytes) / Double(status.totalBytes) : 1
        call.output.report([
            "message_type": "status", "seconds_elapsed": .int(Int((now.milliseconds - start.milliseconds) / 1000)),
            "percent_done": .number(String(share)), "total_files": .int(status.totalFiles),
            "files_done": .int(status.files), "total_bytes": .int(Int(status.totalBytes)),
            "bytes_done": .int(Int(status.bytes)), "current_files": [.string(status.item)],
        ])
    }

    func finish(_ result: VaultBackupResult) -> ExitStatus {
        if call.output.isJSON { reportJSON(result) } else { tell(result) }
        if result.layout.isOfDamagedStore { return .damaged }
        return result.isComplete && result.vaultDamage.isEmpty ? .done : .incomplete
    }

    private func reportJSON(_ result: VaultBackupResult) {
        func error(_ item: String, _ message: String, _ remedy: String? = nil) {
            let message = remedy.map { "\(message); \($0)" } ?? message
            call.output.report([
                "message_type": "error", "error": ["message": .string(message)], "during": "archival",
                "item": .string(item),
            ])
        }
        for omission in result.layout.omitted { error(omission.path, omission.reason) }
        for path in result.unsteady { error(path, "changed while it was read") }
        for finding in result.layout.warnings + result.vaultDamage where finding.severity != .note {
            error(finding.subject, finding.message, finding.remedy)
        }
        let seconds = Double(result.end.milliseconds - result.begin.milliseconds) / 1000
        var summary: [JSON.Member] = [JSON.Member("message_type", "summary")]
        summary += result.summary.members ?? []
        summary.append(JSON.Member("total_duration", .number(String(max(0, seconds)))))
        if let snapshot = result.snapshot { summary.append(JSON.Member("snapshot_id", .string(snapshot.hex))) }
        if isDry { summary.append(JSON.Member("dry_run", true)) }
        call.output.report(.object(summary))
    }

    private func tell(_ result: VaultBackupResult) {
        let output = call.output
        call.say(result.layout.warnings + result.vaultDamage + result.layout.omitted.map(\.finding))
        for path in result.unsteady {
            output.warn("changed each time while it was read; the snapshot may hold a mixture", at: path)
        }
        if result.adoptedPacks > 0 {
            output.detail("found \(HumanText.count(result.adoptedPacks, "pack")) that an interrupted backup left")
        }
        let records = result.layout.records.values.reduce(0, +)
        let what =
            "\(HumanText.count(records, "record")), \(HumanText.count(result.files.total, "file")) "
            + "(\(HumanText.count(result.files.new)) new, \(HumanText.count(result.files.changed)) changed), "
            + HumanText.bytes(Int(result.bytes))
        let added = HumanText.bytes(Int(result.added.addedPacked))
        if isDry {
            output.note("Would back up \(what), and add \(added). Nothing was written.")
        } else if let snapshot = result.snapshot {
            output.note("snapshot \(snapshot.hex.prefix(8)): \(what), \(added) added")
        } else {
            output.note("Nothing has changed since snapshot \(result.parent?.hex.prefix(8) ?? ""): none was taken")
        }
        call.tellElsewhere(result.layout)
        output.detail("content digest \(result.layout.contentDigest.hex)")
    }
}
