import BackupKit

extension Command {
    static let run = Command(
        "run", "Run the nightly job: snapshot, expire, check, test, prune", in: .schedule,
        discussion: """
            Takes a snapshot, compares it with the last good one, expires snapshots by the rules of the configuration, \
            reads and checks a part of the vault, tests a restore when one is due, and prunes when that frees enough. It \
            is made for cron: it needs no environment, never asks, and prints nothing with --quiet when all is well. The \
            next run finishes what was interrupted.

            When a snapshot holds much less than the last good one, it gets the tag 'suspect'. Then nothing is removed \
            and every run ends with 3, until 'run --ack' accepts the loss or the data is back.

            A step that fails does not stop the others. The exit code is that of the most serious failure.
            """,
        options: [.store] + Option.vaultAccess + [
            .lockWait,
            .value("ack", "SNAPSHOT", "Accept the loss in SNAPSHOT ('latest' or an id), and do nothing else"),
            .dryRun,
            .value("if-older", "AGE", "Do nothing when the last good run is younger than AGE, such as 25h"),
            .value("ping", "URL", "Report to this watchdog instead of the configuration's 'ping.url'"),
        ],
        examples: [
            Example("backup-tool run --config nightly.toml", "Run the job once"),
            Example("backup-tool -q run --config nightly.toml --profile papers", "Run one profile, as cron does"),
            Example("backup-tool run --config nightly.toml --ack latest", "Accept the loss that was reported"),
        ],
        reports: true,
        run: { call in
            let settings = try call.configuration()
            try call.adviseForMail(settings)
            var session = try call.nightlySession(settings)
            if let address = call.value("ping") {
                session.ping = Ping(address)
                guard session.ping != nil else { throw call.usage("--ping must be an address of the web") }
            }
            session.warnings = call.findingsOfEnvironment(settings)
            if let word = call.value("ack") { return try call.acknowledge(word, settings, session) }
            if let text = call.value("if-older") {
                guard let seconds = CalendarSpan(text)?.approximateSeconds else {
                    throw call.usage("--if-older must be a span such as 25h, not '\(printable(text))'")
                }
                if session.isRecent(seconds) {
                    call.output.note("The last good run is younger than \(text).")
                    return .done
                }
            }
            let output = call.output
            if call.flag("dry-run") {
                try settings.checkPlacesOfRuns(state: session.stateFolder)
                var night = NightlyRun(
                    try call.nightlyVault(settings), try call.nightlySettings(settings), state: try session.state(),
                    drillLog: session.drillLog)
                let lines = try night.rehearse()
                for line in lines {
                    output.isJSON
                        ? output.report(line.json(output.advice)) : output.print(output.advice.completed(line.sentence))
                }
                if output.isJSON { output.report(["message_type": "run", "dryRun": true, "ok": true]) }
                return .done
            }
            let (report, unheard) = try session.run(try call.nightlySettings(settings)) { line in
                output.isJSON ? output.report(line.json(output.advice)) : output.note(line.sentence)
            } lock: {
                try NightlySession.lock(try call.nightlyVaultPath(settings), waitSeconds: try call.lockWait())
            } vault: {
                try call.nightlyVault(settings)
            }
            return call.report(report, unheard)
        })
}

extension NightlyRun.Report.Line {
    fileprivate var sentence: String { "\(step.rawValue): \(printable(text))" }

    fileprivate func json(_ advice: Advice) -> JSONValue {
        ["message_type": "run-step", "step": .string(step.rawValue), "text": .string(advice.completed(text))]
    }
}

extension Invocation {
    func nightlySession(_ settings: Configuration) throws -> NightlySession {
        var session = NightlySession(
            profile: value("profile"), stateFolder: try environment.stateFolder(settings)
        ) { code in code.map { ExitStatus($0, signal: Interrupt.signal ?? 0).code } ?? 0 }
        session.metricsFile = settings.text("metrics.file")
        let all = try wholeConfiguration()
        session.metricsProfiles = try ([nil] + all.profiles).filter {
            try all.profile($0).text("metrics.file") == session.metricsFile
        }
        session.ping = settings.text("ping.url").flatMap { Ping($0) }
        session.completed = { [output] in output.advice.completed($0) }
        session.configuration = try settings.file.map(absolutePath)
        if let vault = try? nightlyVaultPath(settings) {
            let route = RunState.Route(
                store: try absolutePath(nightlyStore(settings)), vault: try absolutePath(vault))
            let isUsualStore = value(Option.store.name) == nil && environment["BACKUP_TOOL_STORE"] == nil
            let isOwnStore = try settings.text("store").map { try absolutePath($0) == route.store } ?? isUsualStore
            let isOwnVault = try settings.text("vault").map(absolutePath) == route.vault
            session.follow(route, isConfigured: isOwnStore && isOwnVault)
        }
        return session
    }

