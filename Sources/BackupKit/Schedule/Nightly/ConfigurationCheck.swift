/// What else only a run would find out, for whoever checks a configuration before the night.
extension Configuration {
    /// Throws where there is no store that a run could back up.
    public func checkStore() throws {
        guard let path = text("store") else { return }
        guard try FileStatus.ofName(path) == nil else { return try Store.mustBeStore(path) }
        throw BackupError(
            .notFound, "there is no store here",
            remedy: "look whether its disk is there, and whether 'store' names the right place; "
                + "\(TypedCommand.quoted("store init", options: ["store": path])) makes a new one")
    }

    /// Throws where there is no vault that a run could write to.
    public func checkVault() throws {
        if let path = text("vault") { try Vault.mustBeThere(try FolderBackend(path)) }
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
