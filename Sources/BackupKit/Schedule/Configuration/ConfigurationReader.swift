extension Configuration {
    /// Reads the file named by `explicit`, else the first that exists of the usual ones, else gives an empty
    /// configuration. `read` answers nil for a file that does not exist, and throws when one cannot be read.
    public static func load(
        explicit: String?, environment: Environment, read: (String) throws -> [UInt8]?
    ) throws -> Configuration {
        guard let (file, bytes) = try find(explicit: explicit, environment: environment, read: read) else {
            return .empty
        }
        return try parse(bytes, file: file, environment: environment)
    }

    /// The file that `load` would read, and its bytes.
    public static func find(
        explicit: String?, environment: Environment, read: (String) throws -> [UInt8]?
    ) throws -> (file: String, bytes: [UInt8])? {
        if let explicit {
            guard let bytes = try read(explicit) else {
                throw BackupError(
                    .failed, "no such configuration file", at: explicit,
                    remedy: "give --config the path of one that is there; docs/configuration.md shows how to write it")
            }
            return (explicit, bytes)
        }
        for path in environment.configurationFiles { if let bytes = try read(path) { return (path, bytes) } }
        return nil
    }

    /// Throws the first mistake.
    public static func parse(_ bytes: [UInt8], file: String, environment: Environment) throws -> Configuration {
        let (configuration, mistakes) = check(bytes, file: file, environment: environment)
        if let first = mistakes.first { throw first }
        return configuration
    }

    /// Reads all of it and gives every mistake with its line.
    public static func check(
        _ bytes: [UInt8], file: String, environment: Environment
    ) -> (configuration: Configuration, mistakes: [BackupError]) {
        var reader = Reader(file: file, environment: environment)
        let (table, unreadable) = TOML.read(bytes)
        for mistake in unreadable { reader.mistakes.append((mistake.position?.line ?? 0, mistake.error(in: file))) }
        for (key, value) in table.entries {
            if key == "profile" { reader.takeProfiles(value) } else { reader.take(key, value, profile: nil) }
        }
        let configuration = Configuration(
            file: file, values: reader.values, profiles: reader.profiles, ofProfiles: reader.ofProfiles)
        // What cannot be read may be just what is to be kept.
        for profile in unreadable.isEmpty ? [nil] + reader.profiles : [] {
            for (line, error) in configuration.mistakesAsAWhole(profile)
            where !reader.mistakes.contains(where: { $0.error == error }) { reader.mistakes.append((line, error)) }
        }
        return (configuration, reader.mistakes.sorted { $0.line < $1.line }.map(\.error))
    }

    /// What only several settings together show.
    private func mistakesAsAWhole(_ profile: String?) -> [(line: Int, error: BackupError)] {
        guard let own = try? self.profile(profile) else { return [] }
        var mistakes: [(line: Int, error: BackupError)] = []
        func mistake(_ line: Int, _ message: String, remedy: String? = nil) {
            mistakes.append((line, BackupError(.failed, message, at: "\(file ?? ""):\(line)", remedy: remedy)))
        }
        if (try? own.retentionPolicy().isEmpty) == true,
            let first = own.effective.first(where: { $0.key.hasPrefix("keep.") && $0.key != "keep.group-by" })
        {
            mistake(first.line, "the rules of keep say nothing about what to keep")
        }
        let passwords = own.effective.filter { ["password-file", "password-command"].contains($0.key) }
        if passwords.count == 2, let last = passwords.max(by: { $0.line < $1.line }) {
            mistake(last.line, "password-file and password-command exclude each other", remedy: "remove one of them")
        }
        // A run takes what has its profile's name for its own, and thins it out.
        let others = Set(profiles + [Self.nightly]).subtracting([profile ?? Self.nightly])
        if let tags = own.effective.first(where: { $0.key == "snapshot.tags" }) {
            for tag in own.texts(tags.key).filter(others.contains) {
                let whose = tag == Self.nightly ? "runs without a profile" : "runs of that profile"
                mistake(
                    tags.line, "the tag '\(tag)' is what \(whose) know their snapshots by",
                    remedy: "choose another tag")
            }
        }
        return mistakes
    }

    private struct Reader {
        let file: String
        let environment: Environment
        var values: [String: Setting] = [:]
        var profiles: [String] = []
        var ofProfiles: [String: [String: Setting]] = [:]
        var mistakes: [(line: Int, error: BackupError)] = []

        private mutating func mistake(_ value: TOMLValue, _ message: String, remedy: String? = nil) {
            let line = value.position.line
            mistakes.append((line, BackupError(.failed, message, at: "\(file):\(line)", remedy: remedy)))
        }

        mutating func takeProfiles(_ value: TOMLValue) {
            guard case .table(let table) = value.content else {
                return mistake(value, "profile must hold tables", remedy: "begin a profile with [profile.NAME]")
            }
            for (name, value) in table.entries {
                guard Configuration.isProfileName(name) else {
                    mistake(
                        value, "'\(printable(name))' is no name for a profile",
                        remedy: Configuration.reservedNames.contains(name)
                            ? "it stands for a run without a profile" : "letters, digits, - and _ may stand in it")
                    continue
                }
                guard case .table(let settings) = value.content else {
                    mistake(value, "profile.\(name) must be a table", remedy: "begin it with [profile.\(name)]")
                    continue
                }
                profiles.append(name)
                ofProfiles[name] = [:]
                for (key, value) in settings.entries { take(key, value, profile: name) }
            }
        }

        /// A setting, or a table of settings.
        mutating func take(_ name: String, _ value: TOMLValue, profile: String?) {
            if case .table(let inner) = value.content,
                Configuration.keys.contains(where: { $0.name.hasPrefix(name + ".") })
            {
                for (key, value) in inner.entries { take("\(name).\(key)", value, profile: profile) }
                return
            }
            guard let content = check(value, of: name) else { return }
            let setting = Setting(content: content, line: value.position.line)
            if let profile { ofProfiles[profile]?[name] = setting } else { values[name] = setting }
        }

        private mutating func check(_ value: TOMLValue, of name: String) -> TOMLValue.Content? {
            guard let key = Configuration.keys.first(where: { $0.name == name }) else {
                let sections = Set(
                    Configuration.keys.compactMap { $0.name.split(separator: ".").dropLast().first.map(String.init) })
                if sections.contains(name) {
                    mistake(value, "\(name) must be a table", remedy: "its settings are named as in '\(name).…'")
                    return nil
                }
                let near = didYouMean(name, among: Configuration.keys.map(\.name) + sections.sorted() + ["profile"])
                mistake(
                    value, "unknown key '\(printable(name))'",
                    remedy: near ?? "docs/configuration.md lists the keys")
                return nil
            }
            guard key.kind.takes(value.content) else {
                mistake(value, "\(name) must be \(key.kind.sentence)")
                return nil
            }
            switch (key.kind, value.content) {
            case (.oneOf(let allowed), .string(let text)) where !allowed.contains(text):
                mistake(
                    value, "\(name) cannot be '\(printable(text))'",
                    remedy: didYouMean(text, among: allowed) ?? "one of: \(allowed.joined(separator: ", "))")
                return nil
            case (.path, .string(let text)):
                do { return .string(try resolve(text)) } catch let error as BackupError {
                    mistake(value, error.message, remedy: error.remedy)
                } catch { mistake(value, "\(error)") }
                return nil
            default: return value.content
            }
        }

        private func resolve(_ path: String) throws -> String {
            if let scheme = LocalPath.scheme(of: path) {
                throw BackupError(
                    .failed, "'\(scheme):' addresses are not supported", remedy: "name a file or a folder")
            }
            if path.hasPrefix("/") { return path }
            if path.hasPrefix("~/") { return try environment.home() + path.dropFirst() }
            guard let slash = file.lastIndex(of: "/") else { return path }
            return file[...slash] + path
        }
    }
}
