/// Turns a store into the files of a layout. Runs inside one read transaction: all of it is of one moment.
struct StoreLayout {
    let store: Store
    let options: ExportOptions
    var result = ExportResult()
    /// The store's state, where `gather` was asked for it and came by it.
    private(set) var state: StoreState?

    private var digest = ContentDigest()
    private var bibliography: BibliographyWriter?
    /// Where imbib wants the files; nil for our own layout.
    var imbibNames: ImbibNames?
    /// Where the files lie that entries of `library.bib` name, of those that imbib has to find.
    private(set) var namedFiles: Set<String> = []
    var notes: [(key: String, localID: String, change: Int64)] = []
    /// Publications that decisions have merged into others; read when the first note names one that is gone.
    var takers: [String: String]?
    let damaged: DamagedRows
    /// Rows that are not as the store has written them, or are gone.
    var changed: [Omission] = []
    private var events: [(day: CivilDate, instant: Timestamp, change: Int64)] = []
    /// One for all files: a fresh one for each makes the heap grow by hundreds of megabytes.
    private let copyBuffer = RawBuffer()
    /// The records of a store whose file is no larger are put in order in memory.
    private static let mostInMemory = 48 << 20

    init(_ store: Store, _ options: ExportOptions, provesTypeIndex: Bool = true) throws {
        self.store = store
        self.options = options
        time = options.clock.now()
        result.warnings += store.tablesLeftOut
        damaged = try DamagedRows(store, options.kinds)
        if provesTypeIndex { try proveTypeIndex() }
        try noteChangedSmallRows()
    }

    /// Must be done before anything is read by its type.
    mutating func proveTypeIndex() throws {
        if let finding = try store.leaveOutDamagedTypeIndex() { result.warnings.append(finding) }
    }

    /// Goes through the records, which all files but attachments are made of. `withBibliography` is false for whoever
    /// has `library.bib` already; `take` gets `records.jsonl` piece by piece, for whoever wants it. `withState` finds out the
    /// store's state on the way, if that takes no pass of its own.
    mutating func gather(
        withBibliography: Bool = true, withState: Bool = false, _ take: (([UInt8]) throws -> Void)? = nil
    ) throws {
        if withBibliography { bibliography = try newBibliography() }
        defer { result.warnings += store.damage.tell() }
        try gatherOtherDamage()
        try noteFilesOnTheWay()
        guard let take, try store.fileSize <= Self.mostInMemory else {
            let digest = BackgroundContentDigest()
            try gatherRecords(order: take == nil ? .change : .identity, withState) { lines in
                try digest.add(lines)
                try take?(lines.bytes)
            }
            self.digest = try digest.finish()
            return
        }
        // To read the rows as they lie and to sort their lines takes half the time of walking them in order.
        var sorter = RecordLineSorter()
        try gatherRecords(order: .change, withState) { sorter.add($0) }
        let batches = sorter.batches
        let digest = Aside {
            var digest = ContentDigest()
            for lines in batches { try digest.add(lines) }
            return digest
        }
        try sorter.forEachText(take)
        self.digest = try digest.finish()
    }

    /// For whoever finds out afterwards that `library.bib` is wanted.
    mutating func gatherBibliography() throws {
        var bibliography = try newBibliography()
        try store.forEachLive(type: RecordType.publication) { try bibliography?.note($0.record) }
        self.bibliography = bibliography
    }

    private func newBibliography() throws -> BibliographyWriter? {
        guard options.kinds.contains(.publications) else { return nil }
        var parts: [Record] = []
        try store.forEachLive(type: RecordType.bibliographyPart) { parts.append($0.record) }
        var bibliography = BibliographyWriter.Options(order: options.order)
        if let imbibNames {
            bibliography.place = imbibNames.place
            bibliography.namesFiles = true
        }
        return try BibliographyWriter(parts: parts, bibliography)
    }

    /// When the export was made: one moment for all of it.
    let time: Timestamp

