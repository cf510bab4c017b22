/// The second half of an import of event logs: what is new is written in the order of the files, and its keys in their
/// own order. Time and memory are those of reading the files twice, whatever the store holds.
final class EventIntake {
    private let intake: Intake
    private var store: Store { intake.store }
    private let scan: EventScan
    private let rejects: RejectedLines?
    /// What is to be done with each accepted line.
    private var isNew: BitSet
    private var isOther: BitSet
    private var isRepeat: BitSet
    private var known = 0
    private var others: OtherEvents

    init(_ intake: Intake, _ scan: EventScan, rejects: RejectedLines? = nil) throws {
        self.intake = intake
        self.scan = scan
        self.rejects = rejects
        isNew = BitSet(count: Int(scan.accepted))
        isOther = isNew
        isRepeat = isNew
        others = try OtherEvents(intake.store)
    }

    func take() throws {
        let newKeys = try LineKeyRuns()
        try classify(into: newKeys)
        let first = store.changeCounter + 1
        isNew.countRanks()
        try write()
        try insert(newKeys, from: first)
        intake.count(added: newKeys.count, unchanged: known)
        let adoption = try EventAdoption(intake)
        try others.take(into: adoption, for: intake)
        try adoption.finish(scan.files.indices.filter(scan.haveBothForms).map { scan.files[$0] })
        for file in scan.files { try file.checkUnchanged() }
    }

    private func classify(into newKeys: LineKeyRuns) throws {
        let said = try store.keysOfSaidValues()
        var saidAnew: Set<Int64> = []
        try EventFate.forEach(
            of: scan.keys, in: store, firstOfFile: scan.firstOfFile,
            mayGetIDs: { [scan, store] in try scan.haveLinesWithoutID || store.hasEventsWithMadeIDs() },
            mayHaveIDs: { [store] in try store.hasEventsWithGivenIDs() },
            mayShareLocalIDs: { [scan, store] in
                try scan.localIDs.isSuperset(of: [.alone, .beside]) || store.hasEventsWithLocalIDs()
            }
        ) { [self] key, fate in
            let place = Int(key.place & EventScan.placeMask)
            switch fate {
            case .known:
                known += 1
                if said.contains(key.key) { saidAnew.insert(key.key) }
            case .new:
                isNew.insert(place)
                try newKeys.append(LineKey(key: key.key, content: key.content, place: UInt64(place)))
            case .other: isOther.insert(place)
            case .repeated:
                isOther.insert(place)
                isRepeat.insert(place)
            }
        }
        try store.forgetSaidValues(of: saidAnew)
    }

    /// Reads the files again and inserts the rows that are new, one batch being written while the next is filled.
    private func write() throws {
        let reader = EventReader(store.hasher, store.clock.now())
        var buffer: [UInt8] = []
        let rows = EventRows(store)
        var lines: [Int: Int] = [:]
        for window in scan.windows {
            let before = lines[window.file, default: 0]
            lines[window.file] = before + window.lines
            let places = Int(window.first)..<Int(window.first + window.accepted)
            guard window.rejected > 0 || isNew.hasMember(in: places) || isOther.hasMember(in: places) else { continue }
            var place = window.first
            var number = before
            let path = scan.files[window.file].path
            try scan.files[window.file].forEachLine(of: window.number, in: &buffer) { line, offset in
                number += 1
                switch reader.read(line) {
                case .blank: break
                case .rejected(let reason):
                    intake.reject("\(path):\(number)", reason, remedy: RejectedLines.remedy)
                    try rejects?.append(line, at: offset, of: scan.files[window.file])
                case .event(let event):
                    if event.text.count > CloudLimits.recordBytes { intake.noteOversize("\(path):\(number)") }
                    try take(event, Int(place), window.file, rows)
                    place += 1
                }
            }
            guard place == window.first + window.accepted else {
                try scan.files[window.file].checkUnchanged(); continue
            }
            try Interrupt.check()
        }
        try rows.finish()
    }

    private func take(_ event: EventReader.Event, _ place: Int, _ file: Int, _ rows: EventRows) throws {
        if isNew.contains(place) {
            try rows.add(event)
        } else if isOther.contains(place) {
            try others.append(event.text, file: file, isRepeat: isRepeat.contains(place))
        }
    }

    private func insert(_ keys: LineKeyRuns, from first: Int64) throws {
        var batch: [LineKey] = []
        func flush() throws {
            try store.insertKeys(batch) { first + Int64(isNew.rank(of: Int($0))) }
            batch.removeAll(keepingCapacity: true)
        }
        try keys.forEach { key in
            batch.append(key)
            if batch.count == 1 << 12 { try flush() }
        }
        try flush()
    }
}

/// Events on their way into the table of records: while one batch is written, the next are filled.
final class EventRows {
    private static let batchBytes = 1 << 20

    private let empty: RecordBatch
    private var batch: RecordBatch
    private let lane: Lane<RecordBatch>

    init(_ store: Store) {
        empty = RecordBatch(store.hasher, sorts: [EventScan.kind])
        batch = empty
        lane = Lane(ahead: 3) { try store.insertRows(of: $0, Array($0.rows.indices)) }
    }

    func add(_ event: EventReader.Event) throws {
        if batch.rows.isEmpty { batch.reserve(bytes: Self.batchBytes + event.text.count * 2) }
        batch.add(sort: 0, createdAt: event.createdAt, modifiedAt: event.modifiedAt) {
            $0 += event.id
        } fields: {
            $0 += event.text
        }
        if batch.bytes.count >= Self.batchBytes { try handOver() }
    }

    /// Waits until everything is in the store. Nothing else may touch the store before.
    func finish() throws {
        try handOver()
        try lane.finish()
    }

    private func handOver() throws {
        try lane.add(batch)
        batch = empty
    }
}
