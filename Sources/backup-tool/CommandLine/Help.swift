import BackupKit

/// What `--help` shows of a command, made from its declaration.
struct Help {
    private let command: Command
    private let path: [String]
    private let style: Style
    private let columns: Int

    init(_ command: Command, path: [String], stream: Stream) {
        self.init(command, path: path, style: stream.style, columns: stream.textColumns)
    }

    init(_ command: Command, path: [String], style: Style, columns: Int) {
        self.command = command
        self.path = path
        self.style = style
        self.columns = columns
    }

    private var name: String { (["backup-tool"] + path).joined(separator: " ") }

    /// Everything there is to know.
    func full() -> String {
        var sections = [wrap(command.summary + "."), usage]
        if !command.discussion.isEmpty { sections += paragraphs(command.discussion).map { wrap($0) } }
        if !command.subcommands.isEmpty { sections += commandList }
        sections += [section("Arguments", command.arguments.map { ($0.name, $0.helpText) })]
        sections += [section("Options", command.options.map(optionEntry))]
        let global = Option.everywhere + (path.isEmpty ? [Option.version] : [])
        sections += [section(path.isEmpty ? "Options" : "Options of every command", global.map(optionEntry))]
        sections += [examples]
        sections += [path.isEmpty ? exitCodes : "Exit codes: see 'backup-tool --help'."]
        return sections.filter { !$0.isEmpty }.joined(separator: "\n\n") + "\n"
    }

    /// For somebody who named no command.
    func short() -> String {
        ([usage] + commandList + [wrap("See '\(name) --help', or '\(name) COMMAND --help' for one command.")])
            .joined(separator: "\n\n")
    }

    // MARK: Sections

    var usage: String { style.bold("Usage:") + " " + command.usage(path: path) }

    private var commandList: [String] {
        guard path.isEmpty else {
            return [section("Commands", command.subcommands.map { ($0.name, $0.summary) })]
        }
        // One column for all groups, so that the eye can run down it.
        let width = command.subcommands.map(\.name.utf8.count).max() ?? 0
        return Command.Group.allCases.map { group in
            let members = command.subcommands.filter { $0.group == group }
            return section(group.rawValue, members.map { (padded($0.name, to: width), $0.summary) })
        }.filter { !$0.isEmpty }
    }

    private func optionEntry(_ option: Option) -> (String, String) {
        let short = option.short.map { "-\($0), " } ?? "    "
        let value = option.placeholder.map { " \($0)" } ?? ""
        return ("\(short)--\(option.name)\(value)", option.helpText)
    }

    private var examples: String {
        guard !command.examples.isEmpty else { return "" }
        let lines = command.examples.map { "  \($0.line)\n" + wrap($0.meaning + ".", indent: 6) }
        return style.bold("Examples:") + "\n" + lines.joined(separator: "\n")
    }

    private var exitCodes: String {
        let entries = ExitStatus.meanings.map { (padded(String($0.status.code), to: 3, right: true), $0.meaning) }
        return section("Exit codes", entries)
    }

    /// A heading, and under it entries with their help in a column of its own.
    private func section(_ title: String, _ entries: [(name: String, help: String)]) -> String {
        guard !entries.isEmpty else { return "" }
        let longest = entries.map { displayWidth($0.name) }.max() ?? 0
        // Help that would start too far to the right starts on the next line.
        let column = min(longest, columns / 2 - 10) + 4
        let lines = entries.map { name, help in
            let text = wrap(help, indent: column)
            let start = "  " + name
            guard displayWidth(start) + 2 <= column else { return start + "\n" + text }
            return padded(start, to: column) + text.dropFirst(column)
        }
        return style.bold(title + ":") + "\n" + lines.joined(separator: "\n")
    }

    // MARK: Lines

    private func wrap(_ text: String, indent: Int = 0) -> String {
        wrapped(text, columns: columns, indent: indent)
    }
}

func paragraphs(_ text: String) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false)
        .split { $0.allSatisfy(\.isWhitespace) }
        .map { $0.joined(separator: " ") }
}

/// Filled lines of at most `columns` columns, each after `indent` spaces. A longer word gets its own line.
func wrapped(_ text: String, columns: Int, indent: Int) -> String {
    let space = String(repeating: " ", count: indent)
    var lines: [String] = []
    var line = ""
    var width = 0
    for word in text.split(whereSeparator: \.isWhitespace) {
        let length = displayWidth(String(word))
        if !line.isEmpty, indent + width + 1 + length > columns {
            lines.append(space + line)
            line = ""
            width = 0
        }
        line += line.isEmpty ? String(word) : " " + word
        width += line.count == word.count ? length : length + 1
    }
    return (lines + (line.isEmpty ? [] : [space + line])).joined(separator: "\n")
}

extension Command {
    /// "backup-tool export [OPTIONS] -o PATH PATH..."
    func usage(path: [String]) -> String {
        var words = ["backup-tool"] + path
        if run == nil { return (words + ["COMMAND", "[OPTIONS]", "[ARGUMENTS]"]).joined(separator: " ") }
        words.append("[OPTIONS]")
        for option in options where option.isRequired {
            words.append((option.short.map { "-\($0)" } ?? "--\(option.name)") + " " + (option.placeholder ?? ""))
        }
        return (words + arguments.map(\.usage)).joined(separator: " ")
    }
}

extension Option {
    /// The help with the values it may have.
    var helpText: String { sentence(help, values) + (isRepeated ? " May be given several times." : "") }
}

extension Argument {
    var helpText: String { sentence(help, values) }
}

private func sentence(_ help: String, _ values: Values) -> String {
    let words = values.allowed.joined(separator: ", ")
    return switch values {
    case .oneOf: "\(help): \(words)."
    case .listOf: "\(help), separated by commas: \(words)."
    case .text, .anyText, .tags, .file, .directory, .backup, .vault, .command: help + "."
    }
}