    /// One pass over the records: the lossless form is written, and what the views need is noted.
    private mutating func gatherRecords(
        order: Store.Order, _ withState: Bool, _ take: (RecordLines) throws -> Void
    ) throws {
        var lines = RecordLineWriter()
        var tally = RowTally()
        func gather(_ stored: Store.StoredRecord) throws {
            try Interrupt.check()
            let record = stored.record
            let kind = record.kind
            guard options.kinds.contains(kind) else { return }
            if try lines.write(record, take) > CloudLimits.recordBytes {
                result.warnings.append(
                    Finding(
                        .willNotSync, .note, record.id.description,
                        "is larger than 1 MB: it is kept here and will not sync"))
            }
            if !stored.isAsWritten { noteChanged(record.id.description) }
            if record.isDeleted {
                result.tombstones += 1
            } else {
                if RecordType.isCounted(record.type) { result.records[kind, default: 0] += 1 }
                try noteForViews(stored, kind)
            }
        }
        if withState, order == .change {
            state = try store.state(tally: &tally, damaged: damaged.add, visiting: gather)
        } else {
            try store.forEachStored(order: order, tally: &tally, damaged: damaged.add, gather)
        }
        try lines.finish(take)
        try noteGone(besides: tally)
    }

    private mutating func noteForViews(_ stored: Store.StoredRecord, _ kind: Kind) throws {
        switch kind {
        case .publications where stored.record.type == RecordType.publication: try bibliography?.note(stored.record)
        case .notes:
            try notes.append((currentKey(of: stored.record), stored.record.localID, stored.change))
        case .events:
            guard let time = EventText.time(in: try Fields.parse(stored.record.fields)) else {
                result.warnings.append(
                    Finding(
                        .malformed, .warning, stored.record.id.description,
                        "has no readable time, so it stands in no day's file; records.jsonl has it"))
                return
            }
            events.append((time.day, time.instant, stored.change))
        default: break
        }
    }

    /// Visits the files that are made of records, but for `records.jsonl`: each with its path and what writes it.
    mutating func forEachView(_ body: (_ path: String, _ write: (TextSink) throws -> Void) throws -> Void) throws {
        if bibliography != nil { try body(Layout.bibliography) { try writeBibliography(to: $0) } }
        if options.kinds.contains(.notes) { try body(Layout.notes) { try writeNotes(to: $0) } }
        if options.kinds.contains(.settings) { try body(Layout.settings) { try writeSettings(to: $0) } }
        try forEachEventFile(body)
        let rows = damaged.lines
        guard !rows.isEmpty else { return }
        try body(Layout.damaged) { sink in for row in rows { try sink { $0 += "\(row)\n".utf8 } } }
    }

    /// `library.bib`
    mutating func writeBibliography(to sink: TextSink) throws {
        guard var bibliography else { return }
        // It holds all entries, and is done with.
        self.bibliography = nil
        try bibliography.write(to: sink)
        result.warnings += bibliography.findings
        namedFiles = bibliography.named
        for text in bibliography.parts.unreadable {
            if options.form.holdsRecords {
                result.warnings.append(
                    Finding(
                        .keptAsWritten, .note, Layout.bibliography, "lacks unreadable text, which records.jsonl has"))
            } else {
                omit(Layout.bibliography, "\(Omission.noBibTeX)\(text)")
            }
        }
    }

    /// imbib's backup has no place for these.
    mutating func omitWhatImbibLacks() {
        for kind in [Kind.events, .records] {
            guard let count = result.records.removeValue(forKey: kind), count > 0 else { continue }
            omit(kind.rawValue, "\(count) of them: \(Omission.noPlaceInImbib)")
        }
    }

    /// `settings.json`
    func writeSettings(to sink: TextSink) throws {
        try sink { out in
            var separator = "{\n  "
            for setting in try store.settings() {
                out += separator.utf8
                appendJSONString(setting.name, to: &out)
                out += ": \(setting.value)".utf8
                separator = ",\n  "
            }
            out += (separator == "{\n  " ? "{}\n" : "\n}\n").utf8
        }
    }

