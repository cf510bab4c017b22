import Synchronization

/// What `verify` found.
public struct VerifyResult: Sendable {
    public enum Level: String, Sendable, CaseIterable {
        /// Structure, names and sizes.
        case quick
        /// Every digest, every count, every format.
        case full
        /// Full, and a restore into a scratch store that must arrive at the same content digest.
        case deep
    }

    public var level = Level.full
    public var files = 0
    public var bytes: Int64 = 0
    public var contentDigest: SHA256Digest?
    public var findings: [Finding] = []
    /// Linked files that only other devices had when the backup was made: it is whole without them.
    public var elsewhere: [String] = []
    /// Whether something was found that is no damage and yet keeps the result from being a proof.
    public var needsAttention: Bool {
        findings.contains { $0.severity != .note }
    }
    public var isOK: Bool { !findings.contains { $0.severity == .damage } }
}

public enum Verifier {
    public static func verify(
        _ path: String, level: VerifyResult.Level = .full, limits: ReadLimits = ReadLimits(),
        progress: Progress = .none
    ) throws -> VerifyResult {
        var result = VerifyResult()
        result.level = level
        try Importer.refuseSingleFile(path)
        if let status = try FileStatus.ofTarget(path), !status.isRegular, !status.isDirectory {
            throw BackupError(.usage, "is no file or folder, so it is no backup", at: path)
        }
        let layout: OpenedLayout
        do { layout = try OpenedLayout.open(path, limits: limits) } catch let error as BackupError {
            guard let finding = finding(for: error, path) else { throw error }
            result.findings = [finding]
            return result
        }
        guard layout.isLayout || layout.isDamaged else {
            throw layout.noLibrary(at: path, "'backup-tool list BACKUP' shows what it holds")
        }
        result.files = layout.entries.count
        result.bytes = layout.entries.reduce(0) { $0 &+ $1.size }
        result.findings = layout.findings + layout.gaps(Set(Kind.allCases))
        if case .own(let manifest) = layout.manifest { result.contentDigest = manifest.contentDigest }
        result.elsewhere = layout.filesElsewhere
        let isNewer = isNewer(layout)
        if isNewer {
            result.findings.append(
                Finding(
                    .newerSchema, .warning, path,
                    "holds data of schema \(layout.manifest.schemaVersion ?? 0), which this backup-tool cannot restore",
                    remedy: "use a newer backup-tool; 'backup-tool restore BACKUP --to DIR' gives you the plain files"))
        }
        switch level {
        case .quick: result.findings += try quick(layout)
        case .full: result.findings += try ContentCheck.run(layout, limits, progress)
        case .deep:
            result.findings += try ContentCheck.run(layout, limits, progress)
            if result.isOK, !isNewer {
                let found = try deep(path, layout, limits, progress)
                result.findings += found.filter { !result.findings.contains($0) }
            }
        }
        result.findings = result.findings.withoutRepeats
        return result
    }

    /// Damage is what verify is there to find: it is reported like everything else.
    private static func finding(for error: BackupError, _ path: String) -> Finding? {
        switch error.code {
        case .damaged:
            Finding(.archiveDamaged, .damage, error.subject ?? path, error.message, remedy: error.remedy)
        case .refused:
            Finding(.entryRefused, .damage, error.subject ?? path, error.message, remedy: error.remedy)
        default: nil
        }
    }

    private static func isNewer(_ layout: OpenedLayout) -> Bool {
        guard let version = layout.manifest.schemaVersion else { return false }
        return SchemaVersion.refusal(of: version, at: nil) != nil
    }

    private static func quick(_ layout: OpenedLayout) throws -> [Finding] {
        if case .imbib(let manifest) = layout.manifest {
            let present = Set(layout.entries.map(\.path))
            let missing = manifest.checksums.keys.sorted().map { layout.prefix + $0 }.filter { !present.contains($0) }
            return [ContentCheck.weakness(layout)]
                + missing.map { Finding(.entryMissing, .damage, $0, "is in the manifest and not here") }
        }
        guard !layout.expected.isEmpty else { return [] }
        let tally = CarrierCheck.Tally(expected: layout.expected, progress: .none)
        for entry in layout.entries { tally.seen(entry, nil) }
        var findings = tally.finish()
        if let archive = layout.reader as? ArchiveReader { findings += try archive.checkStructure() }
        return findings
    }

    private static func deep(
        _ path: String, _ layout: OpenedLayout, _ limits: ReadLimits, _ progress: Progress
    ) throws -> [Finding] {
        try ScratchStore.with { store in
            var options = RestoreOptions()
            options.kinds = Set(Kind.allCases)
            options.limits = limits
            options.progress = progress
            options.namesFilesElsewhere = false
            let restored = try Restorer.restore(path, opened: layout, into: store, options)
            var findings = restored.findings.filter { finding in
                // What a restore asks a person to decide says nothing about the backup.
                finding.severity != .note && ![.conflict, .unlinked, .oversize].contains(finding.code)
            }
            if case .own(let manifest) = layout.manifest {
                let digest = try store.read { try store.contentDigest(kinds: manifest.kinds) }
                if digest != manifest.contentDigest {
                    findings.append(
                        Finding(
                            .contentMismatch, .damage, path,
                            "restores to content digest \(digest.hex), the manifest says \(manifest.contentDigest.hex)")
                    )
                }
            }
            return findings
        }
    }
}

extension OpenedLayout {
    /// A vault's own folder, whose files are of no use to anybody.
    var isVault: Bool {
        !isLayout
            && [VaultFile.Kind.config, .key].allSatisfy { kind in
                entries.contains { $0.path == kind.rawValue || $0.path.hasPrefix("\(kind.rawValue)/") }
            }
    }

    /// What to say of something that is no library.
    func noLibrary(at path: String, _ remedy: String? = nil) -> BackupError {
        BackupError(
            .notFound, "is not a library of backup-tool or imbib", at: path,
            remedy: isVault ? VaultAddress.advice(for: path) : remedy)
    }
}
