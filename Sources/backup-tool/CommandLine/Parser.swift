import BackupKit

/// The words of a command line, understood.
struct ParsedLine: Sendable {
    /// Without the tool's own name: ["store", "init"].
    var path: [String] = []
    var command: Command
    var wantsHelp = false
    var wantsVersion = false
    /// What was given for each option; a flag that was given has an empty list.
    var options: [String: [String]] = [:]
    var arguments: [String] = []
}

/// Options may stand before or after arguments; `--name=value`, `--name value`, `-n value`, `-nvalue`, `-ab`;
/// `--` ends the options and `-` is an argument. Long options are not abbreviated: a script that relies on an
/// abbreviation breaks when an option is added.
struct Parser {
    private var words: ArraySlice<String>
    private var line: ParsedLine
    private var optionsEnded = false

    static func parse(_ words: [String], root: Command) throws -> ParsedLine {
        var parser = Parser(words: words[...], line: ParsedLine(command: root))
        try parser.run()
        return parser.line
    }

    private mutating func run() throws {
        while let word = words.popFirst() {
            if optionsEnded || word == "-" || !word.hasPrefix("-") {
                try takeWord(word)
            } else if word == "--" {
                optionsEnded = true
            } else if word.hasPrefix("--") {
                try takeLong(word.dropFirst(2))
            } else {
                try takeShort(word.dropFirst())
            }
            if line.wantsHelp { return findCommandForHelp() }
        }
        guard line.command.run != nil, !line.wantsVersion else { return }
        try checkArguments()
        if let missing = line.command.options.first(where: { $0.isRequired && line.options[$0.name] == nil }) {
            throw usage("\(missing.spelled) is missing")
        }
    }

    /// `backup-tool --help export` asks about export.
    private mutating func findCommandForHelp() {
        for word in words {
            if word == "--no-color" { line.options["no-color"] = [] }
            if word.hasPrefix("-") { continue }
            guard let next = line.command.command(at: [word]) else { return }
            line.command = next
            line.path.append(word)
        }
    }

    // MARK: Commands and arguments

    private mutating func takeWord(_ word: String) throws {
        guard !line.command.subcommands.isEmpty else {
            line.arguments.append(word)
            return
        }
        guard let next = line.command.command(at: [word]) else {
            throw usage(
                "unknown command '\(printable((line.path + [word]).joined(separator: " ")))'",
                line.command.hint(for: word))
        }
        line.command = next
        line.path.append(word)
    }

    private func checkArguments() throws {
        let wanted = line.command.arguments
        let required = wanted.filter(\.isRequired)
        if line.arguments.count < required.count {
            throw usage("\(required[line.arguments.count].name) is missing")
        }
        if line.arguments.count > wanted.count, !wanted.contains(where: \.isMany) {
            let word = printable(line.arguments[wanted.count])
            let mayBeOutput = line.command.options.contains { $0.name == "output" } && line.options["output"] == nil
            throw usage("unexpected argument '\(word)'", mayBeOutput ? "did you mean '--output \(word)'?" : nil)
        }
        for argument in wanted {
            for word in line.words(of: argument) { try check(word, argument.values, for: argument.name) }
        }
    }

    // MARK: Options

    private mutating func takeLong(_ word: Substring) throws {
        let name = String(word.prefix { $0 != "=" })
        guard let option = known.first(where: { $0.name == name }) else {
            throw usage(
                "unknown option '--\(printable(name))'",
                didYouMean(name, among: known.map(\.name), after: "--") ?? hintOnPlace(of: name))
        }
        if name.utf8.count == word.utf8.count {
            try take(option, attached: nil)
        } else if option.takesValue {
            try take(option, attached: String(word.dropFirst(name.count + 1)))
        } else {
            throw usage("--\(name) takes no value")
        }
    }

    private mutating func takeShort(_ cluster: Substring) throws {
        var rest = cluster
        while let letter = rest.popFirst() {
            guard let option = known.first(where: { $0.short == letter }) else {
                // A word of several letters with one hyphen is a long option short of one.
                let long = String(cluster.prefix { $0 != "=" })
                let isLong = known.contains { $0.name == long }
                throw usage(
                    "unknown option '-\(printable(String(isLong ? cluster : Substring(String(letter)))))'",
                    isLong ? "did you mean '--\(long)'?" : hintOnFile(named: cluster))
            }
            if option.takesValue {
                try take(option, attached: rest.isEmpty ? nil : String(rest))
                return
            }
            try take(option, attached: nil)
        }
    }

