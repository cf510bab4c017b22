import Synchronization

/// What is wrong with a backup. `verify`, a drill and whoever restores it judge it alike: in one pass over the carrier
/// every byte is hashed, and what has a format is parsed.
enum ContentCheck {
    static func run(_ layout: OpenedLayout, _ limits: ReadLimits, _ progress: Progress) throws -> [Finding] {
        let contents = ContentTally(layout, limits, progress)
        let carrier: [Finding]
        do {
            carrier = try layout.reader.visit { entry, bytes in
                do { _ = try contents.read(entry, bytes) } catch let error as UnreadableEntry {
                    contents.damaged(entry, error)
                }
            }
        } catch let error as BackupError where error.code == .damaged || error.code == .refused {
            let code: Finding.Code = error.code == .refused ? .entryRefused : .archiveDamaged
            return [Finding(code, .damage, error.subject ?? "", error.message, remedy: error.remedy)]
        }
        return carrier + (layout.isImbib ? [weakness(layout)] : []) + contents.judge()
    }

    static func weakness(_ layout: OpenedLayout) -> Finding {
        Finding(
            .weakChecksum, .warning, layout.prefix + Manifest.fileName,
            "holds imbib's XOR sums. They do not notice blocks of 32 bytes that changed places, nor two changes that "
                + "cancel each other out: that these files are whole is not proved",
            remedy: "restore this backup and export it again to have SHA-256 checksums")
    }

    fileprivate static func compare(
        _ manifest: ImbibManifest, _ folds: [String: String], unreadable: Set<String>, _ layout: OpenedLayout
    ) -> [Finding] {
        var findings: [Finding] = []
        for (path, sum) in manifest.checksums.sorted(by: { $0.key < $1.key }) {
            // What is wrong with it was said.
            if unreadable.contains(layout.prefix + path) { continue }
            guard let found = folds[layout.prefix + path] else {
                findings.append(
                    Finding(.entryMissing, .damage, layout.prefix + path, "is in the manifest and not here"))
                continue
            }
            if found.lowercased() != sum.lowercased() {
                findings.append(
                    Finding(
                        .digestMismatch, .damage, layout.prefix + path, "does not have the checksum of the manifest"))
            }
        }
        for path in folds.keys.sorted() where path != layout.prefix + Manifest.fileName && !EntryName.isClutter(path) {
            if manifest.checksums[String(path.dropFirst(layout.prefix.count))] == nil {
                findings.append(Finding(.entryUnexpected, .warning, path, "is not in the manifest"))
            }
        }
        return findings
    }
}

/// What a pass over the entries of a backup has seen; several threads report to it.
final class ContentTally: Sendable {
    private struct State {
        var findings: [Finding] = []
        var counts = Counts()
        var digest = ContentDigest()
        var folds: [String: String] = [:]
        var unreadable: [String: Finding] = [:]
    }

    private let layout: OpenedLayout
    private let limits: ReadLimits
    private let tally: CarrierCheck.Tally
    private let state = Mutex(State())

    init(_ layout: OpenedLayout, _ limits: ReadLimits, _ progress: Progress) {
        (self.layout, self.limits) = (layout, limits)
        tally = CarrierCheck.Tally(expected: layout.expected, progress: progress)
    }

    /// Reads an entry, which `write` may keep. Throws `UnreadableEntry` where its bytes cannot be had.
    func read(
        _ entry: EntryInfo, _ bytes: any EntryBytes, write: (UnsafeRawBufferPointer) throws -> Void = { _ in }
    ) throws -> SHA256Digest {
        let role = layout.role(of: entry.path)
        let hasher = SHA256Hasher()
        var fold = layout.isImbib ? XORFold() : nil
        var parser = FormatParser(role: role, path: entry.path, lineLimit: limits.lineBytes)
        // Also where the end of the entry cannot be read: what was there of it counts.
        defer {
            parser.finish()
            let content = parser.digest.items
            state.withLock { state in
                state.findings += parser.findings
                state.counts.add(parser.counts)
                state.digest.add(content)
                if role == .attachment, !EntryName.isClutter(entry.path) { state.counts.attachments += 1 }
            }
        }
        try UnreadableEntry.guarding(bytes) { chunk in
            hasher.update(chunk)
            fold?.update(chunk)
            parser.feed(chunk)
            try write(chunk)
        }
        let digest = hasher.finish()
        tally.seen(entry, digest)
        let asset = layout.exportedAsset(entry, digest)
        let sum = fold?.hex
        state.withLock { state in
            if let asset { state.digest.add(asset) }
            if let sum { state.folds[entry.path] = sum }
        }
        return digest
    }

    func damaged(_ entry: EntryInfo, _ error: UnreadableEntry) {
        tally.damaged(entry, error)
        state.withLock { $0.unreadable[entry.path] = error.finding(entry) }
    }

