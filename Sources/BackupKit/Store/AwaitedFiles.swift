/// Which file a link means while its bytes are not here: the hub says it of what it has, and a backup of what was on other
/// devices only when it was made.
extension Store {
    /// The file that a path means and whose bytes did not come yet.
    func awaitedFile(_ path: String) throws -> Asset? {
        if let known = try hubAsset(path)?.awaited { return known }
        let query = try database.statement("SELECT path, size, sha256 FROM file_elsewhere WHERE path = ?").bind(1, path)
        defer { query.reset() }
        return try query.step() ? Self.fileElsewhere(query) : nil
    }

    /// Whether links mean another file by a path, which is not here.
    func isAwaited(_ path: String, otherThan digest: SHA256Digest) throws -> Bool {
        try awaitedFile(path).map { $0.digest != digest } ?? false
    }

    /// All files that links mean and whose bytes did not come yet.
    func awaitedFiles() throws -> [Asset] {
        guard try !StoreSchema.isOld(database) else { return [] }
        var files = try wantedAssets().compactMap(\.awaited)
        let fromHub = Set(files.map { ByteName($0.path) })
        let query = try database.prepare("SELECT path, size, sha256 FROM file_elsewhere ORDER BY path")
        var links = LivingLinks(self)
        while try query.step() {
            guard let file = Self.fileElsewhere(query), !fromHub.contains(ByteName(file.path)),
                try links.contains(file.path)
            else { continue }
            files.append(file)
        }
        return try files.filter { file in try ifSound { try asset(file.path) } ?? nil == nil }
    }

    private static func fileElsewhere(_ row: Statement) -> Asset? {
        SHA256Digest(hex: row.text(2)).map { Asset(path: row.text(0), size: max(0, row.integer(1)), digest: $0) }
    }

    /// A backup says which file a link means that it could not give. Must run inside `write`.
    func noteFileElsewhere(_ file: Asset) throws {
        try database.statement("INSERT OR REPLACE INTO file_elsewhere VALUES (?, ?, ?)")
            .bind(1, file.path).bind(2, file.size).bind(3, file.digest.hex).run()
    }

    /// Not even names stay of what no living record links. Must run inside `write`.
    func forgetUnlinkedFilesElsewhere() throws {
        let query = try database.prepare("SELECT path FROM file_elsewhere")
        var links = LivingLinks(self)
        var unlinked: [String] = []
        while try query.step() { if try !links.contains(query.text(0)) { unlinked.append(query.text(0)) } }
        for path in unlinked {
            try database.statement("DELETE FROM file_elsewhere WHERE path = ?").bind(1, path).run()
        }
    }
}
