/// Which events, and where to.
public struct EventExportOptions: Sendable {
    /// Local days, both included.
    public var from: CivilDate?
    public var to: CivilDate?
    /// All types where this is empty.
    public var types: Set<String> = []
    public var replace = false
    public var progress = Progress.none

    public init() {}

    /// Whether days or a type were asked for.
    var isChoice: Bool { from != nil || to != nil || !types.isEmpty }

    /// What was asked for and is not there.
    func finding(about result: EventExportResult) -> Finding? {
        guard isChoice, result.events == 0 else { return nil }
        return Finding(
            .entryMissing, .warning,
            types.isEmpty ? "--from and --to" : types.sorted().map { "--type \($0)" }.joined(separator: " "),
            "the store has no such event",
            remedy: "'backup-tool events export -o - --dry-run' counts all events"
                + (types.isEmpty ? "" : "; without --type all types are written"))
    }
}

/// What an export of events wrote.
public struct EventExportResult: Sendable {
    public var events = 0
    public var days = 0
    public var bytes: Int64 = 0
    public var media = 0
    public var omitted: [Omission] = []
    public var warnings: [Finding] = []
}

/// Writes events as the apps read them: one line an event, as it was written, by day and by time.
public enum EventExporter {
    /// A folder with one file a local day, and the photos and videos that its lines name.
    public static func write(_ store: Store, toFolder path: String, _ options: EventExportOptions) throws
        -> EventExportResult
    {
        let place = try place(of: path, store, options)
        return try AtomicFile.writeDirectory(place, replace: options.replace) { folder in
            try store.read {
                let days = try EventDays(store, options)
                let sink = DayFolder(try RootDirectory(folder))
                try days.forEachDay { day, lines in try sink.write(day, lines) }
                var result = days.result
                let files = Result { try AssetFiles(of: store) }
                for path in days.media.sorted() { try copyMedia(path, store, files, sink.root, &result) }
                return noted(result, options)
            }
        }
    }

    /// All lines in one file.
    public static func write(_ store: Store, toFile path: String, _ options: EventExportOptions) throws
        -> EventExportResult
    {
        let place = try place(of: path, store, options)
        return try AtomicFile.write(place, replace: options.replace) { try write(store, to: $0, options) }
    }

    /// All lines one after the other, for a pipe.
    public static func write(_ store: Store, to file: FileHandle, _ options: EventExportOptions) throws
        -> EventExportResult
    {
        try store.read {
            let days = try EventDays(store, options)
            // Half an export is none.
            do { try days.forEachDay { _, lines in try file.write(lines) } } catch let error as ClosedPipe {
                throw error.asFailure
            }
            return noted(days.result, options)
        }
    }

    /// What an export would write to that path, or to a pipe where there is none. Throws where it would be refused.
    public static func count(
        _ store: Store, to path: String?, _ options: EventExportOptions
    ) throws -> EventExportResult {
        if let path { _ = try place(of: path, store, options) }
        return try store.read { noted(try EventDays(store, options).result, options) }
    }

    /// Where a path leads. Throws unless that is free, or may be replaced.
    private static func place(of path: String, _ store: Store, _ options: EventExportOptions) throws -> String {
        let place = try OutputPlace.behindLinks(path)
        var media: Set<String>?
        let replacing = Replacing(ofEventsBy: store) {
            let found = try media ?? store.read { try EventDays(store, options).media }
            media = found
            return found
        }
        try replacing.check(place, replace: options.replace)
        return place
    }

    private static func noted(_ result: EventExportResult, _ options: EventExportOptions) -> EventExportResult {
        var result = result
        if let finding = options.finding(about: result) { result.warnings.append(finding) }
        return result
    }

    private struct DayFolder {
        let root: RootDirectory

        init(_ root: RootDirectory) { self.root = root }

        func write(_ day: CivilDate, _ lines: UnsafeRawBufferPointer) throws {
            let file = try root.create("\(day.text).jsonl")
            try file.write(lines)
            try file.sync()
        }
    }

    private static func copyMedia(
        _ path: String, _ store: Store, _ files: Result<AssetFiles?, any Error>, _ root: RootDirectory,
        _ result: inout EventExportResult
    ) throws {
        let known = try store.ifSound { try store.asset("Attachments/" + path) ?? store.asset(path) }
        guard let asset = known ?? nil else {
            let reason = known == nil ? "its row in the store is damaged" : Omission.neverCame
            return result.omitted.append(Omission(path: path, reason: reason))
        }
        do {
            try EntryName.check(path)
            guard let files = try files.get() else {
                throw BackupError(.notFound, StoreLayout.noFolder, at: path)
            }
            let opened = try files.open(asset)
            if opened.isRemoved { result.warnings.append(StoreLayout.removed(asset.path)) }
            let digest = try root.copy(opened.file, to: path)
            result.media += 1
            guard digest != asset.digest else { return }
            result.warnings.append(StoreLayout.mismatch(asset, try opened.file.status()))
        } catch let error as BackupError where error.code != .interrupted && error.code != .destinationFull {
            result.omitted.append(Omission(path: path, reason: error.message))
        }
    }
}
