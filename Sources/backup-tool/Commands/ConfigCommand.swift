import BackupKit

extension Option {
    static let profile = Option.value("profile", "NAME", "The profile of the configuration to use")
}

extension Command {
    static let config = Command(
        "config", "Check the configuration", in: .schedule,
        discussion: "A configuration file holds what need not be typed every time, and the profiles of nightly runs.",
        subcommands: [configCheck])

    private static let configCheck = Command(
        "check", "Show the configuration and every mistake in it", in: .schedule,
        discussion: """
            Reads the file that every command reads: --config, else config.toml below the usual folders. Shows each \
            setting with its value, paths as commands use them, and the line that it comes from; with --profile those of one \
            profile. Every mistake is named with its line, and so is what would fail in the night: a store or a vault that \
            is not there, a password file, a place for metrics or a state folder that is of no use, a keep.tag that keeps no \
            snapshot of the runs.

            The exit code is 4 when there are mistakes.
            """,
        options: [.profile],
        examples: [
            Example("backup-tool config check", "Check the usual configuration"),
            Example("backup-tool config check --config nightly.toml --profile papers", "As one profile sees it"),
        ],
        reports: true,
        run: { call in
            guard
                let (file, bytes) = try Configuration.find(
                    explicit: call.value("config"), environment: call.environment, read: readSmallFile)
            else {
                call.reportConfiguration(.empty, [])
                return .done
            }
            let (all, found) = Configuration.check(bytes, file: file, environment: call.environment)
            // A profile that is not there is a mistake of the command line, but not when the file has worse ones.
            let shown = found.isEmpty ? try all.profile(call.value("profile")) : all
            let hasPassword = try PasswordSource.find(file: nil, command: nil) { call.environment[$0] } != nil
            let profile = call.value("profile")
            let mistakes =
                found.isEmpty
                ? try all.mistakesOfRuns(
                    of: profile, hasVault: call.hasVaultInEnvironment, hasPassword: hasPassword,
                    store: { try call.environment.store(option: nil, configuration: $0) }, call.output.advice)
                : found
            call.reportConfiguration(shown, mistakes)
            if mistakes.isEmpty, !call.hasVaultInEnvironment, try !all.namesVault() {
                call.output.note("It names no vault, so 'backup-tool run' cannot use it.")
            }
            return mistakes.isEmpty ? .done : .damaged
        })
}

extension Invocation {
    fileprivate func reportConfiguration(_ configuration: Configuration, _ mistakes: [BackupError]) {
        let settings = configuration.effective
        if output.isJSON {
            return output.report([
                "message_type": "config-check", "ok": .bool(mistakes.isEmpty),
                "file": configuration.file.map { .string($0) } ?? .null,
                "profiles": .array(configuration.profiles.map { .string($0) }),
                "settings": .array(
                    settings.map { ["key": .string($0.key), "value": .string($0.value), "line": .int($0.line)] }),
                "mistakes": .array(
                    mistakes.map {
                        [
                            "place": $0.subject.map { .string($0) } ?? .null, "message": .string($0.message),
                            "remedy": $0.remedy.map { .string($0) } ?? .null,
                        ]
                    }),
            ])
        }
        for mistake in mistakes {
            let place = mistake.subject.map { printable($0) + ": " } ?? ""
            output.say("\(output.err.style.error("error:")) \(place)\(printable(mistake.message))")
            if let remedy = mistake.remedy { output.say("  \(printable(remedy))") }
        }
        var table = Table([.left("SETTING"), .right("LINE"), .left("VALUE")])
        for setting in settings { table.add([setting.key, String(setting.line), setting.value]) }
        if !settings.isEmpty { table.print(to: output) }
        guard let file = configuration.file else { return output.note("There is no configuration file.") }
        let profiles = configuration.profiles
        if !profiles.isEmpty { output.note("Profiles: \(profiles.joined(separator: ", "))") }
        if mistakes.isEmpty { output.note("\(output.err.style.good("OK")): \(printable(file))") }
    }
}
