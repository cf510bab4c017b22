/// Event logs on their way into a store that holds nothing yet. Nearly every line will be new, so each is read once and
/// written at once; what then turns out to be there twice is taken out again. `EventIntake`, for every other store, decides
/// first and reads twice.
final class EventLoad {
    private let intake: Intake
    private var store: Store { intake.store }
    private let files: [LineWindows]
    private let rejects: RejectedLines?
    private let reader: EventReader
    private let keys: LineKeyRuns
    private var accepted: UInt64 = 0
    /// Of each file which forms its lines have.
    private var forms: [(withID: Bool, without: Bool)]
    private var localIDs: Set<EventText.LocalIDForm> = []
    private var firstOfFile: [UInt64] = []
    private let rows: EventRows
    /// Files that lines name as media, by the log that names them.
    private(set) var media: [(file: Int, path: String)] = []
    private var named: Set<ByteName> = []

    init(_ intake: Intake, _ paths: [String], lineBytes: Int, rejects: RejectedLines? = nil) throws {
        self.intake = intake
        self.rejects = rejects
        files = try paths.map { try LineWindows($0, limit: lineBytes) }
        forms = files.map { _ in (false, false) }
        reader = EventReader(intake.store.hasher, intake.store.clock.now())
        keys = try LineKeyRuns()
        rows = EventRows(intake.store)
    }

    func take(_ progress: Progress = .none) throws {
        let (first, isEmpty) = (store.changeCounter + 1, try store.isEmpty())
        for (number, file) in files.enumerated() {
            firstOfFile.append(accepted)
            try read(file, number, progress)
        }
        try rows.finish()
        try settle(from: first, isEmpty: isEmpty)
        for file in files { try file.checkUnchanged() }
    }

    private func read(_ file: LineWindows, _ number: Int, _ progress: Progress) throws {
        var buffer: [UInt8] = []
        var line = 0
        for window in 0..<file.count {
            try file.forEachLine(of: window, in: &buffer) { text, offset in
                line += 1
                switch reader.read(text) {
                case .blank: break
                case .rejected(let reason):
                    intake.reject("\(file.path):\(line)", reason, remedy: RejectedLines.remedy)
                    try rejects?.append(text, at: offset, of: file)
                case .event(let event):
                    if event.text.count > CloudLimits.recordBytes {
                        intake.noteOversize("\(file.path):\(line)")
                    }
                    try take(event, number)
                    for path in reader.media where named.insert(ByteName("\(number)/\(path)")).inserted {
                        media.append((number, path))
                    }
                }
            }
            try Interrupt.check()
            let done = UInt64(min(Int64(window + 1) * file.windowBytes, file.bytes))
            progress.report(ProgressEvent("reading", done: done, item: file.path))
        }
    }

    private func take(_ event: EventReader.Event, _ file: Int) throws {
        if event.hasNoID { forms[file].without = true } else { forms[file].withID = true }
        if event.localID != .none { localIDs.insert(event.localID) }
        try keys.append(LineKey(key: event.key, content: event.content, place: event.mark | accepted))
        accepted += 1
        try rows.add(event)
    }

    /// Gives what is new its keys, and takes the rest out of the store.
    private func settle(from first: Int64, isEmpty: Bool) throws {
        var known = 0
        var isOut = BitSet(count: Int(accepted))
        var (isOther, isRepeat) = (isOut, isOut)
        var new: [LineKey] = []
        func flush() throws {
            try store.insertKeys(new) { first + Int64($0 & EventScan.placeMask) }
            intake.count(added: new.count, unchanged: 0)
            new.removeAll(keepingCapacity: true)
        }
        // All that is in the store came from these files. Where some lines have no id, those with one are taken last.
        let hasGivenIDs = try isEmpty ? false : store.hasEventsWithGivenIDs()
        try EventFate.forEach(
            of: keys, in: store, firstOfFile: firstOfFile, mayGetIDs: { [forms] in forms.contains(where: \.without) },
            mayHaveIDs: { hasGivenIDs },
            mayShareLocalIDs: { [localIDs, store] in
                try localIDs.isSuperset(of: [.alone, .beside]) || !isEmpty && store.hasEventsWithLocalIDs()
            }
        ) { key, fate in
            let place = Int(key.place & EventScan.placeMask)
            guard fate != .new else {
                new.append(key)
                if new.count == 1 << 12 { try flush() }
                return
            }
            isOut.insert(place)
            if fate == .known { known += 1 } else { isOther.insert(place) }
            if fate == .repeated { isRepeat.insert(place) }
        }
        try flush()
        intake.count(added: 0, unchanged: known)
        var others = try OtherEvents(store)
        try isOut.forEach { place in
            let change = first + Int64(place)
            if isOther.contains(place) {
                var text = try store.fields(ofChange: change)
                let file = EventFate.file(of: UInt64(place), firstOfFile)
                try text.withUTF8 {
                    try others.append(
                        UnsafeRawBufferPointer($0), file: file, isRepeat: isRepeat.contains(place))
                }
            }
            try store.takeOut(change)
        }
        let adoption = try EventAdoption(intake, hasGivenIDs: hasGivenIDs)
        try others.take(into: adoption, for: intake)
        try adoption.finish(files.indices.filter { forms[$0].withID && forms[$0].without }.map { files[$0] })
    }
}
