extension Command {
    /// The whole tool. Every command is named here once; parsing, help, completions and man pages start from it.
    static let root: Command = Command(
        "backup-tool", "Back up, export, verify and restore libraries of publications, notes and events",
        subcommands: [
            .export, .importFiles, .verify, .restore, .undo, .events, .list, .show, .diff, .conflicts, .dedup, .schema,
            .store, .sync, .hub, .vault, .run, .schedule, .drill, .config, .completions, .man, .version, .help,
        ])

    /// The command at a path such as ["store", "init"], or nil.
    func command(at path: some Sequence<String>) -> Command? {
        var command = self
        for name in path {
            guard let next = command.subcommands.first(where: { $0.name == name }) else { return nil }
            command = next
        }
        return command
    }

    /// This command and all below it, each with its path below this one.
    func everyCommand(path: [String] = []) -> [(path: [String], command: Command)] {
        [(path, self)] + subcommands.flatMap { $0.everyCommand(path: path + [$0.name]) }
    }
}
