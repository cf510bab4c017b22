import BackupKit
import Glibc

// How commands come to an open vault: its place and its password.

extension Option {
    static let vault = Option.value("vault", "PATH", "The vault to use", .vault)
    static let lockWait = Option.value(
        "lock-wait", "SECONDS", "Wait up to SECONDS for a locked vault")
    static let noLock = Option.flag("no-lock", "Do not lock the vault; for a read-only vault")

    /// What every command takes that reads a vault; a profile has its own vault and password.
    static let passwords: [Option] = [
        .value("password-file", "FILE", "Read the vault's password from this file", .file),
        .value("password-command", "COMMAND", "Run this shell command and use its output as the password"),
        profile,
    ]

    /// What every command takes that opens a vault.
    static let vaultAccess: [Option] = [.vault] + passwords

    static let newPasswords: [Option] = [
        .value("new-password-file", "FILE", "Read the new password from this file", .file),
        .value("new-password-command", "COMMAND", "Use the output of this shell command as the new password"),
    ]
}

extension Configuration {
    /// Throws where others could write the command that this user is to run.
    var passwordSource: PasswordSource? {
        get throws {
            if let path = text("password-file") { return .file(path) }
            guard let command = text("password-command") else { return nil }
            if let file, let place = try WriteAccess.whatOthersCanChange(of: file) {
                let what = place.isFolder ? "the folder" : "it"
                throw BackupError(
                    .denied,
                    place.isFolder
                        ? "others can write its folder \(place.path), and so replace the password-command"
                        : "others can change \(place.path), and so the password-command that it names", at: file,
                    remedy: place.isOwn
                        ? "run 'chmod go-w' on \(what)"
                        : "make \(what) your own with chown, and run 'chmod go-w'")
            }
            // What it names is found where the file is, as everything in the file.
            return .command(command, folder: file.map { parent(of: $0) })
        }
    }

    /// What would fail in the night: by the settings of one profile, or of all. `advice` completes the commands.
    /// `hasPassword`: whether the environment has one. `store`: which one runs use by these settings.
    func mistakesOfRuns(
        of profile: String?, hasVault: Bool, hasPassword: Bool, store: (Configuration) throws -> String,
        _ advice: Advice
    ) throws -> [BackupError] {
        let names = profile.map { [$0] } ?? [nil] + profiles
        return try names.reduce(into: []) { mistakes, name in
            let settings = try self.profile(name)
            var advice = advice
            if let name { advice.carry(Option.profile.name, name) }
            let found = [
                settings.mistake(in: Option.store.name) { try settings.checkStore() },
                // Profiles may name a store and a vault each.
                try name == nil && !profiles.isEmpty ? nil : settings.mistakeOfUsualStore(store(settings)),
                settings.mistake(in: Option.vault.name) { try settings.checkVault() },
                hasVault || name == nil && !profiles.isEmpty ? nil : settings.mistakeOfNoVault(),
                settings.mistake(in: Option.vault.name) { try settings.checkHasPassword(orElse: hasPassword) },
                settings.mistake(in: "password-file") { try settings.passwordSource?.check() },
                try settings.mistakeOfOpening(),
                settings.mistake(in: "password-command") { _ = try settings.passwordSource },
                settings.mistake(in: "keep.tag") { try settings.checkTagsToKeep(profile: name) },
                settings.mistake(in: "metrics.file") { try settings.checkPlaceOfMetrics() },
                settings.mistake(in: "state") { try settings.text("state").map(NightlySession.checkPlaceOfState) },
                settings.mistakeOfUsualState(),
            ]
            // What profiles inherit is said once.
            for mistake in found.compactMap(\.self)
            where !mistakes.contains(where: { $0.subject == mistake.subject && $0.message == mistake.message }) {
                mistakes.append(
                    BackupError(
                        mistake.code, mistake.message, at: mistake.subject,
                        remedy: mistake.remedy.map(advice.completed)))
            }
        }
    }

    private func mistakeOfNoVault() -> BackupError? {
        settingWithoutVault.flatMap { name in
            mistake(in: name) {
                throw BackupError(
                    .failed, "'\(name)' is for runs, and no vault is named for them",
                    remedy: "name the vault's folder with 'vault'")
            }
        }
    }

    private func mistakeOfUsualStore(_ path: String) -> BackupError? {
        guard let file, text("store") == nil, text("vault") != nil else { return nil }
        return Self.mistake(of: "\"\(path)\"", at: file) {
            guard try FileStatus.ofTarget(path) == nil else { return }
            throw BackupError(
                .notFound, "there is no store here; runs use this path because the file names no store",
                remedy: "name the library's store with 'store'")
        }
    }

