import BackupKit

/// Commands in messages are written as `'backup-tool undo'`. Each one gets what this run was told by its options, so
/// that it reaches the same store, hub and vault when somebody types it as printed. `BACKUP` becomes this run's backup.
struct Advice: Sendable {
    /// The options that say where and with what; all others belong to one run.
    private static let carried =
        [Option.store.name, "hub", Option.vault.name, "profile", "config"] + passwords + [Option.maxUnused.name]
    /// One of them says all that a command needs.
    private static let passwords = ["password-file", "password-command"]

    /// The options that a repetition of this very command needs as well: those of every command, and of some.
    private static let repeated = ["create", "mode", Option.only.name, "match", "schema"]
    private static let repeatedToo = [
        "restore": ["sync-policy", "resurrect", "allow-damage", "to", "force"], "import": ["attachments"],
        "sync": [Option.user.name, "allow-network"], "vault backup": ["tag", "host"],
    ]
    /// What goes with `restore --to`, which writes all files and knows no store.
    private static let beside: Set = ["to", "force", "allow-damage"]
    /// Two names for one choice.
    private static let policies: Set = ["sync-policy", "resurrect"]
    /// Advice that says itself what is chosen is not narrowed or widened.
    private static let choosing: Set = ["mode", Option.only.name, "match"]

    private struct Carried {
        let name: String
        let value: String
        /// Of the configuration's profile: a command that knows `--profile` finds it there.
        let isOfProfile: Bool
    }

    private var options: [Carried] = []
    private var backup: String?
    /// What this import was given, for an advice to import it otherwise.
    private var imported: [String] = []
    /// The vaults that the words of this run name by their addresses.
    private let vaults: [String]
    private let path: [String]
    private let repetition: [(name: String, words: [String])]

    init(_ line: ParsedLine) {
        path = line.path
        let names = Self.repeated + (Self.repeatedToo[path.joined(separator: " ")] ?? [])
        repetition = names.compactMap { name in
            line.options[name].map { values in
                (name, values.isEmpty ? ["--\(name)"] : values.map { TypedCommand.option(name, $0) })
            }
        }
        func isBackup(_ values: Values) -> Bool { if case .backup = values { true } else { false } }
        let backups = line.command.arguments.filter { isBackup($0.values) }.flatMap { line.words(of: $0) }
        let others = line.command.options.filter { isBackup($0.values) }.flatMap { line.options[$0.name] ?? [] }
        vaults = Set((backups + others).compactMap { VaultAddress($0)?.path }).sorted()
        for name in Self.carried {
            if let value = line.options[name]?.last { carry(name, value) }
        }
        if path.last == "import" { imported = line.arguments }
        if backups.count == 1 { backup = backups[0] }
        if vaults.count == 1, line.options[Option.vault.name] == nil { carry(Option.vault.name, vaults[0]) }
    }

    /// The same for an error about `subject`: what that says of a vault is said of the one that it lies in.
    func about(_ subject: String?) -> Advice {
        guard let subject, let vault = vaults.first(where: { "\(subject)/".hasPrefix("\($0)/") }) else { return self }
        var other = self
        other.carry(Option.vault.name, vault)
        return other
    }

    /// Adds an option to the commands of this run, or gives it another value.
    mutating func carry(_ name: String, _ value: String, isOfProfile: Bool = false) {
        let new = Carried(name: name, value: value, isOfProfile: isOfProfile)
        if let index = options.firstIndex(where: { $0.name == name }) {
            options[index] = new
        } else {
            options.append(new)
        }
    }

    /// The same for another vault than that of this run.
    func forVault(_ path: String, passwordFile: String?, passwordCommand: String?) -> Advice {
        var other = self
        other.options.removeAll { (Self.passwords + [Option.vault.name, Option.profile.name]).contains($0.name) }
        other.carry(Option.vault.name, path)
        if let passwordFile { other.carry(Self.passwords[0], passwordFile) }
        if let passwordCommand { other.carry(Self.passwords[1], passwordCommand) }
        return other
    }

    /// Completes the remedy of an error of `body`.
    func completing<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch let error as BackupError {
            throw BackupError(error.code, error.message, at: error.subject, remedy: error.remedy.map(completed))
        }
    }

    func completed(_ finding: Finding) -> Finding {
        Finding(
            finding.code, finding.severity, finding.subject, completed(finding.message),
            remedy: finding.remedy.map(completed))
    }

    func completed(_ text: String) -> String {
        let mark = "'backup-tool "
        var (done, rest) = ("", text[...])
        while let start = rest.firstRange(of: mark) {
            done += rest[..<start.upperBound]
            rest = rest[start.upperBound...]
            guard let (words, end) = TypedCommand.words(of: rest) else { break }
            done += completed(words: words)
            rest = rest[end...]
        }
        return done + rest
    }

    /// A value that is JSON, with every remedy and message in it completed.
    func completed(_ value: JSONValue) -> JSONValue {
        if let members = value.members {
            return .object(
                members.map {
                    guard ["remedy", "message"].contains($0.key), let text = $0.value.string else {
                        return .init($0.key, completed($0.value))
                    }
                    return .init($0.key, .string(completed(text)))
                })
        }
        return value.array.map { .array($0.map { completed($0) }) } ?? value
    }

    private func completed(words: [String]) -> String {
        var command = Command.root
        var path: [String] = []
        for word in words {
            guard let next = command.command(at: [word]) else { break }
            command = next
            path.append(word)
        }
        guard command.run != nil, !words.contains("--help") else { return words.joined(separator: " ") }
        let known = Set((command.options + Option.everywhere).map(\.name))
        let isOfStore = !words.contains("--to")
        func names(_ option: String) -> Bool {
            words.contains { $0 == "--\(option)" || $0.hasPrefix("--\(option)=") }
        }
        let given = [Self.choosing, Self.policies].filter { $0.contains(where: names) }.joined()
        // Another command that knows it makes the store as well; a restore in place of an import takes no more than that.
        let isInPlace = self.path == ["import"] && path == ["restore"]
        let again = repetition.filter {
            let isOfBoth = $0.name == "create" || isInPlace && [Option.only.name, "schema"].contains($0.name)
            return (path == self.path || isOfBoth && known.contains($0.name)) && !names($0.name)
                && !given.contains($0.name)
                && (isOfStore || Self.beside.contains($0.name))
        }
        let missing = options.filter { option in
            let isPassword = Self.passwords.contains(option.name)
            let isThere = isPassword ? Self.passwords.contains(where: names) : names(option.name)
            let isInProfile = option.isOfProfile && known.contains(Option.profile.name)
            return known.contains(option.name) && !isThere && !isInProfile
                && (isOfStore || option.name != Option.store.name)
        }
        var named = words.flatMap { word in
            switch word {
            case "BACKUP": [backup.map(Self.argument) ?? word]
            case "PATH" where path.last == "import" && !imported.isEmpty: imported.map(Self.argument)
            default: [word]
            }
        }
        named.insert(
            contentsOf: again.flatMap(\.words) + missing.map { TypedCommand.option($0.name, $0.value) },
            at: named.firstIndex(of: "--") ?? named.endIndex)
        return named.joined(separator: " ")
    }

    /// A path that is not taken for an option.
    private static func argument(_ path: String) -> String {
        TypedCommand.word(path.hasPrefix("-") ? "./\(path)" : path)
    }
}
