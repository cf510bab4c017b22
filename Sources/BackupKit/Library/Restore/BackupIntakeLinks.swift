/// Which publications the files of a backup belong to, where no record says so.
extension BackupIntake {
    /// Links the files of a backup with the publications of its `library.bib` that name them; `places` are where they lie in
    /// the store.
    func linkAttachments(
        _ publications: FromBibliography, _ places: [(name: String, place: String)], _ intake: Intake
    ) throws {
        guard !publications.names.isEmpty else { return }
        // A folder that nobody made as a backup: its files may be named after their entries.
        let isPlainFolder = prepared.layout.manifest.isMissing
        if isPlainFolder {
            let taken = places.map { AttachmentFolder.Taken(relative: $0.name, place: $0.place) }
            try AttachmentLinks(intake.store, imported: publications.names).link(taken, by: intake)
        }
        let files = AttachmentPaths(places.filter { !publications.claimed.contains(ByteName($0.place)) })
        for (localID, names) in publications.names.map({ ($0.key.text, $0.value) })
            .sorted(by: { precedesBytewise($0.0, $1.0) })
        {
            guard let record = try publication(localID, intake.store) else { continue }
            let fields = try Fields.parse(record.fields)
            // The publication may name more, from earlier imports.
            let links = Publication.links(in: fields).filter { names.contains(ByteName($0.path)) }
            let found = links.compactMap(files.place)
            if !isPlainFolder { try intake.link(found, to: localID) }
            guard isPlainFolder || prepared.layout.isImbib, kinds.contains(.attachments) else { continue }
            // An entry may name one file in several fields, by the paths of several apps.
            let present = Fields.strings(Publication.linkedFiles, in: fields)
            let named = links.filter { files.place(of: $0) != nil }.flatMap(\.readings) + present
            let names = Set(named.map { lastComponent(of: $0) })
            for link in links where !link.readings.contains(where: { names.contains(lastComponent(of: $0)) }) {
                intake.noteMissing(link.path, of: record)
            }
        }
    }
}
