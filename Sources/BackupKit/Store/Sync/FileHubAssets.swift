/// The bytes of assets beside the hub's database: `<hub>.assets/ab/<digest>`. No symbolic link below that folder is followed.
extension FileHub {
    private var assetFolder: String { "\(path).assets" }

    private static func place(of digest: SHA256Digest) -> String { "\(digest.hex.prefix(2))/\(digest.hex)" }

    /// Nil where the hub has no such file.
    private func file(_ digest: SHA256Digest) throws -> FileHandle? {
        let place = Self.place(of: digest)
        guard let assets = try RootDirectory.ifThere(assetFolder), try assets.status(of: place)?.isRegular == true
        else { return nil }
        return try assets.openForReading(place)
    }

    public func missingAssets(of digests: [SHA256Digest]) throws -> Set<SHA256Digest> {
        guard let assets = try RootDirectory.ifThere(assetFolder) else { return Set(digests) }
        return Set(try digests.filter { try assets.status(of: Self.place(of: $0))?.isRegular != true })
    }

    public func forgetDamagedAsset(_ digest: SHA256Digest) throws {
        guard let file = try file(digest), try file.digest() != digest else { return }
        try RootDirectory(assetFolder).remove(Self.place(of: digest))
    }

    /// The bytes that these rows name. Must run inside a transaction.
    func digests(ofAssets ids: [RecordID]) throws -> Set<SHA256Digest> {
        var found: Set<SHA256Digest> = []
        for id in ids where id.zone == Store.assetZone {
            do {
                guard let record = try record(id)?.record, !record.isDeleted else { continue }
                if let asset = try Asset(record) { found.insert(asset.digest) }
            } catch let error as BackupError where error.code == .damaged { continue }
        }
        return found
    }

    /// The bytes that any row names; nil where a row is damaged, and may mean any. Must run inside a transaction.
    func digestsNamed() throws -> Set<SHA256Digest>? {
        let query = try database.prepare("SELECT fields FROM record WHERE zone = ? AND deleted_at IS NULL")
            .bind(1, Store.assetZone)
        var found: Set<SHA256Digest> = []
        while try query.step() {
            guard let fields = try? JSON(parsing: query.text(0)) else { return nil }
            if let digest = fields["sha256"]?.string.flatMap({ SHA256Digest(hex: $0) }) { found.insert(digest) }
        }
        return found
    }

    /// Removes bytes that no row names any more, so that nothing deleted for good stays in the hub. A device that has just
    /// pushed a row with these bytes sends them again.
    func removeAssets(_ digests: Set<SHA256Digest>) throws {
        guard !digests.isEmpty, let assets = try RootDirectory.ifThere(assetFolder) else { return }
        for digest in digests where try assets.status(of: Self.place(of: digest))?.isRegular == true {
            try assets.remove(Self.place(of: digest))
        }
    }

    public func putAsset(
        _ digest: SHA256Digest, size: Int64, _ write: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {
        try Directory.createAll(assetFolder)
        let assets = try RootDirectory(assetFolder)
        let place = Self.place(of: digest)
        try assets.createFolders(above: place, durably: true)
        try AtomicFile.write(place, below: assets) { file in
            let hasher = SHA256Hasher()
            var count: Int64 = 0
            try write { chunk in
                hasher.update(chunk)
                count += Int64(chunk.count)
                try file.write(chunk)
            }
            guard count == size, hasher.finish() == digest else {
                throw BackupError(
                    .damaged, "the bytes sent are not those of this digest", at: "\(assetFolder)/\(place)")
            }
        }
    }

    public func getAsset(_ digest: SHA256Digest, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
        guard let file = try file(digest) else { return false }
        try file.forEachChunk(body)
        return true
    }
}