    /// `events/<day>.jsonl`, one after the other; within a day by time, then in the order they came.
    private mutating func forEachEventFile(
        _ body: (_ path: String, _ write: (TextSink) throws -> Void) throws -> Void
    ) throws {
        events.sort { ($0.day, $0.instant, $0.change) < ($1.day, $1.instant, $1.change) }
        var start = 0
        while start < events.count {
            let day = events[start].day
            var end = start
            var lines: [(instant: Timestamp, text: String)] = []
            while end < events.count, events[end].day == day {
                let event = events[end]
                end += 1
                guard let text = try store.ifSound({ try store.fields(change: event.change) }) else { continue }
                lines.append((event.instant, text))
            }
            // Not by change number: that would make the bytes depend on the order of arrival.
            lines.sort { $0.instant == $1.instant ? $0.text < $1.text : $0.instant < $1.instant }
            try body("\(Layout.eventFolder)\(day.text).jsonl") { sink in
                for line in lines {
                    try sink { out in
                        out += line.text.utf8
                        out.append(0x0A)
                    }
                }
            }
            start = end
        }
    }

    /// Adds every asset, or says why one is left out.
    mutating func addAssets(
        to writer: LayoutWriter, path: (Asset) -> String = \.path,
        also: ((Asset) -> ((UnsafeRawBufferPointer) -> Void))? = nil
    ) throws {
        guard options.kinds.contains(.attachments) else { return }
        let files = try AssetFiles(of: store)
        var names = EntryNameSet()
        for name in writer.files.keys { try names.insert(name) }
        try store.forEachAsset { asset in
            try Interrupt.check()
            if asset.size > CloudLimits.assetBytes, try leaveOutOversize(asset) { return }
            let name = path(asset)
            let file: FileHandle
            let status: FileStatus
            do {
                try EntryName.check(name)
                try names.insert(name)
                guard let files else { throw BackupError(.notFound, Self.noFolder, at: asset.path) }
                let opened = try files.open(asset)
                file = opened.file
                status = try file.status()
                if opened.isRemoved { result.warnings.append(Self.removed(asset.path)) }
            } catch let error as BackupError where error.code != .interrupted {
                result.omitted.append(Omission(path: asset.path, reason: error.message))
                return
            }
            var problem: BackupError?
            let found = try writer.add(
                name, size: status.size, modified: floorDivide(asset.modifiedNanoseconds, 1_000_000_000),
                isLocalOnly: asset.isLocalOnly, also: also?(asset)
            ) { sink in problem = try copy(file, size: status.size, sink) }
            let exported = Asset(path: name, size: status.size, digest: found, isLocalOnly: asset.isLocalOnly)
            digest.add(exported)
            judge(asset, status, found: found, problem)
        }
        try noteStrayFiles(among: store.lookForUnknownFiles())
    }

    /// The assets that shall be kept, for carriers that read files themselves; what is left out is noted.
    mutating func chosenAssets() throws -> [Asset] {
        guard options.kinds.contains(.attachments) else { return [] }
        var chosen: [Asset] = []
        var names = EntryNameSet()
        for name in Layout.files { try names.insert(name) }
        try store.forEachAsset { asset in
            try Interrupt.check()
            if asset.size > CloudLimits.assetBytes, try leaveOutOversize(asset) { return }
            do {
                try EntryName.check(asset.path)
                try names.insert(asset.path)
                // Nobody's attachment takes the place of a file of ours; which days there are is not known yet.
                guard !Layout.liesInEventFolder(asset.path) else {
                    throw BackupError(.refused, "lies where the events' files are", at: asset.path)
                }
                chosen.append(asset)
            } catch let error as BackupError { omit(asset.path, error.message) }
        }
        return chosen
    }

