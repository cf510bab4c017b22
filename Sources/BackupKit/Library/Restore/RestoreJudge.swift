/// What is wrong with a backup that is to be restored: all that `verify` says of it, but for notes on what is kept as it
/// was written, and more publications than imbib has counted.
extension Restorer {
    static func judge(_ layout: OpenedLayout, _ staged: Staging.Result, _ kinds: Set<Kind>) -> [Finding] {
        let found =
            layout.findings + layout.gaps(kinds).filter { !staged.passedOver.contains(layout.prefix + $0.subject) }
            + staged.findings.filter { finding in
                finding.severity == .damage || finding.severity == .warning && finding.code != .countMismatch
            }
        return (found + (found.contains { $0.severity == .damage } ? unproved(layout, staged) : [])).withoutRepeats
    }

    /// Files that a damaged backup gives without saying what they should be.
    private static func unproved(_ layout: OpenedLayout, _ staged: Staging.Result) -> [Finding] {
        guard layout.manifest.isMissing else { return [] }
        return staged.files.keys.filter { layout.expected[$0] == nil && !layout.isClutter($0) }.sorted().map {
            Finding(
                .manifestMissing, .warning, $0, "comes from a damaged backup, and no checksum vouches for it",
                remedy: "compare it with an older backup")
        }
    }
}

extension Restorer.Prepared {
    /// The files that were damaged already when the backup was made, as it says itself.
    var rottenFiles: Set<String> {
        guard case .own(let manifest) = layout.manifest else { return [] }
        return Set(manifest.omitted.filter { $0.findingOfHeld?.code == .digestMismatch }.map(\.path))
    }

    /// Whether it says that nothing vouches for an attachment, which matters only where that is taken.
    func isOfUnprovedFile(_ finding: Finding) -> Bool {
        finding.code == .manifestMissing && layout.role(of: finding.subject) == .attachment
    }
}

extension Finding {
    /// Whether the file that it names is not what it was. A file that holds less than was counted is not sound, and what it
    /// holds is all there is of it; single lines are judged where they are read.
    var isOfBytes: Bool { severity == .damage && code != .countMismatch }
}
