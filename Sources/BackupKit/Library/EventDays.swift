import Synchronization

/// The events of a store by local day, in memory that does not grow with them: what does not fit waits in a nameless file.
final class EventDays {
    private static let memory = 48 << 20
    private static let dayBuffer = 256 << 10
    /// Pieces that are read by all cores at once, while the database is asked for the next.
    private static let groupCount = 4
    /// Days are put into order by all cores too; so much of them is in memory twice, or one day if that is more.
    private static let groupBytes: Int64 = 8 << 20

    private struct Day {
        let date: CivilDate
        var waiting: [UInt8] = []
        var spooled: [Range<Int64>] = []
        var bytes: Int64 = 0
    }

    private let options: EventExportOptions
    private var days: [Day] = []
    /// The place in `days`, by the number of the day.
    private var places: [Int64: Int] = [:]
    private var buffered = 0
    private var spool: SpoolFile
    private(set) var media: Set<String> = []
    private(set) var result = EventExportResult()

    init(_ store: Store, _ options: EventExportOptions) throws {
        self.options = options
        spool = try SpoolFile()
        var group: [EventPiece] = []
        var piece = EventPiece()
        var running: Aside<Void>?
        func turn() throws {
            try running?.finish()
            try Interrupt.check()
            let full = group + [piece]
            (group, piece) = ([], EventPiece())
            running = Aside { [self] in try take(full) }
        }
        try store.forEachEvent { change, fields in
            piece.add(change, fields)
            guard piece.bytes.count >= 1 << 20 else { return }
            if group.count + 1 == Self.groupCount { return try turn() }
            group.append(piece)
            piece = EventPiece()
        }
        try turn()
        try running?.finish()
        try spool.flush()
        result.days = days.count
    }

    private func take(_ pieces: [EventPiece]) throws {
        let read = Mutex([EventPiece.Lines](repeating: EventPiece.Lines(), count: pieces.count))
        let options = options
        try Parallel.forEach(pieces.count) {
            EventScanner()
        } _: { scanner, index in
            let lines = try pieces[index].lines(options, scanner)
            read.withLock { $0[index] = lines }
        }
        for (piece, lines) in zip(pieces, read.withLock({ $0 })) { try take(piece, lines) }
    }

    private func take(_ piece: EventPiece, _ lines: EventPiece.Lines) throws {
        media.formUnion(lines.media)
        result.omitted += lines.omitted
        result.events += lines.found.count
        var last: (day: CivilDate, place: Int)?
        try piece.bytes.withUnsafeBytes { bytes in
            for line in lines.found {
                let place = last?.day == line.time.day ? last?.place ?? 0 : self.place(of: line.time.day)
                last = (line.time.day, place)
                days[place].waiting.append(UnsafeRawBufferPointer(rebasing: bytes[line.range]), at: line.time.instant)
                days[place].bytes += Int64(line.range.count + 1)
                result.bytes += Int64(line.range.count + 1)
                buffered += line.range.count + EventPiece.head
                if days[place].waiting.count > Self.dayBuffer { try moveOut(place) }
                if buffered > Self.memory { for place in days.indices { try moveOut(place) } }
            }
        }
    }

    private func place(of day: CivilDate) -> Int {
        if let place = places[day.daysSinceEpoch] { return place }
        places[day.daysSinceEpoch] = days.count
        days.append(Day(date: day))
        return days.count - 1
    }

    private func moveOut(_ place: Int) throws {
        guard !days[place].waiting.isEmpty else { return }
        let start = spool.position
        try days[place].waiting.withUnsafeBytes { try spool.write($0) }
        days[place].spooled.append(start..<spool.position)
        buffered -= days[place].waiting.count
        days[place].waiting = []
    }

    /// Within a day by time, then by text: nothing depends on the order of arrival. While some days are passed on, the next
    /// are put into order.
    func forEachDay(_ body: (CivilDate, UnsafeRawBufferPointer) throws -> Void) throws {
        days.sort { $0.date < $1.date }
        var ready: [(CivilDate, [UInt8])] = []
        var next = 0
        while next < days.count || !ready.isEmpty {
            let start = next
            var bytes: Int64 = 0
            while next < days.count, next == start || bytes + days[next].bytes <= Self.groupBytes {
                bytes += days[next].bytes
                next += 1
            }
            let (group, spool) = (Array(days[start..<next]), spool)
            for place in start..<next { days[place].waiting = [] }
            let preparing = Aside { try Self.prepare(group, spool) }
            for (day, text) in ready { try text.withUnsafeBytes { try body(day, $0) } }
            ready = try preparing.finish()
        }
    }