    /// Where no state folder is named, the runs keep their state beside the file. Without a vault there are no runs.
    private func mistakeOfUsualState() -> BackupError? {
        guard let file, text("state") == nil, text("vault") != nil else { return nil }
        let folder = parent(of: file)
        return Self.mistake(of: "\"\(folder)\"", at: file) { try NightlySession.checkPlaceOfState(folder) }
    }

    private func checkHasPassword(orElse hasPassword: Bool) throws {
        if hasPassword || text("password-file") != nil || text("password-command") != nil { return }
        throw BackupError(
            .failed, "no run can open it: there is no password",
            remedy: "name a file that holds it with 'password-file'")
    }

    /// Where the password file holds that of another vault, that file is what is wrong; else the vault.
    private func mistakeOfOpening() throws -> BackupError? {
        guard let error = try errorOfOpening() else { return nil }
        guard error.code == .wrongPassword else { return mistake(in: Option.vault.name) { throw error } }
        return mistake(in: "password-file") {
            throw BackupError(
                .wrongPassword, "is not the password of the vault \(text("vault") ?? "")", remedy: error.remedy)
        }
    }

    /// Throws what would end every run: a place for metrics or a state folder that is of no use.
    func checkPlacesOfRuns(state folder: String) throws {
        try checkPlaceOfMetrics()
        do { try NightlySession.checkPlaceOfState(folder) } catch let error as BackupError {
            throw BackupError(error.code, error.message, at: folder, remedy: error.remedy)
        }
    }

    private func checkPlaceOfMetrics() throws {
        guard let path = text("metrics.file") else { return }
        let place = try OutputPlace.behindLinks(path)
        if try FileStatus.ofTarget(parent(of: place))?.isDirectory == true { return try Metrics.checkPlace(place) }
        throw BackupError(
            .failed, "there is no such folder", remedy: "make the folder, or change 'metrics.file'")
    }

    /// What `check` has to say of a setting that is there, with its line.
    private func mistake(in key: String, _ check: () throws -> Void) -> BackupError? {
        guard let file, let setting = effective.first(where: { $0.key == key }) else { return nil }
        return Self.mistake(of: setting.value, at: "\(file):\(setting.line)", check)
    }

    private static func mistake(of value: String, at place: String, _ check: () throws -> Void) -> BackupError? {
        do {
            try check()
            return nil
        } catch {
            let error = error as? BackupError ?? BackupError(.failed, "\(error)")
            return BackupError(error.code, "\(value): \(error.message)", at: place, remedy: error.remedy)
        }
    }
}

extension Invocation {
    static let vaultDiscussion = """
        'backup-tool vault --help' says where the vault and its password come from.
        """

    /// `--vault`, or what the environment says.
    private func namedVault() throws -> String? {
        let option = isDeclared(Option.vault.name) ? value(Option.vault.name) : nil
        if let named = option ?? environment["BACKUP_TOOL_VAULT"] { return named }
        if try meansConfiguration() { return nil }
        if let named = environment["RESTIC_REPOSITORY"] { return named }
        return try environment["RESTIC_REPOSITORY_FILE"].map { try PasswordSource.repository(in: $0) }
    }

    /// The vault that is named, else that of the configuration; nil where there is none.
    func usualVault() throws -> String? {
        if let named = try namedVault() { return try vaultFolder(named) }
        return try configuration().text("vault")
    }

    /// Whether a command would find a vault that neither it nor the configuration names.
    var hasVaultInEnvironment: Bool {
        ["BACKUP_TOOL_VAULT", "RESTIC_REPOSITORY", "RESTIC_REPOSITORY_FILE"].contains { environment[$0] != nil }
    }

    /// The same for a command that needs one.
    func vaultPath() throws -> String {
        guard let path = try usualVault() else {
            let settings = try configuration()
            if let file = settings.file, let profile = settings.profiles.first {
                throw BackupError(
                    .usage, "names a vault in its profiles only", at: file,
                    remedy: "name one, such as with --profile \(profile)")
            }
            throw usage("no vault is named: give --vault, or set BACKUP_TOOL_VAULT")
        }
        return path
    }

    /// Whoever names a configuration means its vault, whatever restic is used for.
    private func meansConfiguration() throws -> Bool {
        try value("config") != nil && configuration().text("vault") != nil
    }

    /// The folder that a vault's name stands for.
    func vaultFolder(_ named: String) throws -> String {
        if let address = VaultAddress(named) {
            guard let word = address.word else { return address.path }
            throw usage("a vault is meant, not one of its snapshots: leave out '@\(printable(word))'")
        }
        if named.hasPrefix("local:") { return String(named.dropFirst("local:".count)) }
        // "s3:…" as a folder would become an empty vault beside the real one.
        if LocalPath.scheme(of: named) != nil {
            throw BackupError(
                .usage, "vaults of this kind are not supported yet", at: Address.withoutPassword(named),
                remedy: "name a folder")
        }
        return named
    }

