/// What a carrier holds, for `list` and `show`.
public struct Listing: Sendable {
    public struct Entry: Sendable {
        public let path: String
        public let size: Int64
        public let modified: Timestamp
        public let digest: SHA256Digest?
    }

    public let entries: [Entry]
    /// What the manifest says: a name for people, a key for programs.
    public struct Fact: Sendable {
        public let name: String
        public let key: String
        public let value: String
        public var number: Int?

        init(_ name: String, _ key: String, _ value: String) {
            (self.name, self.key, self.value) = (name, key, value)
        }

        init(_ name: String, _ key: String, _ number: Int) {
            self.init(name, key, String(number))
            self.number = number
        }
    }

    public let facts: [Fact]
    public let findings: [Finding]

    public static func of(_ path: String, limits: ReadLimits = ReadLimits()) throws -> Listing {
        let layout = try OpenedLayout.open(path, limits: limits)
        let entries = layout.entries.map { entry in
            Entry(
                path: entry.path, size: entry.size, modified: Timestamp(milliseconds: entry.modified &* 1000),
                digest: layout.expected[entry.path]?.digest)
        }
        return Listing(
            entries: entries.sorted { precedesBytewise($0.path, $1.path) },
            facts: facts(layout.manifest), findings: layout.findings)
    }

    private static func facts(_ manifest: LayoutManifest) -> [Fact] {
        switch manifest {
        case .own(let manifest):
            let counts = manifest.counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
            return [
                Fact("format", "format", "backup-tool library, version \(Manifest.version)"),
                Fact("written", "written", "\(manifest.createdAt.iso8601) by \(manifest.tool)"),
                Fact("export id", "exportId", manifest.exportID),
                Fact("schema", "schema", manifest.schemaVersion),
                Fact("holds", "holds", counts.joined(separator: ", ")),
                Fact("content digest", "contentDigest", manifest.contentDigest.hex),
                Fact("left out", "leftOut", manifest.omitted.count),
            ]
        case .imbib(let manifest):
            return [
                Fact("format", "format", "imbib backup"),
                Fact("written", "written", "\(manifest.createdAt.iso8601) by imbib \(manifest.appVersion)"),
                Fact("schema", "schema", manifest.schemaVersion),
                Fact(
                    "holds", "holds",
                    "\(manifest.publicationCount) publications, \(manifest.attachmentCount) attachments"),
            ]
        case .none: return [Fact("format", "format", "no manifest")]
        }
    }

    /// Hands over the bytes of one entry. Returns what is wrong with an archive in which nothing but the checksum at its end
    /// vouches for them.
    public static func read(
        _ entry: String, of path: String, limits: ReadLimits = ReadLimits(),
        _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> [Finding] {
        try Store.refuseAsBackup(path)
        let reader = try CarrierOpener.open(path, limits: limits)
        do { try reader.read(entry, body) } catch let error as BackupError where error.code == .notFound {
            // The backup is there: no code for a backup that is not.
            throw BackupError(
                .failed, error.message, at: error.subject,
                remedy: error.remedy ?? "'backup-tool list BACKUP' shows the names")
        }
        guard let archive = reader as? ArchiveReader, !archive.findsEntriesQuickly else { return [] }
        return try archive.visit(where: { _ in false }) { _, _ in }
    }
}
