import BackupKit

extension Command {
    static let help = Command(
        "help", "Show the help of a command",
        arguments: [Argument("COMMAND", "The command; none for the list of all", .command, .any)],
        examples: [Example("backup-tool help version", "Show the same as 'backup-tool version --help'")],
        run: { call in
            let command = try findCommand(call.arguments, for: call)
            call.output.write(Help(command, path: call.arguments, stream: call.output.out).full())
            return .done
        })
}

/// The command that the words name, or an error of usage with the nearest.
func findCommand(_ words: [String], for call: Invocation) throws -> Command {
    var command = Command.root
    for word in words {
        guard let next = command.command(at: [word]) else {
            let near = command.hint(for: word)
            throw BackupError(
                .usage, "unknown command '\(words.joined(separator: " "))'",
                remedy: near ?? "see 'backup-tool --help' for the list of commands")
        }
        command = next
    }
    return command
}
