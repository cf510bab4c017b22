/// Event logs on their way into a store, with the photos and videos that their lines name.
final class EventLogs {
    private let intake: Intake
    private let paths: [String]
    private let folder: String
    private let options: ImportOptions
    private let scan: EventScan?
    private var media: AttachmentFolder
    private var missing: [String] = []
    /// The files that lines name and that were found.
    private(set) var found: Set<ByteName> = []

    /// Reads the logs, unless the store is empty: then they are read when they are taken, inside the batch.
    init(_ paths: [String], for intake: Intake, in folder: String, _ options: ImportOptions) throws {
        (self.intake, self.paths, self.folder, self.options) = (intake, paths, folder, options)
        media = try AttachmentFolder(folder)
        if intake.takesBatches, !options.dryRun, try intake.store.isEmpty() {
            scan = nil
        } else {
            let scan = try EventScan(
                paths, for: intake.store, lineBytes: options.limits.lineBytes, options.progress)
            self.scan = scan
            try find(scan.media)
        }
    }

    private func find(_ named: [(file: Int, path: String)]) throws {
        for (file, path) in named {
            // Beside the log, or beside the folder of logs.
            let beside = parent(of: paths[file])
            let places = ["\(beside)/\(path)", "\(parent(of: beside))/\(path)"]
            if let place = try places.first(where: { try FileStatus.ofTarget($0)?.isRegular == true }) {
                try media.add(place, as: path, for: intake.store, dryRun: options.dryRun)
                found.insert(ByteName(place))
            } else if try intake.store.asset("Attachments/" + path) == nil, try intake.store.asset(path) == nil {
                missing.append(path)
            }
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
        try media.places(into: intake)
        for path in missing {
            intake.note(
                Finding(
                    .linkMissing, .warning, path, "is named by an event, but was not found",
                    remedy: "put it where the event says, beside the log, and import the log again"))
        }
    }
}

extension Importer {
    /// Calls `body`, which imports event logs, and keeps their lines that cannot be taken in a file of their own.
    public static func keepingRejected<Result>(
        in path: String, of paths: [String], _ options: ImportOptions, replace: Bool,
        _ body: (ImportOptions) throws -> Result
    ) throws -> Result {
        if replace {
            let logs = try paths.flatMap { try sources(of: $0, limits: options.limits) }.compactMap { source in
                if case .events(let log) = source { log } else { nil }
            }
            try Replacing.check(rejected: path, from: logs, lineBytes: options.limits.lineBytes)
        }
        return try AtomicFile.write(path, replace: replace) { file in
            var options = options
            options.rejected = file
            return try body(options)
        }
    }
}