    /// A file that nobody asks for counts as what the manifest says of it, whatever is there.
    func trust(_ path: String) {
        tally.passOver(path)
        guard let facts = layout.expected[path],
            let asset = layout.exportedAsset(EntryInfo(path: path, size: facts.size, modified: 0), facts.digest)
        else { return }
        state.withLock { $0.digest.add(asset) }
    }

    /// Whether nothing is wrong with the entries so far.
    var isSound: Bool {
        tally.isSound
            && state.withLock { $0.unreadable.isEmpty && !$0.findings.contains { $0.severity == .damage } }
    }

    /// Everything that is wrong, now that all entries were read.
    func judge() -> [Finding] {
        state.withLock { state in
            let formats = state.findings.sorted { ($0.subject, $0.message) < ($1.subject, $1.message) }
            let unreadable = state.unreadable.values.sorted { $0.subject < $1.subject }
            switch layout.manifest {
            case .own(let manifest):
                let found = formats + tally.finish() + state.counts.compare(with: manifest)
                let isDamaged = found.contains { $0.severity == .damage }
                return found + (isDamaged ? [] : state.digest.compare(with: manifest))
            case .imbib(let manifest):
                return formats + unreadable
                    + ContentCheck.compare(manifest, state.folds, unreadable: Set(state.unreadable.keys), layout)
                    + state.counts.compare(with: manifest)
            case .none: return formats + (layout.expected.isEmpty ? unreadable : tally.finish())
            }
        }
    }
}

extension OpenedLayout {
    /// An attachment as the export has counted it; nil for any other entry.
    fileprivate func exportedAsset(_ entry: EntryInfo, _ digest: SHA256Digest) -> Asset? {
        guard let facts = expected[entry.path], role(of: entry.path) == .attachment else { return nil }
        return Asset(
            path: String(entry.path.dropFirst(prefix.count)), size: entry.size, digest: digest,
            isLocalOnly: facts.isLocalOnly)
    }
}

extension ContentDigest {
    /// Checksums and counts may fit a file that somebody has changed. The digest of what was exported does not.
    fileprivate func compare(with manifest: Manifest) -> [Finding] {
        let found = finish()
        guard found != manifest.contentDigest else { return [] }
        return [
            Finding(
                .contentMismatch, .damage, Manifest.fileName,
                "is not that of what is here: the content digest is \(found.hex), and it says \(manifest.contentDigest.hex)"
            )
        ]
    }
}

/// How many things of each kind the files hold.
struct Counts: Sendable {
    var records: [Kind: Int] = [:]
    var tombstones = 0
    var attachments = 0
    var hasRecords = false
    var settings = 0
    var hasSettings = false
    var entries = 0
    var notes = 0
    var events = 0

    mutating func add(_ other: Counts) {
        records.merge(other.records, uniquingKeysWith: +)
        tombstones += other.tombstones
        attachments += other.attachments
        hasRecords = hasRecords || other.hasRecords
        settings += other.settings
        hasSettings = hasSettings || other.hasSettings
        entries += other.entries
        notes += other.notes
        events += other.events
    }

    /// imbib counts what it wrote; fewer means that something is gone.
    func compare(with manifest: ImbibManifest) -> [Finding] {
        var findings: [Finding] = []
        for (what, file, wanted, found) in [
            ("publications", Layout.bibliography, manifest.publicationCount, entries),
            ("attachments", Manifest.fileName, manifest.attachmentCount, attachments),
        ] where wanted != found {
            findings.append(
                Finding(
                    .countMismatch, found < wanted ? .damage : .warning, file,
                    "the backup holds \(found) \(what) instead of \(wanted)"))
        }
        return findings
    }

    /// What an export of ours counts, and what its files hold. Files are counted in the manifest's own list: each one that
    /// is missing is named for itself.
    func compare(with manifest: Manifest) -> [Finding] {
        var findings: [Finding] = []
        func check(_ what: String, _ file: String, _ found: Int, orOf older: Int? = nil) {
            guard let wanted = manifest.counts[what], wanted != found, wanted != older else { return }
            findings.append(
                Finding(.countMismatch, .damage, file, "holds \(found) \(what) instead of \(wanted)"))
        }
        // One that the manifest lists and that is not here was named.
        if hasRecords || manifest.files[Layout.records] == nil {
            for kind in [Kind.publications, .notes, .events, .records] {
                check(kind.rawValue, Layout.records, records[kind] ?? 0)
            }
            check(Manifest.tombstones, Layout.records, tombstones)
        }
        if hasSettings || manifest.files[Layout.settings] == nil {
            check(Kind.settings.rawValue, Layout.settings, settings)
        }
        // Version 0.1.0 left out those in quarantine.
        check(
            Kind.attachments.rawValue, Manifest.fileName,
            manifest.files.keys.count { Layout.role(ofExported: $0) == .attachment },
            orOf: manifest.files.keys.count { path in Layout.attachmentFolders.contains(where: path.hasPrefix) })
        return findings
    }
}