    fileprivate func nightlySettings(_ settings: Configuration) throws -> NightlyRun.Settings {
        var night = try NightlyRun.Settings(settings)
        let store = try absolutePath(nightlyStore(settings))
        let vault = try absolutePath(nightlyVaultPath(settings))
        night.recovery = { good, loss in
            let snapshot = "\(VaultAddress.scheme)\(vault)@\(good.prefix(8))"
            let command =
                loss.isByDeletes ? "restore --resurrect" : loss.isOfValues ? "restore --mode replace" : "restore"
            let everything = Kind.allCases.map(\.rawValue).joined(separator: ",")
            let restore =
                loss.isOfSettings
                ? TypedCommand.quoted(
                    command, [snapshot], options: [Option.store.name: store, Option.only.name: everything])
                : TypedCommand.quoted(command, [snapshot], options: [Option.store.name: store])
            let aim = loss.isOfValues ? "to restore it, and undo all later changes" : "to restore it"
            return "to see what is gone: \(TypedCommand.quoted("diff", [snapshot, store]))\n\(aim): \(restore)"
        }
        return night
    }

    /// Who reads the commands in a mail has no shell with the right variables, and stands in another folder.
    fileprivate func adviseForMail(_ settings: Configuration) throws {
        var advice = output.advice
        let isProfile = value("profile") != nil
        func carry(_ name: String, _ path: String) throws {
            let isConfigured = path == settings.text(name)
            if isConfigured, !isProfile { return }
            advice.carry(name, try absolutePath(path), isOfProfile: isConfigured)
        }
        try carry(Option.store.name, nightlyStore(settings))
        if let vault = try? nightlyVaultPath(settings) { try carry(Option.vault.name, vault) }
        if let file = settings.file { advice.carry("config", try absoluteName(file)) }
        if let file = value("password-file") { advice.carry("password-file", try absolutePath(file)) }
        output.advice = advice
    }

    private func nightlyStore(_ settings: Configuration) throws -> String {
        try value(Option.store.name) ?? environment.store(option: nil, configuration: settings)
    }

    /// Whoever wrote a configuration expects it to be in force.
    fileprivate func findingsOfEnvironment(_ settings: Configuration) -> [Finding] {
        [(Option.store.name, "BACKUP_TOOL_STORE"), (Option.vault.name, "BACKUP_TOOL_VAULT")].compactMap {
            option, variable in
            guard value(option) == nil, let named = environment[variable], let written = settings.text(option),
                (try? absolutePath(named)) != (try? absolutePath(written))
            else { return nil }
            return Finding(
                .leftOut, .warning, "$\(variable)",
                "names \(printable(named)), which this run uses instead of the configuration's \(printable(written))",
                remedy: "unset it; --\(option) names another \(option) on purpose")
        }
    }

    func nightlyVaultPath(_ settings: Configuration) throws -> String {
        if value(Option.vault.name) == nil, environment["BACKUP_TOOL_VAULT"] == nil, let path = settings.text("vault") {
            return path
        }
        return try vaultPath()
    }

    /// The password as everywhere, and last, for another vault than its own, as the configuration says.
    private func nightlyPassword(_ settings: Configuration) throws -> [UInt8] {
        let isOwn = try nightlyVaultPath(settings) == settings.text("vault")
        let source = try settings.passwordSource
        return try vaultPassword(from: namedPassword(configured: isOwn ? source : nil) ?? source)
    }

    private func openNightly(_ settings: Configuration) throws -> (path: String, vault: Vault) {
        let path = try nightlyVaultPath(settings)
        if let known = VaultAddress.opened.withLock({ $0[path] }) { return (path, known) }
        let vault = try Vault.open(try FolderBackend(path), password: try nightlyPassword(settings))
        VaultAddress.opened.withLock { $0[path] = vault }
        return (path, vault)
    }