    private static func prepare(_ group: [Day], _ spool: SpoolFile) throws -> [(CivilDate, [UInt8])] {
        let texts = Mutex([[UInt8]](repeating: [], count: group.count))
        try Parallel.forEach(group.count) {
        } _: { _, index in
            var bytes: [UInt8] = []
            for range in group[index].spooled { bytes += try spool.read(range) }
            bytes += group[index].waiting
            let text = sorted(bytes)
            texts.withLock { $0[index] = text }
        }
        return Array(zip(group.map(\.date), texts.withLock { $0 }))
    }

    private static func sorted(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        bytes.withUnsafeBytes { bytes in
            var lines: [(instant: Int64, range: Range<Int>)] = []
            EventPiece.forEach(in: bytes) { instant, range in lines.append((instant, range)) }
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
        return text
    }
}

/// Lines on their way from the database into days, each behind its length and a number.
struct EventPiece {
    static let head = 12
    private(set) var bytes: [UInt8] = []

    /// What was found in the lines: where those lie that are wanted, and when they happened.
    struct Lines: Sendable {
        var found: [(time: LocalTime, range: Range<Int>)] = []
        var media: Set<String> = []
        var omitted: [Omission] = []
    }

    mutating func add(_ change: Int64, _ line: UnsafeRawBufferPointer) {
        bytes.append(line, at: Timestamp(milliseconds: change))
    }

    static func forEach(in bytes: UnsafeRawBufferPointer, _ body: (Int64, Range<Int>) throws -> Void) rethrows {
        var place = 0
        while bytes.count - place >= head {
            let length = Int(bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self))
            let number = bytes.loadUnaligned(fromByteOffset: place + 4, as: Int64.self)
            let start = place + head
            try body(number, start..<start + length)
            place = start + length
        }
    }

    func lines(_ options: EventExportOptions, _ scanner: EventScanner) throws -> Lines {
        var lines = Lines()
        // simdjson may look behind the last line.
        let padded = bytes + [UInt8](repeating: 0, count: LineParser.padding)
        try padded.withUnsafeBytes { all in
            try Self.forEach(in: UnsafeRawBufferPointer(rebasing: all[..<bytes.count])) { change, range in
                let line = UnsafeRawBufferPointer(rebasing: all[range])
                var media: [String] = []
                guard let time = try Self.time(of: line, change, options, scanner, &media) else { return }
                guard let time else { return lines.omitted.append(Self.timeless(change)) }
                if let from = options.from, time.day < from { return }
                if let to = options.to, time.day > to { return }
                lines.media.formUnion(media)
                lines.found.append((time, range))
            }
        }
        return lines
    }

    /// Nil when the line is not wanted, and a nil inside when it does not say when.
    private static func time(
        of line: UnsafeRawBufferPointer, _ change: Int64, _ options: EventExportOptions, _ scanner: EventScanner,
        _ media: inout [String]
    ) throws -> LocalTime?? {
        if let event = scanner.scan(line) {
            guard options.type == nil || options.type == event.type else { return nil }
            if !scanner.media.isEmpty { media = scanner.media }
            return event.time
        }
        let fields = try Fields.parse(line)
        let type = Fields.string("type", in: fields) ?? Fields.string("eventType", in: fields)
        guard options.type == nil || options.type == type else { return nil }
        media = EventLine.media(in: fields)
        return .some(EventLine.time(in: fields))
    }

    private static func timeless(_ change: Int64) -> Omission {
        Omission(path: "record \(change)", reason: "has no readable time")
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ line: UnsafeRawBufferPointer, at time: Timestamp) {
        Swift.withUnsafeBytes(of: UInt32(truncatingIfNeeded: line.count)) { self += $0 }
        Swift.withUnsafeBytes(of: time.milliseconds) { self += $0 }
        self += line
    }
}
