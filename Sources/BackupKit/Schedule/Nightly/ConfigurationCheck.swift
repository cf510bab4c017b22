/// What else only a run would find out, for whoever checks a configuration before the night.
extension Configuration {
    /// Throws where there is no store that a run could back up.
    public func checkStore() throws {
        guard let path = text("store") else { return }
        guard try FileStatus.ofName(path) == nil else { return try Store(path, .read).refuseMissingTables() }
        throw BackupError(
            .notFound, "there is no store here",
            remedy: "look whether its disk is there, and whether 'store' names the right place; "
                + "\(TypedCommand.quoted("store init", options: ["store": path])) makes a new one")
    }

    /// Throws where there is no vault that a run could write to.
    public func checkVault() throws {
        guard let path = text("vault") else { return }
        try Store.refuseVault(at: path)
        try Vault.mustBeThere(try FolderBackend(path))
    }

    /// What keeps the password of the file from opening the vault; nil also where either is not there, or is not a file.
    public func errorOfOpening() throws -> BackupError? {
        guard let vault = text("vault"), let file = text("password-file"),
            try FileStatus.ofTarget(file)?.isRegular == true, try FileStatus.ofTarget(vault) != nil
        else { return nil }
        let password: [UInt8]
        do { password = try PasswordSource.file(file).read() } catch is BackupError { return nil }
        do { _ = try Vault.open(FolderBackend(vault), password: password) } catch let error as BackupError
            where error.code != .interrupted
        {
            return error.code == .notFound ? nil : error
        }
        return nil
    }

    /// Whether it names a vault, in a profile or for all.
    public func namesVault() throws -> Bool {
        try text("vault") != nil || profiles.contains { try profile($0).text("vault") != nil }
    }

    /// The first setting that is for runs, where no vault is named for them.
    public var settingWithoutVault: String? {
        guard text("vault") == nil else { return nil }
        let forRuns = Set(Self.forRuns.map(\.name))
        return effective.first { forRuns.contains($0.key) }?.key
    }

    /// Throws where `keep.tag` is the only rule and keeps none of the snapshots that the runs of this profile take.
    public func checkTagsToKeep(profile: String?) throws {
        let policy = try retentionPolicy()
        var others = policy
        others.tags = []
        guard !policy.tags.isEmpty, others.isEmpty else { return }
        let own = texts("snapshot.tags") + [profile ?? Self.nightly]
        let keepsOwn = policy.tags.contains { tags in tags.allSatisfy { own.contains($0) || StoreVault.isSeries($0) } }
        if keepsOwn { return }
        throw BackupError(
            .failed, "keep has no other rule, and this one keeps no snapshot that a run takes",
            remedy: "add a rule, such as keep.daily = 14, or give the snapshots the tag with snapshot.tags")
    }
}