    func openVault() throws -> Vault {
        let backend = try FolderBackend(try vaultPath())
        let vault = try Vault.open(backend, password: try vaultPassword(from: passwordSource()))
        say(vault.findings)
        return vault
    }

    /// What a command does with a vault, and so which lock it needs.
    enum VaultUse {
        case reading, adding, removing
    }

    /// Runs `body` with the vault, locked as its use demands.
    func withVault<Result>(
        _ use: VaultUse = .reading, unlocked: ((BackupError) -> Void)? = nil, _ body: (Vault) throws -> Result
    ) throws -> Result {
        let vault = try openVault()
        guard use == .reading else {
            return try vault.locked(exclusively: use == .removing, wait: try lockWait(), body)
        }
        if isDeclared(Option.noLock.name), flag(Option.noLock.name) { return try body(vault) }
        return try vault.reading(
            wait: try lockWait(),
            unlocked: unlocked ?? {
                output.warn("could not lock the vault (\($0.message)). Do not prune the vault while this command runs.")
            }, body)
    }

    func lockWait() throws -> Double {
        guard isDeclared(Option.lockWait.name) else { return 0 }
        return Double(try integer(Option.lockWait.name) ?? 0)
    }

    /// What the command line or the environment says of the password; `configured` is that of the vault's own configuration.
    func namedPassword(configured: @autoclosure () throws -> PasswordSource?) throws -> PasswordSource? {
        try PasswordSource.find(
            file: value("password-file"), command: value("password-command"), configured: configured(),
            variable: { environment[$0] })
    }

    /// Where the password comes from, unless it is asked for. The configuration's is no other vault's.
    func passwordSource() throws -> PasswordSource? {
        guard let named = try namedVault() else {
            return try namedPassword(configured: configuration().passwordSource)
        }
        return try passwordSource(of: vaultFolder(named))
    }

    /// The same for a vault that is named by its path.
    func passwordSource(of path: String) throws -> PasswordSource? {
        // A configuration that nobody has named must not keep anybody from a vault of restic's.
        let isNamed = try value("config") != nil || resticPassword() == nil
        return try namedPassword(
            configured: isNamed ? configuredPassword(of: path) : (try? configuredPassword(of: path)) ?? nil)
    }

    private func resticPassword() throws -> PasswordSource? {
        try PasswordSource.find(file: nil, command: nil) { $0.hasPrefix("RESTIC_") ? environment[$0] : nil }
    }

    /// The configuration's password is for its own vault.
    private func configuredPassword(of path: String) throws -> PasswordSource? {
        let settings = try configuration()
        guard let own = try settings.text("vault").flatMap({ try FileStatus.ofTarget($0) }),
            let named = try FileStatus.ofTarget(path)
        else { return nil }
        return try own.isSame(as: named) ? settings.passwordSource : nil
    }

    func vaultPassword(from source: PasswordSource?) throws -> [UInt8] {
        try source?.read() ?? askPassword("Password of the vault: ")
    }

    /// A new password; asked for twice where it is asked for.
    func newPassword(_ file: String = "new-password-file", _ command: String = "new-password-command") throws
        -> [UInt8]
    {
        if let path = value(file) {
            if value(command) != nil { throw usage("--\(file) and --\(command) exclude each other") }
            return try PasswordSource.file(path).read()
        }
        if let line = value(command) { return try PasswordSource.command(line).read() }
        let first = try askPassword("New password: ", "give --\(file)")
        try KeyRing.check(newPassword: first)
        guard try first == askPassword("The same again: ") else { throw usage("the two passwords differ") }
        return first
    }

    private func askPassword(
        _ prompt: String, _ remedy: String = "give --password-file, or set BACKUP_TOOL_PASSWORD_FILE"
    ) throws -> [UInt8] {
        let terminal = isatty(STDIN_FILENO) == 1 ? open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY) : -1
        guard terminal >= 0 else {
            throw BackupError(
                .wrongPassword,
                "no \(prompt.hasPrefix("New") ? "new " : "")password is given, and there is no terminal to ask on",
                remedy: remedy)
        }
        let file = FileHandle(owning: terminal, path: "/dev/tty")
        var before = termios()
        tcgetattr(terminal, &before)
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        tcsetattr(terminal, TCSAFLUSH, &silent)
        defer { tcsetattr(terminal, TCSAFLUSH, &before) }
        try file.write(prompt)
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while true {
            let count = read(terminal, &byte, 1)
            if count < 0, errno == EINTR { try Interrupt.check(); continue }
            if count <= 0 || byte == 0x0A { break }
            line.append(byte)
        }
        try file.write("\n")
        return line
    }
}
