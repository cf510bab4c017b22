/// Which events, and where to.
public struct EventExportOptions: Sendable {
    /// Local days, both included.
    public var from: CivilDate?
    public var to: CivilDate?
    public var type: String?
    public var replace = false
    public var progress = Progress.none

    public init() {}
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
        try AtomicFile.writeDirectory(path, replace: options.replace) { folder in
            try store.read {
                let days = try EventDays(store, options)
                let sink = DayFolder(try RootDirectory(folder))
                try days.forEachDay { day, lines in try sink.write(day, lines) }
                var result = days.result
                for path in days.media.sorted() { try copyMedia(path, store, sink.root, &result) }
                return result
            }
        }
    }

    /// All lines in one file.
    public static func write(_ store: Store, toFile path: String, _ options: EventExportOptions) throws
        -> EventExportResult
    {
        try AtomicFile.write(path, replace: options.replace) { try write(store, to: $0, options) }
    }

    /// All lines one after the other, for a pipe.
    public static func write(_ store: Store, to file: FileHandle, _ options: EventExportOptions) throws
        -> EventExportResult
    {
        try store.read {
            let days = try EventDays(store, options)
            try days.forEachDay { _, lines in try file.write(lines) }
            return days.result
        }
    }

    /// What an export would write.
    public static func count(_ store: Store, _ options: EventExportOptions) throws -> EventExportResult {
        try store.read { try EventDays(store, options).result }
    }

    private struct DayFolder {
        let root: RootDirectory

        init(_ root: RootDirectory) { self.root = root }

        func write(_ day: CivilDate, _ lines: UnsafeRawBufferPointer) throws {
            try root.create("\(day.text).jsonl").write(lines)
        }
    }

    private static func copyMedia(
        _ path: String, _ store: Store, _ root: RootDirectory, _ result: inout EventExportResult
    ) throws {
        guard let asset = try store.asset("Attachments/" + path) ?? store.asset(path) else { return }
        do {
            try EntryName.check(path)
            let file = try RootDirectory(store.assetFolder).openForReading(asset.path)
            let digest = try root.copy(file, to: path)
            result.media += 1
            guard digest != asset.digest else { return }
            result.warnings.append(
                Finding(
                    .digestMismatch, .warning, path, "is not what the store remembers; it was exported as it is now"))
        } catch let error as BackupError where error.code != .interrupted && error.code != .destinationFull {
            result.omitted.append(Omission(path: path, reason: error.message))
        }
    }
}

/// The events of a store by local day, in memory that does not grow with them: what does not fit waits in a nameless file.
private final class EventDays {
    private static let memory = 48 << 20
    private static let dayBuffer = 256 << 10

    private struct Day {
        var waiting: [UInt8] = []
        var spooled: [Range<Int64>] = []
    }

    private let options: EventExportOptions
    private let scanner = EventScanner()
    private var days: [CivilDate: Day] = [:]
    private var buffered = 0
    private var spool: SpoolFile
    private(set) var media: Set<String> = []
    private(set) var result = EventExportResult()

    init(_ store: Store, _ options: EventExportOptions) throws {
        self.options = options
        spool = try SpoolFile()
        // While one piece is sorted into days, the next is read.
        var piece = EventPiece()
        var running: Aside<Void>?
        func turn() throws {
            try running?.finish()
            try Interrupt.check()
            let full = piece
            piece = EventPiece()
            running = Aside { [self] in try take(full) }
        }
        try store.forEachEvent { change, fields in
            piece.add(change, fields)
            if piece.bytes.count >= 1 << 20 { try turn() }
        }
        try turn()
        try running?.finish()
        try spool.flush()
        result.days = days.count
    }

    private func take(_ piece: EventPiece) throws {
        try piece.forEach { change, line in
            guard let time = try time(of: line, change) else { return }
            if let from = options.from, time.day < from { return }
            if let to = options.to, time.day > to { return }
            media.formUnion(scanner.media)
            result.events += 1
            result.bytes += Int64(line.count + 1)
            days[time.day, default: Day()].waiting.append(line, at: time.instant)
            buffered += line.count + EventPiece.head
            if days[time.day]?.waiting.count ?? 0 > Self.dayBuffer { try moveOut(time.day) }
            if buffered > Self.memory { for day in days.keys { try moveOut(day) } }
        }
    }

