import Glibc

/// The settings of a configuration file. Which keys there are is said once, in `keys`.
public struct Configuration: Sendable {
    public enum Kind: Sendable, Equatable {
        /// Relative to the file's folder; `~/` is the home folder.
        case path
        case text
        case oneOf([String])
        case integer(ClosedRange<Int>)
        case number(ClosedRange<Double>)
        case boolean
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

    public static let keys: [Key] = [
        Key("store", .path, "the store to use when none is named"),
        Key("hub", .path, "the hub to sync with when none is named"),
        Key("state", .path, "the folder for what runs note; usually that of this file"),
        Key("user", .text, "the name that a hub knows you by"),
        Key(
            "export.format", .oneOf(["dir", "tar.zst", "tar.gz", "tar.xz", "tar", "zip", "imbib"]),
            "the format of an export whose name does not tell"),
        Key("export.level", .integer(1...19), "how hard to compress"),
        Key("export.oversize", .oneOf(["include", "skip", "fail"]), "what to do with assets too large to sync"),
        Key("export.verify", .boolean, "whether an export ends by reading back what it wrote"),
        Key("limits.max-entry-bytes", .integer(1...Int.max), "the largest single file accepted from a backup"),
        Key("limits.max-total-bytes", .integer(1...Int.max), "the most that a backup may unpack to"),
        Key("limits.max-entries", .integer(1...Int.max), "the most files accepted from a backup"),
        Key("limits.max-line-bytes", .integer(1...(1 << 30)), "the longest line accepted from an event log"),
        Key("limits.max-ratio", .number(1...1_000_000), "how many times its packed size a backup may unpack to"),
    ]

    /// The file that was read; nil when there is none, and then every setting is nil.
    public let file: String?
    private let values: [String: TOMLValue.Content]

    public static let empty = Configuration(file: nil, values: [:])

    private init(file: String?, values: [String: TOMLValue.Content]) {
        self.file = file
        self.values = values
    }

    // MARK: Settings

    public func text(_ name: String) -> String? {
        guard case .string(let text)? = values[name] else { return nil }
        return text
    }

    public func integer(_ name: String) -> Int? {
        guard case .integer(let number)? = values[name] else { return nil }
        return number
    }

    public func number(_ name: String) -> Double? {
        guard case .float(let number)? = values[name] else { return integer(name).map(Double.init) }
        return number
    }

    public func boolean(_ name: String) -> Bool? {
        guard case .boolean(let answer)? = values[name] else { return nil }
        return answer
    }
}

// MARK: - Reading

extension Configuration {
    /// Reads the file named by `explicit`, else the first that exists of the usual ones, else gives an empty
    /// configuration. `read` answers nil for a file that does not exist, and throws when one cannot be read.
    public static func load(
        explicit: String?, environment: Environment, read: (String) throws -> [UInt8]?
    ) throws -> Configuration {
        if let explicit {
            guard let bytes = try read(explicit) else {
                throw BackupError(.failed, "no such configuration file", at: explicit)
            }
            return try parse(bytes, file: explicit, environment: environment)
        }
        for path in environment.configurationFiles {
            if let bytes = try read(path) { return try parse(bytes, file: path, environment: environment) }
        }
        return .empty
    }

    public static func parse(_ bytes: [UInt8], file: String, environment: Environment) throws -> Configuration {
        var values: [String: TOMLValue.Content] = [:]
        try collect(try TOML.read(bytes, file: file), prefix: "", file: file) { name, value in
            values[name] = try check(value, of: name, file: file, environment: environment)
        }
        return Configuration(file: file, values: values)
    }

    private static func collect(
        _ table: TOMLTable, prefix: String, file: String, _ found: (String, TOMLValue) throws -> Void
    ) throws {
        for (key, value) in table.entries {
            let name = prefix + key
            if case .table(let inner) = value.content, keys.contains(where: { $0.name.hasPrefix(name + ".") }) {
                try collect(inner, prefix: name + ".", file: file, found)
            } else {
                try found(name, value)
            }
        }
    }

