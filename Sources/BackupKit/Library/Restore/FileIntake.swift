/// Takes single files of the apps into a store.
struct FileIntake {
    let intake: Intake
    let limits: ReadLimits

    init(_ intake: Intake, _ limits: ReadLimits) {
        self.intake = intake
        self.limits = limits
    }

    /// `records.jsonl`. Tombstones first: one that belongs to a local-only copy must be known before the copy arrives. A
    /// tombstone that would take a record of another name comes last, when it is known whether the backup has that alive. So
    /// does a work that stays or goes with others. The orders of files wait for `Intake.takeOrders`.
    func takeRecords(path: String, name: String, wanted: (Record) -> Bool = { _ in true }) throws {
        intake.takesRecords = true
        let store = intake.store
        store.takesBackup = true
        store.backup = IncomingBackup(
            { [self] in try forEachPublication(of: path, $0) },
            publication: { [self] number in
                var found: Record?
                try forEachLine(of: path) { if $0.number == number { found = Self.publication($0) } }
                return found
            })
        defer { (store.takesBackup, store.backup, store.aliveInBackup) = (false, nil, []) }
        try intake.noteKeysKept()
        var doubtful: [Record] = []
        var dependent: [Record] = []
        var names: Set<ByteName> = []
        // They name works, which may get other ids here.
        var conflicts: [Record] = []
        func take(_ record: Record) throws {
            if record.isDeleted, try store.hasLive(beside: record) {
                doubtful.append(record)
                names.insert(ByteName(record.localID))
                return
            }
            if BibliographyPart.isOrder(record) { return intake.orders.append(record) }
            if record.type == RecordType.conflict { return conflicts.append(record) }
            if !names.isEmpty, names.contains(ByteName(record.localID)) { store.aliveInBackup.insert(record.id) }
            if try store.dependsOnOthers(record) { return dependent.append(record) }
            try intake.take(record)
        }
        var notes = try SpoolFile()
        var (leavesWorks, worksOfConflicts) = (false, Set<ByteName>())
        for wantsTombstones in [true, false] {
            try forEachLine(of: path) { line in
                guard let record = try record(line, name, tombstones: wantsTombstones) else { return }
                guard wanted(record) else {
                    if record.type == RecordType.publication { leavesWorks = true }
                    if record.type == RecordType.conflict, let conflict = try Conflict(record) {
                        worksOfConflicts.formUnion([ByteName(conflict.existing), ByteName(conflict.incoming)])
                    }
                    return
                }
                guard record.type == RecordType.note, !record.isDeleted, let bytes = line.bytes else {
                    return try take(record)
                }
                try notes.append { $0 += bytes }
                try notes.append { $0.append(0x0A) }
            }
        }
        try notes.flush()
        if leavesWorks {
            let named = try worksOfConflicts.union(works(of: notes))
            try noteIDsOfWorks(named, in: path) { !wanted($0) }
        }
        for record in doubtful + dependent { try intake.take(record) }
        try takeNotes(in: notes, ofRecords: path)
        for conflict in conflicts {
            guard let here = try Conflict.following(conflict, works: intake.newIDs) else { continue }
            try intake.take(here)
        }
    }

    /// Deleted ones, too. What cannot be read is named by who takes it.
    func forEachPublication(of path: String, _ body: (Record, _ line: Int) throws -> Void) throws {
        try forEachLine(of: path) { line in
            if let record = Self.publication(line) { try body(record, line.number) }
        }
    }

    private static func publication(_ line: LineReader.Line) -> Record? {
        guard let bytes = line.bytes, let record = try? Record(parsing: bytes) else { return nil }
        return record.type == RecordType.publication ? record : nil
    }

    func forEachLine(of path: String, _ body: (LineReader.Line) throws -> Void) throws {
        try FileHandle.openText(path).forEachLine(limit: limits.lineBytes, body)
    }

    /// The record of a line if it is of the wanted sort; what is wrong with it is said once, in the second pass.
    private func record(_ line: LineReader.Line, _ name: String, tombstones: Bool) throws -> Record? {
        let place = "\(name):\(line.number)"
        guard let bytes = line.bytes else {
            if !tombstones { intake.reject(place, LineReader.tooLong) }
            return nil
        }
        if bytes.count == 0 || tombstones && !contains("\"deletedAt\"", in: bytes) { return nil }
        let record: Record
        do {
            record = try Record(parsing: bytes)
            _ = try Fields.parse(record.fields)
            try record.refuseRemains()
        } catch let error as BackupError {
            if !tombstones { intake.reject(place, error.message) }
            return nil
        }
        return record.isDeleted == tombstones ? record : nil
    }