    /// Names the files in the store's folder that no asset stands for.
    mutating func noteStrayFiles(among unknown: Aside<Store.UnknownFiles>?) throws {
        for finding in try store.strayFiles(among: unknown) { note(finding) }
    }

    mutating func omit(_ path: String, _ reason: String) {
        result.omitted.append(Omission(path: path, reason: reason))
    }

    /// Notes what such a carrier took; after `gather`.
    mutating func took(_ assets: ContentDigest, _ warnings: [Finding], _ omitted: [Omission]) {
        digest.add(assets.items)
        for warning in warnings { note(warning) }
        result.omitted += omitted
    }

    private mutating func judge(_ asset: Asset, _ status: FileStatus, found: SHA256Digest, _ problem: BackupError?) {
        if let problem {
            result.omitted.append(
                Omission(path: asset.path, reason: "\(problem.message); what could not be read is zeros in the export"))
        } else if found != asset.digest {
            note(Self.mismatch(asset, status))
        }
    }

    /// Why no attachment can be had.
    static let noFolder = "the folder of the store's attachments is not there"

    /// Damage leaves a file's time as it was, or the file empty; what an app writes does not.
    static func mismatch(_ asset: Asset, _ status: FileStatus, was done: String = "exported") -> Finding {
        let restore = TypedCommand.quoted("restore BACKUP", options: ["match": asset.path])
        guard !Store.isHarmed(status, asset) else {
            return Finding(
                .digestMismatch, .damage, asset.path, "\(Store.harm(status, asset)); it was \(done) as it is now",
                remedy: "\(restore) brings it back from a backup that is older than the damage")
        }
        return Finding(
            .digestMismatch, .warning, asset.path, "is not what the store remembers; it was \(done) as it is now",
            remedy: """
                'backup-tool store adopt' takes a change of yours into the store; \
                \(restore) brings back what it was
                """)
    }

    static func removed(_ path: String, was done: String = "exported") -> Finding {
        Finding(
            .entryMissing, .warning, path,
            "is not in the store's folder; it was \(done) from what the store keeps for an undo",
            remedy: "'backup-tool store adopt' puts it back")
    }

    private mutating func leaveOutOversize(_ asset: Asset) throws -> Bool {
        switch options.oversize {
        case .include:
            result.warnings.append(
                Finding(.willNotSync, .note, asset.path, "is larger than 250 MB: it is exported and will not sync"))
            return false
        case .skip:
            result.omitted.append(Omission(path: asset.path, reason: Omission.oversize))
            return true
        case .fail:
            throw BackupError(
                .refused, "is larger than 250 MB", at: asset.path, remedy: "export it with --oversize include")
        }
    }

    /// Exactly `size` bytes: what is appended meanwhile waits for the next export. One bad sector must not keep everything
    /// else from being exported, and the size was announced already: from where the file cannot be read, zeros stand for
    /// it, and the problem is returned.
    private func copy(
        _ file: FileHandle, size: Int64, _ sink: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> BackupError? {
        var left = size
        var problem: BackupError?
        let buffer = try copyBuffer.with(count: 1 << 20)
        while left > 0 {
            let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(left, Int64(buffer.count)))])
            var count = 0
            if problem == nil {
                do {
                    count = try file.read(into: wanted, at: size - left)
                    if count < wanted.count {
                        problem = BackupError(.temporary, "became shorter while it was read", at: file.path)
                    }
                } catch let error as BackupError { problem = error }
            }
            UnsafeMutableRawBufferPointer(rebasing: wanted[count...]).initializeMemory(as: UInt8.self, repeating: 0)
            try sink(UnsafeRawBufferPointer(wanted))
            left -= Int64(wanted.count)
        }
        return problem
    }

    /// The content digest of what was exported; call it once, last.
    mutating func finishDigest() throws -> SHA256Digest {
        if options.kinds.contains(.settings) {
            for setting in try store.settings() { try digest.addSetting(setting.name, setting.value) }
        }
        for row in damaged.lines { digest.addDamaged(row) }
        return digest.finish()
    }
}