    private static func check(
        _ value: TOMLValue, of name: String, file: String, environment: Environment
    ) throws -> TOMLValue.Content {
        let place = "\(file):\(value.position.line)"
        guard let key = keys.first(where: { $0.name == name }) else {
            let sections = Set(keys.compactMap { $0.name.split(separator: ".").dropLast().first.map(String.init) })
            let near = didYouMean(name, among: keys.map(\.name) + sections.sorted())
            throw BackupError(
                .failed, "unknown key '\(printable(name))'", at: place,
                remedy: near ?? "known keys: \(keys.map(\.name).joined(separator: ", "))")
        }
        switch (key.kind, value.content) {
        case (.path, .string(let text)) where !text.isEmpty:
            return .string(try resolve(text, beside: file, environment))
        case (.text, .string): return value.content
        case (.oneOf(let allowed), .string(let text)):
            guard !allowed.contains(text) else { return value.content }
            throw BackupError(
                .failed, "\(name) cannot be '\(printable(text))'", at: place,
                remedy: didYouMean(text, among: allowed) ?? "one of: \(allowed.joined(separator: ", "))")
        case (.integer(let range), .integer(let number)) where range.contains(number): return value.content
        case (.number(let range), .float(let number)) where range.contains(number): return value.content
        case (.number(let range), .integer(let number)) where range.contains(Double(number)): return value.content
        case (.boolean, .boolean): return value.content
        default: throw BackupError(.failed, "\(name) must be \(key.kind.sentence)", at: place)
        }
    }

    private static func resolve(_ path: String, beside file: String, _ environment: Environment) throws -> String {
        if path.hasPrefix("/") { return path }
        if path.hasPrefix("~/") { return try environment.home() + path.dropFirst() }
        guard let slash = file.lastIndex(of: "/") else { return path }
        return file[...slash] + path
    }
}

extension Configuration.Kind {
    /// "a whole number from 1 to 19".
    var sentence: String {
        switch self {
        case .path: "a path in quotes"
        case .text: "text in quotes"
        case .oneOf(let allowed): "one of: \(allowed.map { "\"\($0)\"" }.joined(separator: ", "))"
        case .integer(let range) where range.upperBound == Int.max: "a whole number of at least \(range.lowerBound)"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .number(let range): "a number from \(Int(range.lowerBound)) to \(Int(range.upperBound))"
        case .boolean: "true or false"
        }
    }
}

// MARK: - Where things are

/// The environment variables of a run, and the places that the XDG base directory specification derives from them.
public struct Environment: Sendable {
    public let variables: [String: String]
    private let accountHome: @Sendable () -> String?

    /// `accountHome` is asked only when HOME is not set.
    public init(
        _ variables: [String: String],
        accountHome: @escaping @Sendable () -> String? = { homeOfThisAccount() }
    ) {
        self.variables = variables
        self.accountHome = accountHome
    }

    /// A variable that is set to nothing counts as not set.
    public subscript(name: String) -> String? {
        variables[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    public func home() throws -> String {
        if let home = self["HOME"] ?? accountHome() { return home }
        throw BackupError(
            .failed, "no home folder is known: HOME is not set and the account has none",
            remedy: "set HOME, or name the files with --store and --config")
    }

    /// In the order in which they are looked for; the first that exists is used alone.
    public var configurationFiles: [String] {
        let own = try? base("XDG_CONFIG_HOME", ".config") + "/backup-tool/config.toml"
        return [own, "/etc/backup-tool/config.toml"].compactMap(\.self)
    }

    /// The store of a run: `--store`, `$BACKUP_TOOL_STORE`, the configuration, the usual place.
    public func store(option: String?, configuration: Configuration) throws -> String {
        if let named = option ?? self["BACKUP_TOOL_STORE"] ?? configuration.text("store") { return named }
        return try base("XDG_DATA_HOME", ".local/share") + "/backup-tool/store.db"
    }

    /// Where runs note what they did: what the configuration says, else its own folder, else the usual place.
    public func stateFolder(_ configuration: Configuration) throws -> String {
        if let named = configuration.text("state") { return named }
        if let file = configuration.file { return parent(of: file) }
        return try base("XDG_STATE_HOME", ".local/state") + "/backup-tool"
    }

    /// "All paths set in these environment variables must be absolute. If an implementation encounters a relative
    /// path in any of these variables it should consider the path invalid and ignore it."
    private func base(_ variable: String, _ usual: String) throws -> String {
        if let path = self[variable], path.hasPrefix("/") { return path }
        return try home() + "/" + usual
    }
}

/// The home folder that the system's list of accounts gives for this user.
public func homeOfThisAccount() -> String? {
    var account = passwd()
    var found: UnsafeMutablePointer<passwd>?
    var buffer = [CChar](repeating: 0, count: 16384)
    return buffer.withUnsafeMutableBufferPointer { buffer in
        guard let space = buffer.baseAddress, getpwuid_r(getuid(), &account, space, buffer.count, &found) == 0,
            found != nil, let home = account.pw_dir
        else { return nil }
        let path = String(cString: home)
        return path.isEmpty ? nil : path
    }
}
