/// The settings of a configuration file. Which keys there are is said once, in `keys`.
public struct Configuration: Sendable {
    public enum Kind: Sendable, Equatable {
        /// Relative to the file's folder; `~/` is the home folder.
        case path
        case text
        /// Of the shell, which may hold a secret.
        case command
        /// One text, or a list of them.
        case texts
        /// Tags of snapshots, but for those that runs give by themselves.
        case tags
        case oneOf([String])
        case integer(ClosedRange<Int>)
        case number(ClosedRange<Double>)
        case boolean
        /// How many snapshots: a number or "unlimited".
        case count
        /// `1y6m`, `14d`, `36h`
        case span
        /// The same, or "never".
        case interval
        /// What separates groups of snapshots.
        case grouping
        /// An address of the web.
        case url
    }

    public struct Key: Sendable {
        /// With dots, as in an error: "export.format".
        public let name: String
        public let kind: Kind
        public let help: String

        public init(_ name: String, _ kind: Kind, _ help: String) {
            self.name = name
            self.kind = kind
            self.help = help
        }
    }

    /// What was set, and where.
    struct Setting: Sendable {
        let content: TOMLValue.Content
        let line: Int
    }

    /// The file that was read; nil when there is none, and then every setting is nil.
    public let file: String?
    /// The names of the profiles, in the order in which they were written.
    public let profiles: [String]
    private let values: [String: Setting]
    private let ofProfiles: [String: [String: Setting]]

    public static let empty = Configuration(file: nil, values: [:])

    init(
        file: String?, values: [String: Setting], profiles: [String] = [],
        ofProfiles: [String: [String: Setting]] = [:]
    ) {
        (self.file, self.values, self.profiles, self.ofProfiles) = (file, values, profiles, ofProfiles)
    }

    /// The settings as they are for one profile: its own, and those of the file for the rest. Nil is no profile.
    public func profile(_ name: String?) throws -> Configuration {
        guard let name else { return self }
        guard let own = ofProfiles[name] else {
            throw BackupError(
                .usage, "there is no profile '\(printable(name))'", at: file,
                remedy: didYouMean(name, among: profiles)
                    ?? (profiles.isEmpty ? "it has no profiles" : "its profiles: \(profiles.joined(separator: ", "))"))
        }
        // Two ways to say one thing: the profile's is the one that counts.
        let passwords = ["password-file", "password-command"]
        let isOwn = passwords.contains { own[$0] != nil }
        let rest = values.filter { !isOwn || !passwords.contains($0.key) }
        return Configuration(file: file, values: rest.merging(own) { $1 })
    }

    /// The tag by which runs without a profile know their snapshots; those of a profile go by its name.
    public static let nightly = "nightly"

    /// Words that stand for a run without a profile: in the name of its state, in metrics, as the tag of its snapshots.
    static let reservedNames = ["default", nightly]

    /// Letters, digits, `-` and `_`: a profile's name becomes the name of files and units.
    public static func isProfileName(_ name: String) -> Bool {
        1...64 ~= name.utf8.count && !reservedNames.contains(name) && !name.hasPrefix("-")
            && name.utf8.allSatisfy { byte in
                48...57 ~= byte || 65...90 ~= byte || 97...122 ~= byte || byte == 0x2D || byte == 0x5F
            }
    }

    // MARK: Settings

    public func text(_ name: String) -> String? {
        guard case .string(let text)? = values[name]?.content else { return nil }
        return text
    }

    public func texts(_ name: String) -> [String] {
        guard case .array(let list)? = values[name]?.content else { return text(name).map { [$0] } ?? [] }
        return list.compactMap { if case .string(let text) = $0.content { text } else { nil } }
    }

    public func integer(_ name: String) -> Int? {
        guard case .integer(let number)? = values[name]?.content else { return nil }
        return number
    }

    public func number(_ name: String) -> Double? {
        guard case .float(let number)? = values[name]?.content else { return integer(name).map(Double.init) }
        return number
    }

    public func boolean(_ name: String) -> Bool? {
        guard case .boolean(let answer)? = values[name]?.content else { return nil }
        return answer
    }

    /// The rules of `keep`.
    public func retentionPolicy() throws -> RetentionPolicy {
        var policy = RetentionPolicy()
        for name in RetentionPolicy.names {
            let written = integer("keep.\(name)").map { [String($0)] } ?? texts("keep.\(name)")
            for text in written { try policy.set(name, text) }
        }
        return policy
    }

    /// Every setting that somebody made, in the order of `keys`, with its value as it would be written, but for secrets, and
    /// its line.
    public var effective: [(key: String, value: String, line: Int)] {
        Self.keys.compactMap { key in values[key.name].map { (key.name, Self.shown($0.content, of: key), $0.line) } }
    }

    private static func shown(_ content: TOMLValue.Content, of key: Key) -> String {
        switch (key.kind, content) {
        case (.command, _): "(not shown)"
        case (.url, .string(let address)): TOMLValue.Content.string(Address.host(address)).shown
        default: content.shown
        }
    }
}

extension TOMLValue.Content {
    fileprivate var shown: String {
        switch self {
        case .string(let text): "\"\(printable(text))\""
        case .integer(let number): String(number)
        case .float(let number): String(number)
        case .boolean(let answer): String(answer)
        case .date(let text): text
        case .array(let values): "[\(values.map(\.content.shown).joined(separator: ", "))]"
        case .table: "{ … }"
        }
    }
}
