/// What `--mode replace` may remove. Only a backup that can be read tells what it does not have.
extension Restorer.Prepared {
    /// The kinds of which goes what the backup does not have.
    func replacedKinds(_ options: RestoreOptions) -> Set<Kind> {
        guard options.mode == .replace, options.match == nil, hidingDamage == nil else { return [] }
        return layout.kinds(of: options.kinds)
    }

    /// Damage that may hide records or files: all but that of single attachments, which the manifest lists.
    private var hidingDamage: Finding? {
        findings.first { finding in
            finding.severity == .damage
                && (layout.role(of: finding.subject) != .attachment || layout.expected[finding.subject] == nil)
        }
    }

    /// Says that nothing was removed where something might have been.
    func noteWhatStays(_ options: RestoreOptions, _ intake: Intake) {
        guard options.mode == .replace, options.match == nil, let hidingDamage else { return }
        intake.note(
            Finding(
                .skipped, .warning, path,
                "its damage may hide what it held (\(hidingDamage.subject)), so nothing was removed from the store",
                remedy: "restore a backup without damage to remove what it does not hold"))
    }

    /// The attachments that the backup speaks of, and cannot give: damaged ones, and those that were left out when it was
    /// made. They are not missing from it, so the store's files stay.
    func filesItLacks(_ unsound: Set<String>) -> [String] {
        var paths = unsound.filter { layout.role(of: $0) == .attachment }.map {
            String($0.dropFirst(layout.prefix.count))
        }
        if case .own(let manifest) = layout.manifest { paths += manifest.omitted.map(\.path) }
        return paths
    }
}
