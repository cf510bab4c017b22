import Glibc
import Synchronization

/// The first pass over event logs: every line is read once, by all cores, and a key of 24 bytes is kept of it.
struct EventScan {
    /// Lines without an id of their own, and lines that have to be taken one by one, are marked in their keys.
    static let hasNoID: UInt64 = 1 << 63
    static let isOdd: UInt64 = 1 << 62
    /// Lines with a `localId` that is not their `id`, which may be known by it.
    static let hasLocalID: UInt64 = LineKey.placeLimit
    static let placeMask: UInt64 = LineKey.placeLimit - 1

    struct Window {
        let file: Int
        let number: Int
        /// The number of its first accepted line among all, and how many there are.
        var first: UInt64 = 0
        var accepted: UInt64 = 0
        var rejected = 0
        var lines = 0
    }

    let files: [LineWindows]
    private(set) var windows: [Window] = []
    let keys: LineKeyRuns
    /// Files that lines name as media, by the log that names them.
    private(set) var media: [(file: Int, path: String)] = []
    private(set) var accepted: UInt64 = 0
    /// The files that have lines with an id, and those that have lines without.
    private var filesWithIDs: Set<Int> = []
    private var filesWithoutIDs: Set<Int> = []
    /// The forms in which the lines have a `localId`.
    private(set) var localIDs: Set<EventText.LocalIDForm> = []
    var haveLinesWithoutID: Bool { !filesWithoutIDs.isEmpty }
    /// The place of each file's first line.
    var firstOfFile: [UInt64] {
        var places = [UInt64](repeating: accepted, count: files.count)
        for window in windows.reversed() { places[window.file] = window.first }
        // A file without windows begins where the next does.
        for file in files.indices.dropLast().reversed() { places[file] = min(places[file], places[file + 1]) }
        return places
    }

    static let kind = (zone: RecordType.eventZone, type: RecordType.event)

    /// One thread's tools.
    private final class Reader {
        let events: EventReader
        var buffer: [UInt8] = []

        init(_ hasher: RecordHasher, _ now: Timestamp) { events = EventReader(hasher, now) }
    }

    private struct Result {
        var keys: [LineKey] = []
        var accepted: UInt64 = 0
        var rejected = 0
        var lines = 0
        var media: Set<ByteName> = []
        var hasLinesWithoutID = false
        var hasLinesWithID = false
        var localIDs: Set<EventText.LocalIDForm> = []
    }

    init(
        _ paths: [String], for store: Store, lineBytes: Int, windowBytes: Int64 = LineWindows.usualBytes,
        _ progress: Progress = .none
    ) throws {
        files = try paths.map { try LineWindows($0, limit: lineBytes, windowBytes: windowBytes) }
        keys = try LineKeyRuns()
        for (file, lines) in files.enumerated() {
            windows += (0..<lines.count).map { Window(file: file, number: $0) }
        }
        // A group at a time, so that no more than its keys are in memory.
        let groupSize = 32
        var named: Set<ByteName> = []
        for start in stride(from: 0, to: windows.count, by: groupSize) {
            let group = Array(windows[start..<min(start + groupSize, windows.count)])
            for (offset, result) in try scan(group, store.hasher, store.clock.now()).enumerated() {
                windows[start + offset].first = accepted
                windows[start + offset].accepted = result.accepted
                windows[start + offset].rejected = result.rejected
                windows[start + offset].lines = result.lines
                try keys.add(
                    result.keys.map { LineKey(key: $0.key, content: $0.content, place: $0.place + accepted) })
                accepted += result.accepted
                let file = windows[start + offset].file
                localIDs.formUnion(result.localIDs)
                if result.hasLinesWithID { filesWithIDs.insert(file) }
                if result.hasLinesWithoutID { filesWithoutIDs.insert(file) }
                for path in result.media.map(\.text)
                where named.insert(ByteName("\(file)/\(path)")).inserted {
                    media.append((file, path))
                }
            }
            try Interrupt.check()
            let done = UInt64(start + group.count) * UInt64(windowBytes)
            progress.report(ProgressEvent("reading", done: done, item: files[windows[start].file].path))
        }
    }

    func haveBothForms(_ file: Int) -> Bool { filesWithIDs.contains(file) && filesWithoutIDs.contains(file) }

