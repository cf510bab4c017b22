/// Options that mean the same wherever they appear.
extension Option {
    /// Understood by every command.
    static let everywhere: [Option] = [
        .flag("help", short: "h", "Show help and do nothing else"),
        .flag("quiet", short: "q", "Print only results, warnings and errors"),
        .flag("verbose", short: "v", "Print more details"),
        .value("config", "FILE", "Read settings from this file", .file),
        .flag("no-color", "Do not use colors"),
    ]

    static let json = Option.flag("json", "Report as JSON")
    static let store = Option.value("store", "PATH", "The store to use", .file)
    static let create = Option.flag("create", "With --store: make the store if there is none")
    static let dryRun = Option.flag("dry-run", "Show what would be done, change nothing")
    static let force = Option.flag("force", forced("Replace what is there where it is"))
    /// The rule of decision 081, the same words in every help.
    static func forced(_ what: String) -> String { "\(what) what this tool wrote, and nothing else" }
    static let overwrite = Option.flag(
        "overwrite", "Let what is imported win, as an edit of now, over what the store has newer or deleted later")

    static func output(_ help: String, _ values: Values = .file) -> Option {
        .value("output", short: "o", "PATH", help, values, required: true)
    }

    static let only = Option.value(
        "only", "KINDS", "Take only these kinds",
        .listOf(["publications", "notes", "events", "records", "attachments", "settings"]), repeated: true)
}
