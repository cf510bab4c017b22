import BackupKit

/// Commands in messages are written as `'backup-tool undo'`. Each one gets what this run was told by its options, so
/// that it reaches the same store, hub and vault when somebody types it as printed. `BACKUP` becomes this run's backup.
struct Advice: Sendable {
    /// The options that say where and with what; all others belong to one run.
    private static let carried = [
        Option.store.name, "hub", Option.vault.name, "profile", "config", "password-file", "password-command",
    ]

    private var options: [(name: String, value: String)] = []
    private var backup: String?

    init(_ line: ParsedLine) {
        for name in Self.carried {
            if let value = line.options[name]?.last { options.append((name, value)) }
        }
        let backups = line.command.arguments.filter { if case .backup = $0.values { true } else { false } }
        guard backups.count == 1, let word = line.words(of: backups[0]).first else { return }
        backup = word
        if let vault = VaultAddress(word), line.options[Option.vault.name] == nil {
            options.append((Option.vault.name, vault.path))
        }
    }

    func completed(_ text: String) -> String {
        let mark = "'backup-tool "
        var (done, rest) = ("", text[...])
        while let start = rest.firstRange(of: mark) {
            done += rest[..<start.upperBound]
            rest = rest[start.upperBound...]
            guard let end = rest.firstIndex(of: "'") else { break }
            done += completed(words: rest[..<end].split(separator: " ").map(String.init))
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
        for word in words {
            guard let next = command.command(at: [word]) else { break }
            command = next
        }
        guard command.run != nil, !words.contains("--help") else { return words.joined(separator: " ") }
        let known = Set((command.options + Option.everywhere).map(\.name))
        let isOfStore = !words.contains("--to")
        let missing = options.filter {
            known.contains($0.name) && !words.contains("--\($0.name)") && (isOfStore || $0.name != Option.store.name)
        }
        let named = words.map { $0 == "BACKUP" ? backup.map(Self.word) ?? $0 : $0 }
        return (named + missing.flatMap { ["--\($0.name)", Self.word($0.value)] }).joined(separator: " ")
    }

    private static func word(_ value: String) -> String { printable(Subprocess.escaped(value)) }
}