    /// Takes logs line by line: first the lines without an id, of all files, so that a line that has got its id meanwhile is
    /// known by what it says, in whatever order the files come. With `isBackup` every line is an event of its own.
    func takeEvents(
        _ logs: [(path: String, name: String)], isBackup: Bool = false, rejects: RejectedLines? = nil,
        wanted: (Record) -> Bool = { _ in true }
    ) throws {
        let adoption = isBackup ? nil : try EventAdoption(intake)
        var others = try OtherEvents(intake.store)
        var mixed: [LineWindows] = []
        for (file, (path, name)) in logs.enumerated() {
            let log = try LineWindows(path, limit: limits.lineBytes)
            var (withID, without) = (false, false)
            adoption?.beginLog()
            try forEachEvent(of: log, name, rejects, remedy: isBackup ? nil : RejectedLines.remedy) {
                event, text, number in
                if number == nil { withID = true } else { without = true }
                guard wanted(event) else { return }
                guard let adoption else { return _ = try intake.take(event) }
                guard let number else { return try others.append(text, file: file, isRepeat: false) }
                try adoption.take(event, number: number)
            }
            if withID && without { mixed.append(log) }
        }
        guard let adoption else { return }
        try others.take(into: adoption, for: intake)
        try adoption.finish(mixed)
    }

    /// `number`: of a line without an id, which of the equal lines of its log it is.
    private func forEachEvent(
        of log: LineWindows, _ name: String, _ rejects: RejectedLines?, remedy: String?,
        _ body: (_ event: Record, _ text: UnsafeRawBufferPointer, _ number: Int?) throws -> Void
    ) throws {
        var buffer: [UInt8] = []
        var line = 0
        var occurrences: [SHA256Digest: Int] = [:]
        func take(_ text: UnsafeRawBufferPointer?, at offset: Int64) throws {
            line += 1
            var number: Int?
            let event: Record
            do {
                guard let text else { throw BackupError(.damaged, "is longer than \(limits.lineBytes) bytes") }
                guard text.contains(where: { $0 > 0x20 }) else { return }
                event = try EventLine.record(text) { canonical in
                    let key = SHA256Digest.of(canonical)
                    occurrences[key, default: 0] += 1
                    number = occurrences[key]
                    return number ?? 1
                }
            } catch let error as BackupError {
                intake.reject("\(name):\(line)", error.message, remedy: remedy)
                try rejects?.append(text, at: offset, of: log)
                return
            }
            if let text { try body(event, text, number) }
        }
        for window in 0..<log.count { try log.forEachLine(of: window, in: &buffer, take) }
        try log.checkUnchanged()
    }

    func takeSettings(path: String, name: String, origin: FileOrigin = .place, time: Timestamp) throws {
        do {
            let settings = try settings(path)
            var ages = try FileAges(intake.store, of: path, origin, time)
            let source = if case .backup(let backup, _) = origin { backup } else { name }
            for setting in settings {
                let value = try oneLine(setting.value)
                let said = ages?.note(setting.name, value)
                try intake.takeSetting(
                    .init(
                        key: setting.name, value: value, time: said?.since ?? time, source: source,
                        isNews: said?.isKnown == false))
            }
            try ages?.remember()
        } catch let error as BackupError where error.code == .damaged { intake.reject(name, error.message) }
    }

    /// How many settings of a file the store does not have at all.
    func missingSettings(_ path: String) throws -> Int {
        try settings(path).count { try intake.store.storedSetting($0.name) == nil }
    }

    /// Whether the store has every setting of a file.
    func areSettingsKnown(_ path: String) throws -> Bool {
        guard let settings = try intake.store.ifReadable({ try self.settings(path) }) else { return false }
        return try settings.allSatisfy { setting in
            guard let known = try intake.store.storedSetting(setting.name) else { return false }
            return try intake.store.ifReadable { try Fields.same(known.value, setting.value) } ?? false
        }
    }

    private func oneLine(_ json: String) throws -> String {
        let compact = try JSON(parsing: json).compact
        // Half a surrogate pair is lost on the way through a text.
        return try Fields.same(compact, json) ? compact : Store.oneLine(json)
    }

    private func settings(_ path: String) throws -> [Field] {
        try document(path).withUnsafeBytes { try Fields.parse(foreign: $0.withoutByteOrderMark) }
    }

    func document(_ path: String) throws -> [UInt8] {
        let file = try FileHandle.openText(path)
        guard try file.status().size <= Int64(limits.lineBytes) else {
            throw BackupError(.refused, "is larger than any file of its kind should be", at: path)
        }
        var bytes: [UInt8] = []
        try file.forEachChunk { bytes += $0 }
        return bytes
    }
}
