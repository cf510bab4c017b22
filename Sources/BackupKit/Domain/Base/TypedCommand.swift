/// Commands as people type them into a shell. In messages they stand in apostrophes: `'backup-tool undo'`.
public enum TypedCommand {
    /// `'backup-tool COMMAND …'` for a message. `command` is fixed text; arguments and values are escaped for the shell.
    public static func quoted(
        _ command: String, _ arguments: [String] = [], options: KeyValuePairs<String, String> = [:]
    ) -> String {
        let options = options.map { option($0.key, $0.value) }
        let arguments = arguments.map(word)
        let mustEndOptions = arguments.contains { $0.hasPrefix("-") }
        let words = mustEndOptions ? options + ["--"] + arguments : arguments + options
        return "'" + (["backup-tool", command] + words).joined(separator: " ") + "'"
    }

    /// `--name value`, or `--name=value` where the value would be taken for an option.
    public static func option(_ name: String, _ value: String) -> String {
        "--\(name)\(value.hasPrefix("-") ? "=" : " ")\(word(value))"
    }

    /// A word as the shell takes it: as it is, else with backslashes, for the command stands in apostrophes. What cannot be
    /// printed is written as `$'…'`, which bash, zsh and POSIX's newest sh know. So is a |, which a line for a monitor may
    /// not hold.
    public static func word(_ text: String) -> String {
        if text.isEmpty { return "\"\"" }
        func isUnprintable(_ scalar: Unicode.Scalar) -> Bool { scalar == "|" || BackupKit.isUnprintable(scalar) }
        let isPrintable = !text.unicodeScalars.contains(where: isUnprintable)
        let written = text.unicodeScalars.reduce(into: "") { written, scalar in
            if isPrintable {
                written += isPlain(scalar) ? "\(scalar)" : "\\\(scalar)"
            } else if isUnprintable(scalar) {
                written += scalar == "\n" ? "\\n" : "\(scalar)".utf8.map { "\\\(octal($0))" }.joined()
            } else {
                written += scalar == "'" || scalar == "\\" ? "\\\(scalar)" : "\(scalar)"
            }
        }
        return isPrintable ? written : "$'\(written)'"
    }

    /// The words of a command in a message, as they are written, and where the apostrophe stands that ends it; nil where
    /// there is none.
    public static func words(of text: Substring) -> (words: [String], end: Substring.Index)? {
        var words = [""]
        var (isEscaped, isQuoted) = (false, false)
        for index in text.unicodeScalars.indices {
            let scalar = text.unicodeScalars[index]
            if isEscaped {
                isEscaped = false
            } else if scalar == "\\" {
                isEscaped = true
            } else if scalar == "'" {
                let begins = words.last == "$"
                guard isQuoted || begins else { return (words.filter { !$0.isEmpty }, index) }
                isQuoted = begins
            } else if scalar == " ", !isQuoted {
                words.append("")
                continue
            }
            words[words.count - 1].unicodeScalars.append(scalar)
        }
        return nil
    }

    /// A message of ours whose commands say `BACKUP`, with the path of the one that is meant.
    static func naming(backup path: String, in text: String) -> String {
        let mark = " BACKUP"
        var (named, rest) = ("", text[...])
        while let place = rest.firstRange(of: mark) {
            let isWord = rest[place.upperBound...].first.map { $0 == " " || $0 == "'" } ?? false
            named += rest[..<place.lowerBound]
            named += isWord ? " " + word(path.hasPrefix("-") ? "./\(path)" : path) : mark
            rest = rest[place.upperBound...]
        }
        return named + rest
    }

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "+", "-", ".", "/", ":", "=", "@", "_", "%", ",": true
        default: !scalar.isASCII
        }
    }

    /// Three digits, so that one that follows is not taken for part of it.
    private static func octal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 8)
        return String(repeating: "0", count: 3 - digits.count) + digits
    }
}
