/// The names of the library layout (`docs/design.md`): the set of relative paths that every export and restore speaks.
enum Layout {
    static let readme = "README.txt"
    static let bibliography = "library.bib"
    static let notes = "notes.json"
    static let settings = "settings.json"
    static let records = "records.jsonl"
    static let damaged = "damaged.jsonl"
    static let eventFolder = "events/"
    static let attachmentFolders = RecordFiles.folders
    /// All that have one fixed name.
    static let files = [
        readme, bibliography, notes, settings, records, damaged, Manifest.fileName, ChecksumFile.fileName,
    ]

    /// Also on a file system that folds case.
    static func liesInEventFolder(_ path: String) -> Bool {
        path.utf8.count > eventFolder.utf8.count
            && zip(path.utf8, eventFolder.utf8).allSatisfy { $0 | 0x20 == $1 | 0x20 }
    }

    /// What an entry of a layout is.
    enum Role: Equatable {
        case readme, bibliography, notes, settings, events, records, damaged, attachment, manifest, checksums
        case unknown
    }

    static func role(of path: String) -> Role {
        switch path {
        case readme: .readme
        case bibliography: .bibliography
        case notes: .notes
        case settings: .settings
        case records: .records
        case damaged: .damaged
        case Manifest.fileName: .manifest
        case ChecksumFile.fileName: .checksums
        default:
            if path.hasPrefix(eventFolder), path.hasSuffix(".jsonl") {
                .events
            } else if attachmentFolders.contains(where: path.hasPrefix) || path.hasPrefix("\(Quarantine.zone)/") {
                .attachment
            } else {
                .unknown
            }
        }
    }

    /// The same of a file that an export of ours wrote: whatever has no fixed name is an attachment.
    static func role(ofExported path: String) -> Role {
        let role = role(of: path)
        return role == .unknown ? .attachment : role
    }

    static let readmeText = """
        This is a library exported by backup-tool. You do not need backup-tool to read
        it.

        library.bib    publications, BibTeX: any reference manager opens it
        notes.json     notes on publications, one object each: citeKey and note
        settings.json  settings and feature flags, one JSON object
        events/        a diary, one file a day, one JSON object a line
        records.jsonl  everything above and all other records, one JSON object a line,
                       whole: "fields" is what the app stored; "deletedAt" marks a
                       record that was deleted (nothing else is kept of it)
        damaged.jsonl  only where rows of the store could not be read: their values as
                       they are, one JSON object a line
        PDFs/, Attachments/   the files themselves, under their own names
        manifest.json  when this was written and by what, how much there is, and each
                       file's size and SHA-256
        SHA256SUMS     the same SHA-256 values; this checks every file:
                       sha256sum -c SHA256SUMS

        An archive of this folder is opened by
            tar -xf NAME.tar.zst    (also .tar.gz, .tar.xz, .tar; .zst needs zstd)
            unzip NAME.zip

        All text is UTF-8 and lines end in LF, but for BibTeX entries that came with
        other line ends. records.jsonl keeps the bytes of entries that came in
        Latin-1.

        """
}
