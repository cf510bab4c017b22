extension Command {
    static let completions = Command(
        "completions", "Print the completion script for a shell",
        discussion: """
            The script goes to standard output. Load it from the shell's start-up file, or put it where the shell \
            looks for such scripts.
            """,
        arguments: [Argument("SHELL", "The shell", .oneOf(Completions.shells))],
        examples: [
            Example("source <(backup-tool completions bash)", "Complete in this bash; in ~/.bashrc, in every one"),
            Example("source <(backup-tool completions zsh)", "The same for zsh; in ~/.zshrc, put it after compinit"),
            Example(
                "backup-tool completions fish > ~/.config/fish/completions/backup-tool.fish",
                "Complete in every fish from now on"),
        ],
        run: { call in
            call.output.write(Completions.script(for: try call.argument("SHELL"), root: .root))
            return .done
        })
}
