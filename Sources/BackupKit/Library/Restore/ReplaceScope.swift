/// What `--mode replace` may remove. Only a backup that can be read tells what it does not have.
extension Restorer.Prepared {
    /// Whether what the backup has may take the place of what the store has. What is left of a damaged one, with no checksum
    /// to vouch for it, is added where the store has nothing; that is said.
    func mayReplace(_ options: RestoreOptions, _ intake: Intake) -> Bool {
        guard options.mode == .replace, let damage = hidingDamage, layout.expected.isEmpty, !layout.isImbib else {
            return options.mode == .replace
        }
        intake.note(
            Finding(
                .skipped, .warning, path,
                "is damaged (\(damage.subject)), and no checksum vouches for what is left of it, so nothing in the store "
                    + "was replaced",
                remedy: "'backup-tool restore BACKUP --allow-damage --create --store NEW' shows what is left of it"))
        return false
    }

    /// The kinds of which the restore removes what the backup does not have. Where damage may hide what the backup had,
    /// nothing is removed, and that is said.
    func replacedKinds(_ options: RestoreOptions, _ intake: Intake) -> Set<Kind> {
        guard options.mode == .replace, options.match == nil else { return [] }
        guard let damage = hidingDamage else { return layout.kinds(of: options.kinds) }
        intake.note(
            Finding(
                .skipped, .warning, path,
                "is damaged (\(damage.subject)) and may have held more, so nothing was removed from the store",
                remedy: "restore an undamaged backup to remove what it does not hold"))
        return []
    }

    /// Damage that may hide records or files: all but that of single attachments, which the manifest lists.
    private var hidingDamage: Finding? {
        findings.first { finding in
            finding.severity == .damage
                && (layout.role(of: finding.subject) != .attachment || layout.expected[finding.subject] == nil)
        }
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
