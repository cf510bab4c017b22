/// What `--force` may replace: a folder or a file that this tool wrote, and nothing else (decision 081).
///
/// That it wrote something is read from it: everything in it is named by a manifest of ours and has the bytes that the
/// manifest says, or is going to be there again or in the store to the byte.
struct Replacing {
    /// What is being read or is the store's: nothing that it lies in is replaced, and nothing in it.
    private let sources: [(path: String, reason: String)]
    private var ownFiles: OwnFiles?
    /// Whether a file with these bytes is going to be there again under this name.
    var isKept: (_ relativePath: String, _ digest: SHA256Digest) throws -> Bool = { _, _ in false }
    /// Knows the lines of files that hold nothing but events.
    var store: Store?
    /// Whether every line of that file is to be there again; nothing else is replaced then.
    private var holdsRejected: ((_ path: String) throws -> Bool)?

    init(source: String, besides store: String?, isKept: @escaping (String, SHA256Digest) throws -> Bool) {
        let parts = store.map { [$0, Store.assetFolder(of: $0)] } ?? []
        sources = Self.read([source]) + parts.map { ($0, "is a part of the store") }
        ownFiles = store.map(OwnFiles.init(ofStoreAt:))
        self.isKept = isKept
    }

    private static func read(_ paths: [String]) -> [(path: String, reason: String)] {
        paths.map { ($0, "is being read") }
    }

    /// An export of these kinds.
    init(by store: Store, writing kinds: Set<Kind>) {
        sources = Self.read([store.path, store.assetFolder])
        ownFiles = OwnFiles(of: store)
        if kinds.contains(.events) { self.store = store }
        isKept = { path, digest in try kinds.contains(.attachments) && store.asset(path)?.digest == digest }
    }

    /// An export of events, and of the files `media` that they name.
    init(ofEventsBy store: Store, media: @escaping () throws -> Set<String>) {
        sources = Self.read([store.path, store.assetFolder])
        ownFiles = OwnFiles(of: store)
        self.store = store
        isKept = { path, digest in
            let places = ["Attachments/" + path, path]
            return try places.contains { try store.asset($0)?.digest == digest } && media().contains(path)
        }
    }

    /// The lines that an import of event logs rejects.
    init(linesRejectedFrom paths: [String], holdsAll: @escaping (_ path: String) throws -> Bool) {
        sources = Self.read(paths)
        holdsRejected = holdsAll
    }

    /// Throws unless `target` is free, or is to be replaced and may be. `--force` is advised only where it would do it.
    func check(_ target: String, replace: Bool) throws {
        if ownFiles?.isBesideDatabase(target) == true {
            throw BackupError(
                .refused, "is the name of a file that the store keeps beside it", at: target,
                remedy: "choose another name")
        }
        let isThere = try FileStatus.ofName(target) != nil
        if !isThere, let source = try source(around: target) {
            throw BackupError(.refused, "lies in \(source)", at: target, remedy: "choose another place")
        }
        if !isThere, let export = LayoutManifest.folderOfExport(around: target) {
            throw BackupError(
                .refused, "lies in the export \(export), which would no longer be whole", at: target,
                remedy: "choose another place")
        }
        if replace { return try check(target) }
        guard isThere else { return }
        do { try check(target) } catch let error as BackupError where error.code == .refused {
            throw BackupError(.exists, "already exists, and \(error.message)", at: target, remedy: error.remedy)
        }
        throw AtomicFile.existing(target)
    }

    /// Throws unless `target` is free, empty or ours. What is damaged may hold what is nowhere else.
    private func check(_ target: String) throws {
        do { try checkIsOurs(target) } catch let error as BackupError where error.code == .damaged {
            throw Self.refusal(target, "it is damaged, so nothing was written: \(error.message)")
        }
    }

    private func checkIsOurs(_ target: String) throws {
        guard let status = try FileStatus.ofTarget(target) else { return }
        for source in sources {
            guard let found = try FileStatus.ofTarget(source.path) else { continue }
            let isSource = found.isSame(as: status)
            guard try isSource || Directory.isInside(source.path, target) else { continue }
            throw Self.refusalOfSource(
                target, isSource ? "it \(source.reason)" : "\(source.path) lies in it and would be lost")
        }
        if let source = try source(around: target) { throw Self.refusalOfSource(target, "it lies in \(source)") }
        if let holdsRejected {
            guard status.isRegular else { throw Self.refusal(target, "it is no ordinary file") }
            guard try status.size == 0 || holdsRejected(target) else {
                throw Self.refusal(target, "it holds lines that this import does not reject")
            }
            return
        }
        // What is no backup has no manifest that anybody could go by.
        let layout: OpenedLayout?
        do { layout = try OpenedLayout.open(target) } catch let error as BackupError where error.isOfBytes {
            layout = nil
        }
        if let layout, status.isDirectory, !layout.prefix.isEmpty {
            throw Self.refusal(target, "the backup '\(layout.prefix.dropLast())' lies in it")
        }
        let named = layout?.namedByUs ?? []
        if status.isDirectory { try checkFolder(target, named) } else { try checkFile(target, status, named) }
        if let layout, !named.isEmpty { try checkBytes(layout, target, isFolder: status.isDirectory) }
    }

