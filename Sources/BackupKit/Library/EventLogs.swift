/// Event logs on their way into a store, with the photos and videos that their lines name.
struct EventLogs {
    private let scan: EventScan
    private let media: AttachmentFolder
    private var missing: [String] = []
    /// The files that lines name and that were found.
    private(set) var taken: Set<String> = []

    init(_ paths: [String], for store: Store, in folder: String, _ options: ImportOptions) throws {
        scan = try EventScan(paths, for: store, lineBytes: options.limits.lineBytes, options.progress)
        var media = try AttachmentFolder(folder)
        for (file, path) in scan.media {
            // Beside the log, or beside the folder of logs.
            let beside = parent(of: paths[file])
            let places = ["\(beside)/\(path)", "\(parent(of: beside))/\(path)"]
            if let place = try places.first(where: { try FileStatus.ofTarget($0)?.isRegular == true }) {
                try media.add(place, as: path, for: store, dryRun: options.dryRun)
                taken.insert(place)
            } else if try store.asset("Attachments/" + path) == nil, try store.asset(path) == nil {
                missing.append(path)
            }
        }
        self.media = media
    }

    /// Inside the batch.
    func take(into intake: Intake, _ options: ImportOptions) throws {
        // Where each line has to be shown, `FileIntake` has taken them one by one.
        if intake.takesBatches {
            try EventIntake(intake, scan, rejects: options.rejected.map(RejectedLines.init)).take()
        }
        try media.place(into: intake)
        if let first = missing.first {
            let count = missing.count == 1 ? "a file that is" : "\(missing.count) files that are"
            intake.note(Finding(.entryMissing, .note, first, "lines name \(count) not here"))
        }
    }
}