    private mutating func take(_ option: Option, attached: String?) throws {
        guard option.takesValue else {
            line.options[option.name] = []
            if option.name == "help" { line.wantsHelp = true }
            if option.name == Option.version.name, line.path.isEmpty { line.wantsVersion = true }
            return
        }
        let value = try attached ?? nextValue(of: option)
        try check(value, option.values, for: option.spelled)
        let values = if case .listOf = option.values { value.split(separator: ",").map(String.init) } else { [value] }
        let earlier = line.options[option.name] ?? []
        guard option.isRepeated || earlier.isEmpty || earlier == values else {
            let both = [earlier, values].map { "'\(printable($0.joined(separator: ",")))'" }
            throw usage("\(option.spelled) is given twice: \(both[0]) and \(both[1])", "give it once.")
        }
        line.options[option.name] = option.isRepeated ? earlier + values : values
    }

    /// Other tools take the next word whatever it is, and `-o --force` then writes to a file named "--force".
    private mutating func nextValue(of option: Option) throws -> String {
        if let next = words.first, next == "-" || !next.hasPrefix("-") {
            words.removeFirst()
            return next
        }
        let example = "--\(option.name)=\(option.placeholder ?? "")"
        throw usage(
            "\(option.spelled) needs a value",
            words.isEmpty ? nil : "a value that begins with '-' is given as '\(example)'.")
    }

    private func check(_ value: String, _ values: Values, for what: String) throws {
        let words: [String]
        switch values {
        case .anyText, .command: return
        case .text:
            if value.isEmpty { throw usage("\(what) must not be empty") }
            return
        case .tags:
            let tags = value.split(separator: ",", omittingEmptySubsequences: false)
            let hasEmpty = tags.contains { $0.allSatisfy { $0 == " " } }
            if hasEmpty { throw usage("\(what) must not hold an empty tag") }
            return
        case .file, .directory, .backup, .vault:
            if value.isEmpty { throw usage("\(what) must not be empty") }
            switch values {
            case .vault: return
            case .backup where VaultAddress(value) != nil: return
            default: return try LocalPath.check(value)
            }
        case .oneOf: words = [value]
        case .listOf: words = value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        guard let wrong = words.first(where: { !values.allowed.contains($0) }) else { return }
        let choices = "\(what) is one of: \(values.allowed.joined(separator: ", "))."
        throw usage(
            "\(what) cannot be '\(printable(wrong))'",
            [didYouMean(wrong, among: values.allowed), choices].compactMap(\.self).joined(separator: " "))
    }

    /// All the options that may stand here. Before the command's name, those of every command.
    private var known: [Option] {
        line.command.options + (line.path.isEmpty ? [.version] : []) + Option.everywhere
    }

    private func hintOnPlace(of name: String) -> String? {
        let isBelow =
            !line.command.subcommands.isEmpty
            && line.command.everyCommand().contains { $0.command.options.contains { $0.name == name } }
        return isBelow ? "options of a command stand after its name." : nil
    }

    private func hintOnFile(named cluster: Substring) -> String? {
        cluster.contains { "./".contains($0) } ? "the file is './-\(printable(String(cluster)))'." : nil
    }

    private func usage(_ message: String, _ hint: String? = nil) -> BackupError {
        let help = "see '\((["backup-tool"] + line.path).joined(separator: " ")) --help'"
        return BackupError(.usage, message, remedy: hint.map { "\($0) \(help.capitalizedFirst)" } ?? help)
    }
}

extension ParsedLine {
    /// The words that were given for one of the command's arguments. At most one argument takes several words;
    /// those before it and after it get one each, and optional ones are filled from the left.
    func words(of argument: Argument) -> [String] {
        let wanted = command.arguments
        var spare = arguments.count - wanted.filter(\.isRequired).count
        var index = 0
        for candidate in wanted {
            var count = candidate.isRequired ? 1 : 0
            if candidate.isMany {
                count += max(0, spare)
                spare = 0
            } else if !candidate.isRequired, spare > 0 {
                count += 1
                spare -= 1
            }
            let end = min(index + count, arguments.count)
            if candidate.name == argument.name { return Array(arguments[min(index, end)..<end]) }
            index = end
        }
        return []
    }
}

extension Command {
    /// What somebody may have meant who typed this in the place of a subcommand: one of a like name, or one of this name
    /// that stands below another command.
    func hint(for word: String) -> String? {
        let reader = Command.root.command(at: [word == "ls" ? "list" : word])
        let readsBackups = reader?.arguments.contains { if case .backup = $0.values { true } else { false } } == true
        if name == Command.vault.name, readsBackups, let reader {
            return "did you mean '\(reader.name) vault:V@latest'?"
        }
        let below = subcommands.filter { $0.command(at: [word]) != nil }.map { "\($0.name) \(word)" }
        return below.isEmpty ? didYouMean(word, among: subcommands.map(\.name)) : didYouMean(below)
    }
}

extension Option {
    /// Understood in place of a command.
    static let version = Option.flag("version", "Show the version")

    /// "-o/--output", as errors name it.
    var spelled: String {
        short.map { "-\($0)/--\(name)" } ?? "--\(name)"
    }
}

extension String {
    var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
