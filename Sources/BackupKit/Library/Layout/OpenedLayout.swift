import Synchronization

/// A carrier whose small files were read: enough to know what it is and to judge the rest.
struct OpenedLayout: Sendable {
    let reader: any CarrierReader
    let entries: [EntryInfo]
    /// The folder inside the carrier that holds the layout, as an archive of a folder has it: "imbib-backup-2026/" or "".
    let prefix: String
    let manifest: LayoutManifest
    var findings: [Finding]

    /// What the manifest expects, under the names that the carrier gives its entries.
    let expected: [String: FileFacts]

    static let manifestLimit: Int64 = 512 << 20

    static func open(_ path: String, limits: ReadLimits = ReadLimits()) throws -> OpenedLayout {
        try Store.refuseAsBackup(path)
        return try read(try CarrierOpener.open(path, limits: limits), at: path)
    }

    static func read(_ reader: any CarrierReader, at path: String) throws -> OpenedLayout {
        let (entries, damage) = try list(reader, at: path)
        let prefix = prefix(of: entries)
        var findings = damage
        var manifest = LayoutManifest.none
        var expected: [String: FileFacts] = [:]
        if let entry = entries.first(where: { $0.path == prefix + Manifest.fileName }) {
            var bytes: [UInt8] = []
            do {
                bytes = try contents(of: entry.path, size: entry.size, reader)
                manifest = try bytes.withUnsafeBytes { try parse($0) }
            } catch let error as BackupError where error.code == .damaged {
                findings.append(Finding(.manifestInvalid, .damage, entry.path, error.message))
            } catch let error as BackupError where error.code == .refused && error.subject == nil {
                // Nothing is wrong with it: whoever wants to read it, in whatever way, hears the same.
                throw BackupError(
                    .failed, error.message, at: path, remedy: error.remedy ?? "use a newer backup-tool")
            }
            if case .own(let own) = manifest {
                expected = own.files
                expected[Manifest.fileName] = FileFacts(
                    size: entry.size, digest: bytes.withUnsafeBytes(SHA256Digest.of))
                findings += try checkSums(own, prefix, entries, reader, &expected)
            }
        }
        if manifest.isMissing {
            let known = Set(entries.map(\.path))
            if findings.count == damage.count {
                if known.contains(prefix + ChecksumFile.fileName) || known.contains(prefix + Layout.records) {
                    findings.append(
                        Finding(
                            .manifestMissing, .damage, prefix + Manifest.fileName,
                            "is missing: nothing says when this was written and how much there should be"))
                } else if known.contains(prefix + Layout.bibliography) {
                    let others = entries.map(\.path).filter {
                        Layout.role(of: String($0.dropFirst(prefix.count))) == .unknown && !EntryName.isClutter($0)
                    }
                    findings.append(withoutManifest(path, leavingOut: others))
                }
            }
            expected = try expectedBySums(prefix, entries, reader)
        }
        if !prefix.isEmpty {
            expected = Dictionary(expected.map { (prefix + $0.key, $0.value) }, uniquingKeysWith: { $1 })
        }
        return OpenedLayout(
            reader: reader, entries: entries, prefix: prefix, manifest: manifest, findings: findings, expected: expected
        )
    }

    static func withoutManifest(_ path: String, leavingOut others: [String] = []) -> Finding {
        let reason = "has no manifest: nothing says which files belong to it, so completeness is not proved"
        guard !others.isEmpty else {
            return Finding(.manifestMissing, .warning, path, reason, remedy: "what is here was read for itself")
        }
        return Finding(
            .manifestMissing, .warning, path,
            "\(reason); \(firstNames(others.sorted())) \(others.count == 1 ? "was" : "were") left out",
            remedy:
                "unpack it if it is an archive, and import the folder: 'import' takes .bib files and logs of any name"
        )
    }

    /// What the carrier lists; where its damage keeps it from that, what a walk through it finds.
    private static func list(
        _ reader: any CarrierReader, at path: String
    ) throws -> (entries: [EntryInfo], damage: [Finding]) {
        do { return (try reader.list(), []) } catch let error as BackupError where error.code == .refused {
            guard let name = error.subject, !sameBytes(name, path) else { throw error }
            throw BackupError(
                .refused, "its entry '\(name)' \(error.message)", at: path,
                remedy: error.remedy ?? "unpack it yourself into an empty folder, and import what you need from there")
        } catch let error as BackupError where error.code == .damaged {
            let found = Mutex<[EntryInfo]>([])
            let findings: [Finding]
            do {
                findings = try reader.visit { entry, _ in found.withLock { $0.append(entry) } }
            } catch is BackupError { throw error }
            let entries = found.withLock { $0 }
            guard !entries.isEmpty else {
                throw error.advising("no file of it can be read: look for another copy, or an older backup")
            }
            return (entries, findings.isEmpty ? [error.asFinding] : findings)
        }
    }

