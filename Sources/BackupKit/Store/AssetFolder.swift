/// What lies below the folder of assets. The store reads and changes all of it through `assets`, which goes through no
/// symbolic link below the folder. The folder itself may be one: then the user has put it somewhere else.
extension Store {
    var assets: RootDirectory { get throws { try ownAssets ?? RootDirectory(assetFolder) } }

    private var assetsIfThere: RootDirectory? {
        get throws { try ownAssets ?? RootDirectory.ifThere(assetFolder) }
    }

    /// Where people and apps put files; nil where there is no such folder.
    private var tree: RootDirectory? {
        get throws { try standsFor == nil ? assetsIfThere : RootDirectory.ifThere(treeFolder) }
    }

    /// The status of the name itself, or of the link that stands for a folder above it; nil when there is nothing.
    func assetStatus(_ path: String) throws -> FileStatus? { try assetsIfThere?.status(of: path) }

    func treeStatus(_ path: String) throws -> FileStatus? { try tree?.status(of: path) }

    /// Of a file below the folder.
    func digest(at path: String) throws -> SHA256Digest { try assets.openForReading(path).digest() }

    func treeDigest(at path: String) throws -> SHA256Digest? { try tree?.openForReading(path).digest() }

    /// Whether bytes lie under their digest. What is no file there has none.
    func hasBlob(_ digest: SHA256Digest) throws -> Bool { try assetStatus(Self.blob(digest))?.isRegular == true }

    /// The same for whoever is about to put them there: throws where something else has the name.
    func hasBlobOrRoom(for digest: SHA256Digest) throws -> Bool {
        guard let status = try assetStatus(Self.blob(digest)) else { return false }
        guard status.isRegular else { throw Self.notOurs(status, at: "\(assetFolder)/\(Self.blob(digest))") }
        return true
    }

    /// What lies under a path and is no file, or stands where a folder above it should be; nil where there is no such thing.
    func obstacle(at path: String) throws -> (place: String, name: String)? {
        if let (place, status) = try assetsIfThere?.barrier(on: path) {
            let kind = status.isLink ? "symbolic link" : "file"
            return (place, "the \(kind) \(assetFolder)/\(place)")
        }
        guard let status = try assetStatus(path), !status.isRegular else { return nil }
        return (path, status.kindName)
    }

    static func notOurs(_ status: FileStatus, at path: String) -> BackupError {
        BackupError(
            .refused, "is \(status.kindName), in the place of what the store keeps there", at: path,
            remedy: "move it away, then run the command again")
    }

    /// Makes the folder of blobs where there is none.
    static func makeBlobFolder(in assets: RootDirectory) throws {
        if let status = try assets.status(of: blobFolder) {
            guard status.isDirectory else { throw notOurs(status, at: "\(assets.path)/\(blobFolder)") }
        } else {
            try assets.createFolders(above: "\(blobFolder)/file", durably: true)
        }
    }

    /// What stands where the store keeps things of its own, and is nothing of the store's.
    func oddOwnFiles() throws -> [Finding] {
        guard let assets = try assetsIfThere else { return [] }
        func odd(_ path: String, _ status: FileStatus) -> Finding {
            Finding(
                .entryUnexpected, .warning, path,
                "\(status.kindName) stands in the place of what the store keeps there, and is left alone",
                remedy: "move it out of \(assetFolder), then run 'backup-tool store check'")
        }
        var found: [Finding] = []
        for folder in Self.ownFolders {
            if let status = try assets.status(of: folder), !status.isDirectory { found.append(odd(folder, status)) }
        }
        guard try assets.status(of: Self.blobFolder)?.isDirectory == true else { return found }
        for name in try Directory.names(in: "\(assetFolder)/\(Self.blobFolder)", foreign: { _ in }) {
            let path = "\(Self.blobFolder)/\(name)"
            guard Self.isBlobName(name), let status = try assets.status(of: path), !status.isRegular else { continue }
            found.append(odd(path, status))
        }
        return found
    }
}
