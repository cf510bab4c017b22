import BackupKit

enum Tool {
    static let version = BackupKitVersion.current

    /// From the process's arguments to its exit code.
    static func run() -> Int32 {
        Interrupt.install()
        let environment = ProcessInput.environment()
        do {
            return run(try ProcessInput.arguments(), root: .root, environment: environment)
        } catch {
            return fail(error, nil, environment, asJSON: false)
        }
    }

    private static func run(_ words: [String], root: Command, environment: Environment) -> Int32 {
        let line: ParsedLine
        do {
            line = try Parser.parse(words, root: root)
        } catch {
            // The line was not understood, so this is a guess, but one that cannot be wrong by accident.
            let options = words.prefix { $0 != "--" }
            var guess = ParsedLine(command: root)
            if options.contains("--no-color") { guess.options["no-color"] = [] }
            let output = Output(line: guess, environment: environment)
            return fail(error, output, environment, asJSON: options.contains("--json"))
        }
        let output = Output(line: line, environment: environment)
        do {
            let status = try run(Invocation(line: line, environment: environment, output: output))
            try output.finish()
            return status.code
        } catch is ClosedPipe {
            return ExitStatus.failed.code
        } catch {
            return fail(error, output, environment, asJSON: output.isJSON)
        }
    }

    private static func run(_ call: Invocation) throws -> ExitStatus {
        if call.line.wantsHelp {
            let help = Help(call.line.command, path: call.line.path, stream: call.output.out)
            call.output.write(help.full())
            return .done
        }
        if call.line.wantsVersion {
            call.output.print("backup-tool \(version)")
            return .done
        }
        guard let run = call.line.command.run else {
            // `backup-tool $COMMAND` with an empty variable must not look like success in a script, as it does not
            // with git, and help nobody asked for is no result, so it goes to standard error.
            let help = Help(call.line.command, path: call.line.path, stream: call.output.err)
            call.output.say(help.short())
            return .usage
        }
        if call.flag("quiet"), call.flag("verbose") { throw call.usage("--quiet and --verbose exclude each other") }
        // Also a command that needs nothing of it refuses a file that is not there.
        let file = call.line.command.readsConfiguration ? nil : call.value("config")
        if let file, try FileStatus.ofTarget(file) == nil { _ = try call.configuration() }
        if call.isDeclared("password-file") {
            let password = { @Sendable path in try call.vaultPassword(from: call.passwordSource(of: path)) }
            VaultAddress.password.withLock { $0 = password }
        }
        let status = try run(call)
        let doubts = VaultAddress.doubts.withLock { $0 }
        call.say(call.damage.tell() + doubts)
        return status == .done && !(call.damage.isEmpty && doubts.isEmpty) ? .incomplete : status
    }

    private static func fail(
        _ error: any Error, _ output: Output?, _ environment: Environment, asJSON: Bool
    ) -> Int32 {
        let output = output ?? Output(line: ParsedLine(command: .root), environment: environment)
        let problem = ExitError(error, signal: Interrupt.signal ?? 0)
        // The error comes last. What could not be printed before it matters less than what went wrong first.
        try? output.finish()
        output.advice = output.advice.about(problem.subject)
        if asJSON { output.say(problem.json) } else { output.say(problem.text(output.err.style)) }
        return problem.status.code
    }
}