    private func time(of line: UnsafeRawBufferPointer, _ change: Int64) throws -> LocalTime? {
        if let event = scanner.scan(line) {
            guard options.type == nil || options.type == event.type else { return nil }
            return event.time
        }
        let fields = try Fields.parse(line)
        let type = Fields.string("type", in: fields) ?? Fields.string("eventType", in: fields)
        guard options.type == nil || options.type == type else { return nil }
        media.formUnion(EventLine.media(in: fields))
        if let time = EventLine.time(in: fields) { return time }
        result.omitted.append(Omission(path: "record \(change)", reason: "has no readable time"))
        return nil
    }

    private func moveOut(_ day: CivilDate) throws {
        guard let waiting = days[day]?.waiting, !waiting.isEmpty else { return }
        let start = spool.position
        try waiting.withUnsafeBytes { try spool.write($0) }
        days[day]?.spooled.append(start..<spool.position)
        days[day]?.waiting.removeAll()
        buffered -= waiting.count
    }

    /// Within a day by time, then by text: nothing depends on the order of arrival.
    func forEachDay(_ body: (CivilDate, UnsafeRawBufferPointer) throws -> Void) throws {
        var text: [UInt8] = []
        for day in days.keys.sorted() {
            guard let found = days.removeValue(forKey: day) else { continue }
            var bytes: [UInt8] = []
            for range in found.spooled { bytes += try spool.read(range) }
            bytes += found.waiting
            text.removeAll(keepingCapacity: true)
            Self.sort(bytes, into: &text)
            try text.withUnsafeBytes { try body(day, $0) }
        }
    }

    private static func sort(_ bytes: [UInt8], into text: inout [UInt8]) {
        bytes.withUnsafeBytes { bytes in
            var lines: [(instant: Int64, range: Range<Int>)] = []
            var place = 0
            while bytes.count - place >= EventPiece.head {
                let length = Int(bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self))
                let instant = bytes.loadUnaligned(fromByteOffset: place + 4, as: Int64.self)
                let start = place + EventPiece.head
                lines.append((instant, start..<start + length))
                place = start + length
            }
            lines.sort { left, right in
                left.instant == right.instant
                    ? bytes[left.range].lexicographicallyPrecedes(bytes[right.range]) : left.instant < right.instant
            }
            text.reserveCapacity(bytes.count)
            for line in lines {
                text += UnsafeRawBufferPointer(rebasing: bytes[line.range])
                text.append(0x0A)
            }
        }
    }
}

/// Lines on their way from the database into days, each behind its length and a number.
private struct EventPiece {
    static let head = 12
    var bytes: [UInt8] = []

    mutating func add(_ change: Int64, _ line: UnsafeRawBufferPointer) {
        bytes.append(line, at: Timestamp(milliseconds: change))
    }

    func forEach(_ body: (Int64, UnsafeRawBufferPointer) throws -> Void) throws {
        // simdjson may look behind the last line.
        let padded = bytes + [UInt8](repeating: 0, count: LineParser.padding)
        try padded.withUnsafeBytes { all in
            var place = 0
            while bytes.count - place >= Self.head {
                let length = Int(all.loadUnaligned(fromByteOffset: place, as: UInt32.self))
                let number = all.loadUnaligned(fromByteOffset: place + 4, as: Int64.self)
                let start = place + Self.head
                try body(number, UnsafeRawBufferPointer(rebasing: all[start..<start + length]))
                place = start + length
            }
        }
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ line: UnsafeRawBufferPointer, at time: Timestamp) {
        Swift.withUnsafeBytes(of: UInt32(truncatingIfNeeded: line.count)) { self += $0 }
        Swift.withUnsafeBytes(of: time.milliseconds) { self += $0 }
        self += line
    }
}