    private static func parse(_ bytes: UnsafeRawBufferPointer) throws -> LayoutManifest {
        let text = bytes.withoutByteOrderMark
        let isImbib = try LayoutManifest.isImbib(text)
        return isImbib ? .imbib(try ImbibManifest(parsing: text)) : .own(try Manifest(parsing: bytes))
    }

    /// Whatever is at the top, or the one folder that holds everything.
    private static func prefix(of entries: [EntryInfo]) -> String {
        let names = entries.lazy.map(\.path).filter { !EntryName.isClutter($0) }
        if names.contains(where: { Layout.role(of: $0) != .unknown }) { return "" }
        let inner = [Manifest.fileName, Layout.records, Layout.bibliography, ChecksumFile.fileName]
        var folders: Set<Substring> = []
        for name in names {
            guard let slash = name.utf8.firstIndex(of: FilePath.slash) else { continue }
            if inner.contains(String(name[name.utf8.index(after: slash)...])) { folders.insert(name[...slash]) }
        }
        return folders.count == 1 ? String(folders.first ?? "") : ""
    }

    /// `SHA256SUMS` is checked against the manifest, word by word: the two must not tell different stories.
    private static func checkSums(
        _ manifest: Manifest, _ prefix: String, _ entries: [EntryInfo], _ reader: any CarrierReader,
        _ expected: inout [String: FileFacts]
    ) throws -> [Finding] {
        let path = prefix + ChecksumFile.fileName
        guard let entry = entries.first(where: { $0.path == path }) else {
            return [Finding(.entryMissing, .damage, path, "is missing")]
        }
        let bytes: [UInt8]
        do { bytes = try contents(of: path, size: entry.size, reader) } catch let error as BackupError
            where error.code == .damaged
        { return [Finding(.entryDamaged, .damage, path, error.message)] }
        expected[ChecksumFile.fileName] = FileFacts(size: entry.size, digest: bytes.withUnsafeBytes(SHA256Digest.of))
        guard let sums = ChecksumFile.parse(bytes) else {
            return [Finding(.malformed, .damage, path, "is not a list of checksums")]
        }
        var wanted = manifest.files.mapValues(\.digest)
        wanted[Manifest.fileName] = expected[Manifest.fileName]?.digest
        if wanted == sums, bytes != ChecksumFile.text(wanted.sorted { precedesBytewise($0.key, $1.key) }) {
            return [Finding(.malformed, .damage, path, "says the same as the manifest, but was changed since")]
        }
        let differing = Set(wanted.keys).union(sums.keys).filter { wanted[$0] != sums[$0] }.sorted()
        return differing.map {
            Finding(.digestMismatch, .damage, path, "and the manifest disagree about \(printable($0))")
        }
    }

    /// Without a manifest, `SHA256SUMS` still says what each file was; sizes it does not give.
    private static func expectedBySums(
        _ prefix: String, _ entries: [EntryInfo], _ reader: any CarrierReader
    ) throws -> [String: FileFacts] {
        guard let entry = entries.first(where: { $0.path == prefix + ChecksumFile.fileName }) else { return [:] }
        let bytes: [UInt8]
        // The damage is reported when the files are read.
        do { bytes = try contents(of: entry.path, size: entry.size, reader) } catch let error as BackupError
            where error.code == .damaged
        { return [:] }
        guard let sums = ChecksumFile.parse(bytes) else { return [:] }
        let sizes = Dictionary(entries.map { ($0.path, $0.size) }, uniquingKeysWith: { first, _ in first })
        var expected = Dictionary(
            uniqueKeysWithValues: sums.map { path, digest in
                (path, FileFacts(size: sizes[prefix + path] ?? 0, digest: digest))
            })
        expected[ChecksumFile.fileName] = FileFacts(
            size: entry.size, digest: bytes.withUnsafeBytes(SHA256Digest.of))
        // That it is missing was said already.
        if sizes[prefix + Manifest.fileName] == nil { expected[Manifest.fileName] = nil }
        return expected
    }

    static func contents(of path: String, size: Int64, _ reader: any CarrierReader) throws -> [UInt8] {
        guard size <= manifestLimit else {
            throw BackupError(.refused, "is larger than any file of its kind should be (\(size) bytes)", at: path)
        }
        var bytes: [UInt8] = []
        try reader.read(path) { bytes += $0 }
        return bytes
    }

    var isImbib: Bool { if case .imbib = manifest { true } else { false } }

    func role(of path: String) -> Layout.Role {
        guard path.hasPrefix(prefix) else { return .unknown }
        let name = String(path.dropFirst(prefix.count))
        if case .own = manifest, expected[path] != nil { return Layout.role(ofExported: name) }
        return Layout.role(of: name)
    }

    /// Whether an archiver left the file behind. A file that the manifest lists is none of these.
    func isClutter(_ path: String) -> Bool { expected[path] == nil && EntryName.isClutter(path) }

    var isDamaged: Bool { findings.contains { $0.severity == .damage } }

    /// Whether this is a library at all, and not just any folder or archive.
    var isLayout: Bool {
        if manifest.isMissing {
            return entries.contains { [.records, .bibliography].contains(role(of: $0.path)) }
        }
        return true
    }
}
