/// What is wrong with a backup whose files lie in a folder.
extension Restorer {
    static func judge(
        _ layout: OpenedLayout, _ staged: Staging.Result, in folder: String
    ) throws -> [Finding] {
        var findings = staged.findings
        if case .imbib(let manifest) = layout.manifest {
            return try findings
                + ContentCheck.compare(manifest, staged.folds, layout).filter { !staged.damaged.contains($0.subject) }
                + losses(manifest, layout, in: folder)
        }
        guard !layout.expected.isEmpty else { return findings }
        let tally = CarrierCheck.Tally(expected: layout.expected, progress: .none)
        for entry in layout.entries where !staged.damaged.contains(entry.path) {
            tally.seen(entry, staged.files[entry.path]?.digest)
        }
        findings += tally.finish().filter { !staged.damaged.contains($0.subject) }
        return findings
    }

    /// The manifest of imbib counts, and its sums say nothing of an entry that is gone.
    private static func losses(_ manifest: ImbibManifest, _ layout: OpenedLayout, in folder: String) throws -> [Finding]
    {
        var counts = Counts()
        let file = "\(folder)/\(layout.prefix)\(Layout.bibliography)"
        if try FileStatus.ofName(file)?.isRegular == true {
            var reader = BibReader()
            let count = { (block: BibBlock) in if block.kind == .entry { counts.entries += 1 } }
            try FileHandle.openText(file).forEachChunk { reader.feed($0, emit: count) }
            reader.finish(emit: count)
        }
        counts.attachments = layout.entries.count { layout.role(of: $0.path) == .attachment }
        return counts.compare(with: manifest).filter { $0.severity == .damage }
    }
}