    private func source(around target: String) throws -> String? {
        try sources.first { source in
            try FileStatus.ofTarget(source.path)?.isDirectory == true && Directory.isInside(target, source.path)
        }.map { "\($0.path), which \($0.reason)" }
    }

    /// Somebody may have worked on the files since. What is gone cannot be lost.
    private func checkBytes(_ layout: OpenedLayout, _ target: String, isFolder: Bool) throws {
        let found: [Finding]
        do { found = try layout.changes() } catch let error as BackupError where error.isOfBytes {
            throw Self.refusal(target, "it cannot be read: \(error.message)")
        }
        let changed = try found.filter { finding in
            guard finding.severity == .damage, ![.entryMissing, .entryUnexpected].contains(finding.code) else {
                return false
            }
            return try !(isFolder && isKnown(finding.subject, "\(target)/\(finding.subject)"))
        }
        // The two that tell of all others tell of each other.
        let lists = layout.findings.contains { $0.severity == .damage && $0.code != .entryMissing }
        let names =
            (lists ? ["\(Manifest.fileName) or \(ChecksumFile.fileName)"] : [])
            + Set(changed.map(\.subject)).sorted(by: precedesBytewise)
        guard !names.isEmpty else { return }
        throw Self.refusal(
            target, "\(firstNames(names)) changed since this tool wrote \(names.count == 1 ? "it" : "them")",
            "\(TypedCommand.quoted("verify", [target])) names every change")
    }

    private func checkFolder(_ target: String, _ named: Set<String>) throws {
        try Directory.walk(target) { path, status in
            if status.isDirectory || named.contains(path) || EntryName.isClutter(path) { return }
            let file = "\(target)/\(path)"
            if try isKnown(path, file) { return }
            throw Self.refusal(target, "no export and no restore of this tool wrote '\(path)' in it")
        }
    }

    private func checkFile(_ target: String, _ status: FileStatus, _ named: Set<String>) throws {
        if Store.isStore(target) { throw Self.refusal(target, "it is a store") }
        guard status.isRegular else { throw Self.refusal(target, "it is no ordinary file") }
        if status.size == 0 { return }
        guard !named.isEmpty else {
            if try isOfEvents(target) { return }
            throw Self.refusal(target, "it is not an export of this tool")
        }
        let reader = try CarrierOpener.open(target)
        for entry in try reader.list() where !named.contains(entry.path) && !EntryName.isClutter(entry.path) {
            throw Self.refusal(target, "no export of this tool wrote '\(entry.path)' in it")
        }
    }

    private func isKnown(_ relativePath: String, _ file: String) throws -> Bool {
        guard try FileStatus.ofName(file)?.isRegular == true else { return false }
        return try isKept(relativePath, Store.digest(ofFile: file)) || isOfEvents(file)
    }

    private func isOfEvents(_ file: String) throws -> Bool {
        guard let store, file.hasSuffix(".jsonl") else { return false }
        return try KnownEvents(store).holdsAll(of: file)
    }

    /// Whoever removed it would lose what is to be read.
    private static func refusalOfSource(_ target: String, _ reason: String) -> BackupError {
        BackupError(
            .refused, "--force does not replace this: \(reason)", at: target, remedy: "choose another place")
    }

    private static func refusal(_ target: String, _ reason: String, _ advice: String? = nil) -> BackupError {
        let ways = "choose another name, or remove it yourself"
        return BackupError(
            .refused, "--force does not replace this: \(reason)", at: target,
            remedy: advice.map { "\($0); \(ways)" } ?? ways)
    }
}

extension OpenedLayout {
    /// The names that a manifest of ours gives the files; empty where there is none.
    fileprivate var namedByUs: Set<String> {
        switch manifest {
        case .own: return Set(expected.keys)
        case .imbib(let manifest):
            guard manifest.appVersion.hasPrefix("backup-tool ") else { return [] }
            return Set((Array(manifest.checksums.keys) + [Manifest.fileName]).map { prefix + $0 })
        case .none: return []
        }
    }

    /// Which bytes are not what the manifest says.
    fileprivate func changes() throws -> [Finding] {
        guard isImbib else { return try CarrierCheck.digests(reader, expected: expected) }
        // The counts say nothing of single bytes.
        return try ContentCheck.run(self, ReadLimits(), .none).filter { $0.code != .countMismatch }
    }
}
