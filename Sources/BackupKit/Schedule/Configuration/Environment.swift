import Glibc

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
