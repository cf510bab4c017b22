import BackupKit

extension Command {
    static let drill = Command(
        "drill", "Test backups by restoring them", in: .schedule,
        discussion: """
            Restores a backup into a scratch store. Of a folder or a vault with several, it restores the newest and an \
            older one, chosen at random; without PATH, of the snapshots that 'backup-tool run' takes with this \
            configuration. A backup passes when the scratch store has the content digest of the manifest, SQLite finds \
            it sound, every file has its digest, and every format can be read. The drill says how long the restore took.

            Each drill adds a line to drills.jsonl: at the place of --log, else beside the configuration file, else in \
            the folder where programs keep their state. Every line holds the SHA-256 of the line before. --history checks \
            that chain: it ends with 4 when the chain is broken, and with 3 when a line is no record of a drill.

            The exit code is 4 when a backup did not pass: an export that lost its manifest is damaged, too. It is 3 \
            when 'verify' warns of what is no damage but proves nothing, such as an imbib backup without its manifest.
            """,
        options: Option.vaultAccess + [
            .lockWait, .store,
            .flag("history", "Show the drills so far, and check that nobody changed them"),
            .value("log", "FILE", "Where the drills are written down", .file),
        ],
        arguments: [Argument("PATH", "A backup, a folder of backups, or vault:PATH", .backup, .optional)],
        examples: [
            Example("backup-tool drill /mnt/backups", "Try the newest backup and an older one"),
            Example("backup-tool drill vault:/mnt/vault --password-file password", "Two snapshots of a vault"),
            Example("backup-tool drill library.tar.zst --log drills.jsonl", "Try one backup"),
            Example("backup-tool drill --history --log drills.jsonl", "What was tried, and how it went"),
        ],
        reports: true,
        run: { call in
            let log = DrillLog(try call.drillLogPath())
            if call.flag("history") { return try call.showHistory(log) }
            try log.mustBeLog()
            guard let path = call.arguments("PATH").first else { return try call.drillOwn(log) }
            var options = Drill.Options()
            options.limits = try call.limits()
            options.progress = call.output.progress()
            var random = SystemRandomNumberGenerator()
            var entries: [DrillEntry] = []
            for target in try Drill.targets(at: path, using: &random) {
                let entry = try Drill.run(target, options)
                try log.append(entry)
                call.report(entry)
                entries.append(entry)
            }
            call.output.note("Written down in \(printable(log.path)).")
            return .ofDrills(entries)
        })
}

extension Invocation {
    /// `--log`, else beside the configuration, else where programs keep what they noted.
    fileprivate func drillLogPath() throws -> String {
        if let named = value("log") { return named }
        return DrillLog.path(in: try environment.stateFolder(configuration()))
    }

    /// As a run does it, when nobody wants to wait until one is due.
    fileprivate func drillOwn(_ log: DrillLog) throws -> ExitStatus {
        let settings = try configuration()
        guard settings.text("vault") != nil || value(Option.vault.name) != nil else {
            throw usage("name a backup, a folder of backups or vault:PATH, or a configuration with a vault")
        }
        let session = try nightlySession(settings)
        let nightly = try nightlyVault(settings)
        let lock = try NightlySession.lock(try nightlyVaultPath(settings), waitSeconds: try lockWait())
        defer { withExtendedLifetime(lock) {} }
        var random = SystemRandomNumberGenerator()
        var state = try session.state()
        let history = try log.history()
        let loss = value("log") == nil ? log.loss(state.drillHead, from: history, rememberedIn: session.statePath) : nil
        // What else is odd about the log, --history tells.
        say(history.findings.filter { $0.severity == .damage } + [loss].compactMap(\.self))
        let chosen = Drill.choice(of: try nightly.snapshots(), history, now: Clock.system.now(), using: &random)
        guard !chosen.isEmpty else {
            throw BackupError(
                .notFound, "holds no snapshot of 'backup-tool run' yet", at: try nightlyVaultPath(settings))
        }
        let head = state.drillHead
        var entries: [DrillEntry] = []
        try Drill.run(chosen, in: nightly, log, &state) {
            report($1)
            entries.append($1)
        }
        // Of another log the state of the runs says nothing.
        if value("log") != nil { state.drillHead = head }
        try state.write(session.statePath)
        try session.writeMetrics(state)
        let isWhole = loss == nil && !history.findings.contains { $0.severity == .damage }
        return state.lastDrill?.isOK == true && isWhole ? .ofDrills(entries) : .damaged
    }

    func report(_ entry: DrillEntry) {
        if output.isJSON {
            return output.report(.object([.init("message_type", "drill")] + entry.members))
        }
        let what = entry.snapshot.map { "snapshot \($0.prefix(8))" } ?? printable(entry.path)
        for problem in entry.problems {
            output.say("\(output.err.style.error("failed:")) \(what): \(printable(problem))")
        }
        for warning in entry.warnings { output.warn("\(what): \(printable(warning))") }
        guard entry.isOK else { return }
        let size = "\(HumanText.count(entry.files, "file")), \(HumanText.bytes(Int(entry.bytes)))"
        let verdict = entry.warnings.isEmpty ? output.err.style.good("OK") : "Restored"
        output.note("\(verdict): \(what): \(size), back in \(HumanText.duration(entry.seconds))")
    }

    fileprivate func showHistory(_ log: DrillLog) throws -> ExitStatus {
        var history = try log.history()
        if value("log") != nil, try FileStatus.ofTarget(log.path) == nil {
            throw BackupError(.notFound, "there is no such log", at: log.path)
        }
        let folder = parent(of: log.path)
        // Of another log the state of the runs says nothing.
        for (file, head) in log.path == DrillLog.path(in: folder) ? try RunState.drillHeads(in: folder) : [] {
            history.findings += [log.loss(head, from: history, rememberedIn: file)].compactMap(\.self)
        }
        let isWhole = !history.findings.contains { $0.severity == .damage }
        if output.isJSON {
            output.report([
                "message_type": "drill-history", "ok": .bool(isWhole),
                "head": history.head.map { .string($0) } ?? .null,
                "drills": .array(history.entries.map { .object($0.members) }),
                "findings": .array(history.findings.map(\.json)),
            ])
        } else {
            var table = Table([.left("WHEN"), .left("RESULT"), .right("TOOK"), .left("BACKUP")])
            for entry in history.entries {
                let what = entry.snapshot.map { "\(entry.path)@\($0.prefix(8))" } ?? entry.path
                table.add([
                    "\(entry.time.iso8601.prefix(16))Z", entry.isOK && entry.warnings.isEmpty ? "ok" : entry.verdict,
                    HumanText.duration(entry.seconds), what,
                ])
            }
            table.print(to: output)
            say(history.findings)
            if isWhole, let head = history.head { output.detail("the chain holds; its last digest is \(head)") }
        }
        guard isWhole else { return .damaged }
        return history.findings.isEmpty ? .done : .incomplete
    }
}

extension ExitStatus {
    fileprivate static func ofDrills(_ entries: [DrillEntry]) -> ExitStatus {
        guard entries.allSatisfy(\.isOK) else { return .damaged }
        return entries.allSatisfy(\.warnings.isEmpty) ? .done : .incomplete
    }
}