    private func nightlyOptions(_ settings: Configuration) throws -> StoreVault.Options {
        var options = StoreVault.Options()
        if let host = settings.text("snapshot.host") { options.host = host }
        options.tags = settings.texts("snapshot.tags")
        // What tells this profile's snapshots from others in the same vault, which are not a run's business.
        let mark = value("profile") ?? Configuration.nightly
        if !options.tags.contains(mark) { options.tags.append(mark) }
        options.lockWait = try lockWait()
        options.limits = try limits()
        options.progress = output.progress()
        return options
    }

    func nightlyVault(_ settings: Configuration) throws -> StoreVault {
        let (path, vault) = try openNightly(settings)
        return StoreVault(
            store: try nightlyStore(settings), vaultPath: path, vault: vault, try nightlyOptions(settings))
    }

    fileprivate func acknowledge(
        _ word: String, _ settings: Configuration, _ session: NightlySession
    ) throws -> ExitStatus {
        let (path, vault) = try openNightly(settings)
        let lock = try NightlySession.lock(path, waitSeconds: try lockWait())
        defer { withExtendedLifetime(lock) {} }
        let nightly = try nightlyVault(settings)
        var state = try session.state()
        let items = try nightly.snapshots()
        let suspects = items.filter(\.isSuspect).map(\.origin)
        // In a vault that others use too, "latest" may be one of theirs.
        let all = try vault.snapshots().snapshots
        let names = [state.suspect, state.suspectOrigin].compactMap(\.self)
        let suspect = all.first {
            names.contains($0.id.hex) || $0.file.original.map { names.contains($0.hex) } ?? false
        }
        if word == "latest", suspect == nil, let gone = state.suspect {
            throw BackupError(
                .failed, "the suspect snapshot is gone from the vault", at: String(gone.prefix(8)),
                remedy: "the next run looks again; or name the snapshot that is right")
        }
        if word == "latest", suspect == nil, suspects.isEmpty, let good = state.good,
            items.contains(where: { $0.isOrWas(good.snapshot) })
        {
            output.note("There is nothing to acknowledge: no snapshot is suspect.")
            if output.isJSON { output.report(["message_type": "run-ack", "snapshot": .null, "holds": .null]) }
            return .done
        }
        let latest = suspect?.id.hex ?? items.max { $0.time < $1.time }?.id
        let snapshot = try vault.resolve(word == "latest" ? latest ?? word : word)
        guard nightly.owns(snapshot) else {
            throw BackupError(
                .usage, "is none of the snapshots that this run takes", at: snapshot.shortID,
                remedy: "name the one that 'schedule status' shows, and the right --profile")
        }
        if let suspect, !snapshot.file.tags.contains(SnapshotTag.suspect),
            snapshot.time.timestamp < suspect.time.timestamp
        {
            throw BackupError(
                .usage, "was taken before the loss, and does not say that it was meant", at: snapshot.shortID,
                remedy: "name \(suspect.shortID), which is the suspect, or bring back what is gone")
        }
        let census = try nightly.census(of: snapshot.id.hex)
        if flag(Option.dryRun.name) {
            output.note("Later runs would compare with snapshot \(snapshot.shortID), and remove snapshots again.")
            return .done
        }
        state.acknowledge(snapshot.file.original?.hex ?? snapshot.id.hex, holding: census, suspects: suspects)
        try state.write(session.statePath)
        try session.writeMetrics(state)
        if output.isJSON {
            output.report(["message_type": "run-ack", "snapshot": .string(snapshot.id.hex), "holds": census.json])
        } else {
            output.note(
                "Snapshot \(snapshot.shortID) is accepted. Later runs compare with it and remove snapshots again.")
        }
        say(session.warnings)
        return session.warnings.isEmpty ? .done : .incomplete
    }

    fileprivate func report(_ report: NightlyRun.Report, _ unheard: [Finding]) -> ExitStatus {
        if output.isJSON {
            output.report([
                "message_type": "run", "ok": .bool(report.worst == nil),
                "snapshot": report.snapshot.map { .string($0) } ?? .null,
                "removed": .array(report.forgotten.map { .string($0) }),
                "drills": .array(report.drills.map { .object($0.members) }),
                "findings": .array((report.findings + unheard).map(\.json)),
                "errors": .array(report.errors.map { .string(output.advice.completed($0.description)) }),
                "notDone": .array(report.undone.map { .string($0.rawValue) }),
            ])
        } else {
            say(report.findings + unheard)
            for drill in report.drills where !drill.isOK { self.report(drill) }
            for complaint in report.complaints {
                output.say(complaint.text(after: output.err.style.error("error:")))
            }
        }
        return report.worst.map { ExitStatus($0, signal: 0) } ?? .done
    }
}