    private func scan(_ group: [Window], _ hasher: RecordHasher, _ now: Timestamp) throws -> [Result] {
        let results = Mutex([Result](repeating: Result(), count: group.count))
        let files = files
        try Parallel.forEach(group.count) {
            Reader(hasher, now)
        } _: { reader, index in
            var result = Result()
            let window = group[index]
            try files[window.file].forEachLine(of: window.number, in: &reader.buffer) { line, _ in
                result.lines += 1
                switch reader.events.read(line) {
                case .blank: break
                case .rejected: result.rejected += 1
                case .event(let event):
                    result.keys.append(
                        LineKey(key: event.key, content: event.content, place: event.mark | result.accepted))
                    if event.localID != .none { result.localIDs.insert(event.localID) }
                    result.accepted += 1
                    if event.hasNoID { result.hasLinesWithoutID = true } else { result.hasLinesWithID = true }
                    for path in reader.events.media { result.media.insert(ByteName(path)) }
                }
            }
            result.keys.sort { LineKey.precedes($0, $1) }
            results.withLock { $0[index] = result }
        }
        return results.withLock { $0 }
    }
}

/// Reads single lines, the ordinary ones fast and the others strictly. One reader serves one thread.
final class EventReader {
    struct Event {
        var id: UnsafeRawBufferPointer
        var createdAt: Timestamp
        var modifiedAt: Timestamp
        var key: Int64
        var content: Int64
        /// Its id was made from its content.
        var hasNoID = false
        /// Its time lies in the future, its text cannot be stored as it is, or it may be known under another one: it is
        /// taken by itself.
        var isOdd = false
        var localID = EventText.LocalIDForm.none
        let text: UnsafeRawBufferPointer

        /// What its key says of it beside its place.
        var mark: UInt64 {
            (hasNoID ? EventScan.hasNoID : 0) | (isOdd ? EventScan.isOdd : 0)
                | (localID == .none ? 0 : EventScan.hasLocalID)
        }
    }

    enum Answer {
        case blank
        case event(Event)
        case rejected(String)
    }

    private let scanner = EventScanner()
    private let hasher: RecordHasher
    private let kind: UInt64
    private let now: Timestamp
    private(set) var media: [String] = []
    /// Where an id lies that was made here.
    private var madeID: [UInt8] = []

    init(_ hasher: RecordHasher, _ now: Timestamp) {
        self.hasher = hasher
        self.now = now
        kind = hasher.kind(zone: EventScan.kind.zone, type: EventScan.kind.type)
    }

    func read(_ line: UnsafeRawBufferPointer?) -> Answer {
        if !media.isEmpty { media.removeAll(keepingCapacity: true) }
        guard let line else { return .rejected(LineReader.tooLong) }
        if let event = scanner.scan(line) {
            if !scanner.media.isEmpty { media = scanner.media }
            var found = self.event(event.id, event.createdAt, event.modifiedAt, line)
            found.localID = event.localID
            return .event(found)
        }
        // Zeros are what a file system leaves of lines that were not written before the power went.
        guard line.contains(where: { $0 > 0x20 || $0 == 0 }) else { return .blank }
        do {
            var hasNoID = false
            let record = try EventLine.record(line) { _ in
                hasNoID = true
                return 1
            }
            let fields = try Fields.parse(line)
            media = RecordFiles.media(in: fields)
            madeID = Array(record.localID.utf8)
            return madeID.withUnsafeBytes { id in
                var event = self.event(id, record.createdAt, record.modifiedAt, line)
                event.hasNoID = hasNoID
                event.localID = EventText.localIDForm(in: fields)
                // An export of ours may say so of an event whose line said otherwise.
                if hasNoID, media.contains(where: RecordFiles.mayHaveGivenWay) { event.isOdd = true }
                return .event(event)
            }
        } catch let error as BackupError {
            return .rejected(error.message)
        } catch {
            return .rejected("\(error)")
        }
    }

    private static func hasReturn(_ line: UnsafeRawBufferPointer) -> Bool {
        line.baseAddress.map { memchr($0, 0x0D, line.count) != nil } ?? false
    }

    private func event(
        _ id: UnsafeRawBufferPointer, _ created: Timestamp, _ modified: Timestamp, _ line: UnsafeRawBufferPointer
    ) -> Event {
        // A future event was written by now. Its own time must not move the store's clock ahead.
        Event(
            id: id, createdAt: min(created, now), modifiedAt: min(modified, now), key: hasher.key(id),
            content: hasher.content(kind, name: id, fields: line),
            isOdd: created > now || modified > now || Self.hasReturn(line), text: line)
    }
}
