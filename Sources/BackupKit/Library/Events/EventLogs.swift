/// Event logs on their way into a store, with the photos and videos that their lines name.
final class EventLogs {
    private let intake: Intake
    private let paths: [String]
    private let options: ImportOptions
    private let scan: EventScan?
    private var media: EventMedia
    /// The files that lines name and that were found.
    var found: Set<ByteName> { media.found }

    /// Reads the logs, unless the store is empty: then they are read when they are taken, inside the batch.
    init(_ paths: [String], for intake: Intake, in folder: String, _ options: ImportOptions) throws {
        (self.intake, self.paths, self.options) = (intake, paths, options)
        media = EventMedia(of: paths, in: folder)
        if intake.takesBatches, !options.dryRun, try intake.store.isEmpty() {
            scan = nil
        } else {
            let scan = try EventScan(
                paths, for: intake.store, lineBytes: options.limits.lineBytes, options.progress)
            self.scan = scan
            try find(scan.media)
        }
    }

    /// Inside the batch.
    func take() throws {
        let rejects = options.rejected.map(RejectedLines.init)
        if let scan {
            // Where each line has to be shown, `FileIntake` has taken them one by one.
            if intake.takesBatches { try EventIntake(intake, scan, rejects: rejects).take() }
        } else {
            let load = try EventLoad(intake, paths, lineBytes: options.limits.lineBytes, rejects: rejects)
            try load.take(options.progress)
            try find(load.media)
        }
        try media.take(into: intake)
    }

    /// In one order, however the logs were read: of two names that fall together the first one is kept.
    private func find(_ named: [(file: Int, path: String)]) throws {
        let sorted = named.sorted { $0.file != $1.file ? $0.file < $1.file : precedesBytewise($0.path, $1.path) }
        try media.find(sorted, for: intake.store, dryRun: options.dryRun)
    }

    /// Inside the batch, after the events.
    func take(_ attachments: AttachmentFolder) throws -> [AttachmentFolder.Taken] {
        try media.take(attachments, into: intake)
    }

    /// Gives events the files of `--attachments` that they name and that were not found beside their logs, and says which are
    /// missing. Inside the batch, after these files.
    func claim(_ files: [AttachmentFolder.Taken]) throws { try media.claim(files, intake) }
}
