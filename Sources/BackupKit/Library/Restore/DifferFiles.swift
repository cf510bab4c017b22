/// The attachments that a side of a comparison really has: what an export of it would hold.
///
/// A file with the size and the time that its row says is taken for the row's, unread, as a backup does; `store check`
/// reads every file. A scratch store's files have just been read.
struct DifferFiles {
    let store: Store
    /// Nil where the rows were made from the files.
    private let files: AssetFiles?
    private let looks: Bool
    private(set) var findings: [Finding] = []

    init(_ store: Store, of source: String) throws {
        (self.store, looks) = (store, Store.isStore(source))
        files = looks ? try AssetFiles(of: store) : nil
    }

    /// Nil where the store has no such attachment, or its bytes are gone.
    mutating func digest(of path: String) throws -> SHA256Digest? {
        try store.asset(path).flatMap { try digest(of: $0, notes: false) }
    }

    /// Notes what is wrong with the file.
    mutating func digest(of asset: Asset, notes: Bool = true) throws -> SHA256Digest? {
        guard looks else { return asset.digest }
        try Interrupt.check()
        let restores = "\(TypedCommand.quoted("restore BACKUP", options: ["match": asset.path])) brings it back"
        do {
            guard let opened = try files?.open(asset) else {
                throw BackupError(.notFound, "is not there", at: asset.path)
            }
            let status = try opened.file.status()
            if Store.looksAsRemembered(status, asset) {
                if opened.isRemoved, notes { findings.append(StoreLayout.removed(asset.path, was: "compared")) }
                return asset.digest
            }
            let hasher = SHA256Hasher()
            try opened.file.forEachChunk { hasher.update($0) }
            let digest = hasher.finish()
            if digest != asset.digest, notes { findings.append(StoreLayout.mismatch(asset, status, was: "compared")) }
            return digest
        } catch let error as BackupError where error.code != .interrupted {
            let what = error.code == .notFound ? "its file is missing" : "its file cannot be read: \(error.message)"
            if notes { findings.append(Finding(.entryMissing, .warning, asset.path, what, remedy: restores)) }
            return nil
        }
    }
}
