import BackupKit

/// A command's manual page in roff with the macros of man(7), made from its declaration.
struct ManPage {
    private let command: Command
    private let path: [String]
    private let root: Command

    init(_ command: Command, path: [String], root: Command = .root) {
        self.command = command
        self.path = path
        self.root = root
    }

    /// "backup-tool-store-init", as `man` is asked for it.
    var name: String { Self.name(path) }
    /// "backup-tool-store-init.1"
    var fileName: String { name + ".1" }

    private static func name(_ path: [String]) -> String {
        (["backup-tool"] + path).joined(separator: "-")
    }

    var text: String {
        // No date: the same sources give the same page.
        let release = argument("backup-tool " + Tool.version)
        var lines = [".TH \(argument(name.uppercased())) 1 \"\" \(release) \"User Commands\""]
        lines += [".SH NAME", "\(escape(name)) \\- \(escape(command.summary))"]
        // No hyphenation and no filling to the right margin, as nobody copies "backup-\ntool" with success.
        lines += [".SH SYNOPSIS", ".nh", ".ad l", escape(command.usage(path: path)), ".ad b", ".hy"]
        lines += [".SH DESCRIPTION"] + description
        let below = command.subcommands.map { (bold(Self.name(path + [$0.name])) + "(1)", $0.summary + ".") }
        lines += entries("COMMANDS", below)
        lines += entries("ARGUMENTS", command.arguments.map { (italic($0.name), $0.helpText) })
        lines += entries("OPTIONS", command.options.map(optionEntry))
        let global = Option.everywhere + (path.isEmpty ? [Option.version] : [])
        lines += entries(path.isEmpty ? "OPTIONS" : "OPTIONS OF EVERY COMMAND", global.map(optionEntry))
        lines += examples
        lines += entries("EXIT STATUS", ExitStatus.meanings.map { (bold(String($0.status.code)), $0.meaning + ".") })
        if path.isEmpty { lines += environment + files }
        lines += seeAlso
        return lines.joined(separator: "\n") + "\n"
    }

    // MARK: Sections

    private var description: [String] {
        let all = command.discussion.isEmpty ? [command.summary + "."] : paragraphs(command.discussion)
        return all.enumerated().flatMap { index, text in (index > 0 ? [".PP"] : []) + [escape(text)] }
    }

    private func optionEntry(_ option: Option) -> (String, String) {
        let value = option.placeholder.map { " " + italic($0) } ?? ""
        let short = option.short.map { bold("-\($0)") + ", " } ?? ""
        return (short + bold("--\(option.name)") + value, option.helpText)
    }

    /// A section of tagged paragraphs. The names are roff already, the texts are not.
    private func entries(_ title: String, _ entries: [(name: String, text: String)]) -> [String] {
        guard !entries.isEmpty else { return [] }
        return [".SH \(argument(title))"] + entries.flatMap { [".TP", $0.name, escape($0.text)] }
    }

    private var examples: [String] {
        guard !command.examples.isEmpty else { return [] }
        let entries = command.examples.map { example in
            [".PP", escape(example.meaning + ":"), ".PP", ".RS 4", ".nf", escape(example.line), ".fi", ".RE"]
        }
        return [".SH EXAMPLES"] + entries.joined()
    }

    private var environment: [String] {
        entries(
            "ENVIRONMENT",
            [
                (bold("BACKUP_TOOL_STORE"), "The store to use where --store is not given."),
                (bold("XDG_CONFIG_HOME"), "The folder of the configuration, instead of ~/.config."),
                (bold("XDG_DATA_HOME"), "The folder of the usual store, instead of ~/.local/share."),
                (bold("NO_COLOR"), "When set to anything, no colors are used."),
            ])
    }

    private var files: [String] {
        entries(
            "FILES",
            [
                (italic("~/.config/backup-tool/config.toml"), "The configuration; the first of these two that exists."),
                (italic("/etc/backup-tool/config.toml"), "The configuration for everybody on this machine."),
                (italic("~/.local/share/backup-tool/store.db"), "The store that is used when none is named."),
            ])
            + [".PP", "Keys of the configuration:"]
            + Configuration.keys.flatMap { [".TP", bold($0.name), escape($0.help.capitalizedFirst + ".")] }
    }

    private var seeAlso: [String] {
        guard !path.isEmpty else { return [] }
        let others = path.count == 1 ? [[]] : [[], Array(path.dropLast())]
        return [".SH SEE ALSO", others.map { bold(Self.name($0)) + "(1)" }.joined(separator: ",\n")]
    }

    // MARK: Roff

    private func bold(_ text: String) -> String { "\\fB\(escape(text))\\fR" }
    private func italic(_ text: String) -> String { "\\fI\(escape(text))\\fR" }
    private func argument(_ text: String) -> String { "\"" + escape(text) + "\"" }

    /// Text as it is: no control lines, no escapes, and the ASCII characters that roff would set as others (so that
    /// what is copied from a page works in a shell).
    private func escape(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": out += "\\(rs"
            case "-": out += "\\-"
            case "'": out += "\\(aq"
            case "`": out += "\\(ga"
            case "^": out += "\\(ha"
            case "~": out += "\\(ti"
            case "\"": out += "\\(dq"
            case ".": out += out.isEmpty || out.hasSuffix("\n") ? "\\&." : "."
            case _ where scalar.value >= 0x80: out += "\\[u\(padHex(scalar.value))]"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }

    private func padHex(_ value: UInt32) -> String {
        let digits = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
    }
}
