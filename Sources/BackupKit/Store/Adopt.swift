/// What apps and people did to the files of the store's folder, taken into the store.
extension Store {
    public struct Adoption: Sendable {
        /// Files that had been changed: their new bytes are the attachments now.
        public internal(set) var adopted: [String] = []
        /// Files that had been removed and whose bytes an undo still needed.
        public internal(set) var putBack: [String] = []
        /// What had been removed and is lost.
        public internal(set) var findings: [Finding] = []
        public internal(set) var batch: Int64?
    }

    /// Takes in the files that were changed in the store's folder, and puts back those that were removed and are still
    /// known. Without paths all attachments are read. A file that the store does not know is taken in where it is named, and
    /// with `takesNew`. A file whose bytes changed and whose time did not has rotted, and an empty one has lost its bytes: these
    /// are only taken in where they are named.
    public func adopt(_ paths: [String] = [], takesNew: Bool = false, dryRun: Bool = false) throws -> Adoption {
        var (chosen, unknown): ([Asset], [Asset]) = ([], [])
        for path in paths {
            if let asset = try asset(path) {
                chosen.append(asset)
            } else if let file = try file(at: path) {
                unknown.append(file)
            } else {
                throw BackupError(
                    .failed, "there is no such attachment", at: path,
                    remedy: "name it by its path below \(assetFolder)")
            }
        }
        if paths.isEmpty { try forEachAsset { chosen.append($0) } }
        var result = Adoption()
        if paths.isEmpty || takesNew {
            for stray in try strayFiles() where try pending(stray.subject) == nil {
                let file = try takesNew ? file(at: stray.subject) : nil
                if let file { unknown.append(file) } else { result.findings.append(stray) }
            }
        }
        let source = paths.isEmpty ? lastComponent(of: assetFolder) : paths.joined(separator: ", ")
        let (_, batch) = try batch(kind: "adopt", source: source, dryRun: dryRun) {
            try keepLateChanges()
            for asset in chosen { try adopt(asset, isNamed: !paths.isEmpty, &result) }
            for file in unknown {
                if file.size > CloudLimits.assetBytes { result.findings.append(.oversize(file.path)) }
                try forgetOwners(ofGone: file.path)
                try insert(file, from: nil)
                result.adopted.append(file.path)
            }
            return ((), summary: JSON.object([JSON.Member("adopted", JSON(result.adopted.count))]).compact)
        }
        result.batch = batch?.id
        result.findings += try batch == nil ? filesInTheWay() : fileFindings
        if !result.putBack.isEmpty, !dryRun {
            try database.write { for path in result.putBack { try setPending(path, was: nil) } }
            result.findings += try settleFiles()
        }
        return result
    }

    /// What lies under a path in the store's folder, as an attachment; nil where it could be none.
    func file(at path: String, isLocalOnly: Bool = false) throws -> Asset? {
        try isFile(at: path) ? regularFile(at: path, isLocalOnly: isLocalOnly) : nil
    }

    func regularFile(at path: String, isLocalOnly: Bool = false) throws -> Asset? {
        guard let status = try treeStatus(path), status.isRegular, let digest = try treeDigest(at: path) else {
            return nil
        }
        return Asset(
            path: path, size: status.size, digest: digest, isLocalOnly: isLocalOnly,
            modifiedNanoseconds: status.modifiedNanoseconds)
    }

    /// Whether a file lies there that could be an attachment.
    func isFile(at path: String) throws -> Bool {
        guard (try? Self.check(path)) != nil, try pending(path) == nil else { return false }
        return try treeStatus(path)?.isRegular == true
    }

    /// The file as it lies there is the attachment from now on. Must run inside `batch`.
    func keepAsItIs(_ asset: Asset, _ status: FileStatus, _ digest: SHA256Digest) throws {
        try removeAsset(asset, for: digest)
        try insert(
            Asset(
                path: asset.path, size: status.size, digest: digest, isLocalOnly: asset.isKeptHere,
                modifiedNanoseconds: status.modifiedNanoseconds), from: nil)
    }

    private func adopt(_ asset: Asset, isNamed: Bool, _ result: inout Adoption) throws {
        try Interrupt.check()
        guard try pending(asset.path) == nil else { return }
        guard let status = try assetStatus(asset.path), status.isRegular else {
            if try hasBlob(asset.digest) { return result.putBack.append(asset.path) }
            let other = try obstacle(at: asset.path)
            return result.findings.append(
                Finding(
                    .entryMissing, .warning, asset.path,
                    "is not in the store's folder, and its bytes are not known"
                        + (other.map { ": \($0.name) is in its place" } ?? ""),
                    remedy: (other == nil ? "" : "move that away; ") + """
                        'backup-tool restore BACKUP --match NAME' brings it back from a backup; where no backup has it, \
                        'backup-tool store repair --accept' gives it up
                        """))
        }
        let digest = try digest(at: asset.path)
        if digest == asset.digest { return }
        if Self.isHarmed(status, asset), !isNamed {
            return result.findings.append(
                Finding(
                    .digestMismatch, .warning, asset.path, Self.harm(status, asset),
                    remedy: """
                        'backup-tool restore BACKUP --match NAME' brings it back from a backup; \
                        'backup-tool store adopt PATH' keeps it as it is
                        """))
        }
        if status.size > CloudLimits.assetBytes { result.findings.append(.oversize(asset.path)) }
        try keepAsItIs(asset, status, digest)
        result.adopted.append(asset.path)
    }
}
