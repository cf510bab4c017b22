/// One command, as parsing, help, completions and man pages see it. A command is one value in one file of
/// `Commands/`, and one line in `Command.root`.
struct Command: Sendable {
    /// The headings of `backup-tool --help`, in this order.
    enum Group: String, CaseIterable, Sendable {
        case moveData = "Move data"
        case events = "Events"
        case look = "Look"
        case mend = "Mend"
        case store = "Store"
        case vault = "Vault"
        case schedule = "Schedule"
        case tool = "This tool"
    }

    let name: String
    /// One line without a full stop: "Write a library to a folder or an archive".
    let summary: String
    let group: Group
    /// Whole sentences; a blank line starts a new paragraph.
    let discussion: String
    let options: [Option]
    let arguments: [Argument]
    let examples: [Example]
    let subcommands: [Command]
    /// Whether it reads the configuration in any case, and says in its own way what is wrong with it.
    let readsConfiguration: Bool
    /// Nil for a command that only holds others.
    let run: (@Sendable (Invocation) throws -> ExitStatus)?

    /// `reports: true` adds `--json`.
    init(
        _ name: String, _ summary: String, in group: Group = .tool, discussion: String = "",
        options: [Option] = [], arguments: [Argument] = [], examples: [Example] = [], reports: Bool = false,
        readsConfiguration: Bool = false, subcommands: [Command] = [],
        run: (@Sendable (Invocation) throws -> ExitStatus)? = nil
    ) {
        self.name = name
        self.summary = summary
        self.group = group
        self.discussion = discussion
        self.options = options + (reports ? [.json] : [])
        self.arguments = arguments
        self.examples = examples
        self.readsConfiguration = readsConfiguration
        self.subcommands = subcommands
        self.run = run
    }
}

/// What may be given for an option or an argument.
enum Values: Sendable {
    /// Not empty: mostly that is a variable of a script that is not set.
    case text
    case anyText
    /// One or several, separated by commas.
    case tags
    case file
    case directory
    /// A file, a folder, or a vault's address.
    case backup
    /// A vault, under the names that `Invocation.vaultFolder` knows.
    case vault
    /// The name of a command of this tool.
    case command
    case oneOf([String])
    /// Several of these, separated by commas.
    case listOf([String])

    /// The words to choose from, if there are such.
    var allowed: [String] {
        switch self {
        case .oneOf(let words), .listOf(let words): words
        case .text, .anyText, .tags, .file, .directory, .backup, .vault, .command: []
        }
    }
}

struct Option: Sendable {
    /// Without the two hyphens.
    let name: String
    let short: Character?
    /// What stands for the value in help; nil for an option that takes none.
    let placeholder: String?
    let values: Values
    let isRepeated: Bool
    let isRequired: Bool
    /// A sentence without a full stop. The allowed values are added to it.
    let help: String

    var takesValue: Bool { placeholder != nil }

    static func flag(_ name: String, short: Character? = nil, _ help: String) -> Option {
        Option(
            name: name, short: short, placeholder: nil, values: .text, isRepeated: false, isRequired: false, help: help)
    }

    /// `repeated` options collect their values; another takes one value only.
    static func value(
        _ name: String, short: Character? = nil, _ placeholder: String, _ help: String, _ values: Values = .text,
        repeated: Bool = false, required: Bool = false
    ) -> Option {
        Option(
            name: name, short: short, placeholder: placeholder, values: values, isRepeated: repeated,
            isRequired: required, help: help)
    }
}

struct Argument: Sendable {
    enum Count: Sendable {
        case one
        case optional
        case oneOrMore
        case any
    }

    /// As help shows it: "PATH".
    let name: String
    let count: Count
    let values: Values
    let help: String

    init(_ name: String, _ help: String, _ values: Values = .text, _ count: Count = .one) {
        self.name = name
        self.count = count
        self.values = values
        self.help = help
    }

    var isRequired: Bool { count == .one || count == .oneOrMore }
    var isMany: Bool { count == .oneOrMore || count == .any }

    /// "PATH", "[PATH]", "PATH..." as in a usage line.
    var usage: String {
        let name = isMany ? "\(name)..." : name
        return isRequired ? name : "[\(name)]"
    }
}

struct Example: Sendable {
    /// The whole line: "backup-tool verify library.tar.zst".
    let line: String
    /// What it does: "Check every digest of an archive".
    let meaning: String

    init(_ line: String, _ meaning: String) {
        self.line = line
        self.meaning = meaning
    }
}
