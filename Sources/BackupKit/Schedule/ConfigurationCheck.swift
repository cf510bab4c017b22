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
}
