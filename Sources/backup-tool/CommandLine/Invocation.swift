import BackupKit

/// One run of a command: what was asked, and where to say what came of it.
struct Invocation: Sendable {
    let line: ParsedLine
    let environment: Environment
    let output: Output
    /// Damaged rows that the stores of this run left out.
    let damage = DamageLog()

    /// The store that this run is about.
    func store(_ access: Store.Access) throws -> Store { watched(try Store(try storePath(), access)) }

    /// Whatever is damaged in the store is named at the end of the run.
    func watched(_ store: Store) -> Store {
        store.damage = damage
        return store
    }

    // MARK: Options

    func flag(_ name: String) -> Bool {
        assert(isDeclared(name), "no option --\(name) is declared")
        return line.options[name] != nil
    }

    func value(_ name: String) -> String? {
        values(name).last
    }

    /// Every value of a repeated option, and of one that takes a list.
    func values(_ name: String) -> [String] {
        assert(isDeclared(name), "no option --\(name) is declared")
        return line.options[name] ?? []
    }

    func integer(_ name: String, in range: ClosedRange<Int> = 0...Int.max) throws -> Int? {
        guard let text = value(name) else { return nil }
        if let number = Int(text), range.contains(number) { return number }
        let least = range.lowerBound
        let wanted = range.upperBound == Int.max ? "of at least \(least)" : "from \(least) to \(range.upperBound)"
        throw usage("--\(name) must be a whole number \(wanted), not '\(printable(text))'")
    }

    // MARK: Arguments

    /// All of them, in order.
    var arguments: [String] { line.arguments }

    /// The words given for one argument: none, one or many, as declared.
    func arguments(_ name: String) -> [String] {
        guard let argument = line.command.arguments.first(where: { $0.name == name }) else {
            assertionFailure("no argument \(name) is declared")
            return []
        }
        return line.words(of: argument)
    }

    /// The word given for a required argument.
    func argument(_ name: String) throws -> String {
        guard let word = arguments(name).first else { throw usage("\(name) is missing") }
        return word
    }

    // MARK: Settings

    /// The configuration, as it is for `--profile` where the command knows profiles.
    func configuration() throws -> Configuration { try profile(of: wholeConfiguration()) }

    private func profile(of all: Configuration) throws -> Configuration {
        try all.profile(isDeclared(Option.profile.name) ? value(Option.profile.name) : nil)
    }

    func wholeConfiguration() throws -> Configuration {
        try Configuration.load(explicit: value("config"), environment: environment, read: readSmallFile)
    }

    /// `--store`, else what the environment and the configuration say. A named store needs no configuration.
    func storePath() throws -> String {
        if let named = value(Option.store.name) ?? environment["BACKUP_TOOL_STORE"] {
            try LocalPath.check(named)
            return named
        }
        let all = try wholeConfiguration()
        let path = try environment.store(option: nil, configuration: profile(of: all))
        try checkUsualStore(path, all)
        // A printed command without --profile would use another store.
        if isDeclared(Option.profile.name), value(Option.profile.name) != nil {
            output.advice.carry(Option.store.name, path, isOfProfile: true)
        }
        return path
    }

    /// Refuses the usual place for a new store where the configuration names stores in its profiles only.
    private func checkUsualStore(_ path: String, _ all: Configuration) throws {
        guard let file = all.file, try profile(of: all).text("store") == nil, try FileStatus.ofTarget(path) == nil,
            let profile = try all.profiles.first(where: { try all.profile($0).text("store") != nil })
        else { return }
        throw BackupError(
            .usage, "names a store in its profiles only", at: file,
            remedy: isDeclared(Option.profile.name)
                ? "name one, such as with --profile \(profile)" : "name the store: --store FILE")
    }

    /// Refuses to make a folder whose name ends like a file's. What lies there already is judged elsewhere.
    func checkNewFolder(_ path: String, remedy: String) throws {
        if try FileStatus.ofTarget(path) == nil { try CarrierFormat.checkFolder(path, remedy: remedy) }
    }

    /// Runs `body` with the store, and says so where a new one is made. A store that --store names is made only with
    /// --create: a mistyped name would become a second library.
    func withStore<Result>(dryRun: Bool, _ body: (Store) throws -> Result) throws -> Result {
        let path = try storePath()
        let isNew = try FileStatus.ofTarget(path) == nil
        let result = try Store.withStore(path, dryRun: dryRun, mayCreate: mayCreateStore, body)
        if isNew, !dryRun { output.note("New store: \(printable(path))") }
        return result
    }

    /// Whether a command may make the store: at the usual place, or where it is asked to.
    private var mayCreateStore: Bool { value(Option.store.name) == nil || flag(Option.create.name) }

    /// For a command that plays with a copy of the store, where it would make none itself.
    func checkStoreIsThere() throws {
        if !mayCreateStore { try Store.mustBeThere(try storePath()) }
    }

    /// An error of usage that parsing could not see, such as two options that exclude each other.
    func usage(_ message: String) -> BackupError {
        let path = (["backup-tool"] + line.path).joined(separator: " ")
        return BackupError(.usage, message, remedy: "see '\(path) --help'")
    }

    func isDeclared(_ name: String) -> Bool {
        (line.command.options + Option.everywhere).contains { $0.name == name }
    }
}
