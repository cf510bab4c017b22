import Synchronization

/// The events of a store by local day. They are read twice: first for their times, so that in the second reading it is known
/// when a day is complete and can go. Events mostly arrive in the order of their days, and then little waits in memory; what
/// does not fit there waits in a nameless file.
final class EventDays {
    private static let memory = 48 << 20
    private static let dayBuffer = 256 << 10
    /// Pieces that are read by all cores at once, while the database is asked for the next.
    private static let groupCount = 4
    /// Days are put into order by all cores too; so much of them is in memory twice, or one day if that is more.
    private static let groupBytes: Int64 = 4 << 20

    private struct Day {
        let date: CivilDate
        /// Events that were not read yet for the second time.
        var left = 0
        var bytes: Int64 = 0
        var waiting: [UInt8] = []
        var spooled: [Range<Int64>] = []
    }

    private let store: Store
    private let options: EventExportOptions
    private var days: [Day] = []
    /// The place in `days`, by the number of the day.
    private var places: [Int64: Int] = [:]
    private var facts: EventFacts
    private var damaged: [(change: Int64, reason: String)] = []
    private var buffered = 0
    private var spool: SpoolFile
    private(set) var media: Set<String> = []
    private(set) var result = EventExportResult()

    /// Must run inside `store.read`, and so must `forEachDay`.
    init(_ store: Store, _ options: EventExportOptions) throws {
        self.store = store
        self.options = options
        facts = try EventFacts()
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
        try store.forEachJudgedEvent { change, fields in
            piece.add(change, fields)
            guard piece.bytes.count >= EventPiece.size else { return }
            if group.count + 1 == Self.groupCount { return try turn() }
            group.append(piece)
            piece = EventPiece()
        }
        try turn()
        try running?.finish()
        for (change, reason) in damaged where try store.ifSound({ try store.record(change: change) }) != nil {
            result.omitted.append(Omission(path: "record \(change)", reason: reason))
        }
        result.warnings += store.damage.tell()
        result.days = days.count
    }

    // MARK: The first reading

    private func take(_ pieces: [EventPiece]) throws {
        let read = Mutex([EventPiece.Lines](repeating: EventPiece.Lines(), count: pieces.count))
        let options = options
        try Parallel.forEach(pieces.count) {
            EventScanner()
        } _: { scanner, index in
            let lines = try pieces[index].lines(options, scanner)
            read.withLock { $0[index] = lines }
        }
        for lines in read.withLock({ $0 }) { try take(lines) }
    }

    private func take(_ lines: EventPiece.Lines) throws {
        media.formUnion(lines.media)
        result.omitted += lines.omitted
        damaged += lines.damaged
        var last: (day: CivilDate, place: Int)?
        for line in lines.all {
            guard let time = line.time else {
                try facts.add(nil)
                continue
            }
            let place = last?.day == time.day ? last?.place ?? 0 : self.place(of: time.day)
            last = (time.day, place)
            try facts.add((place, time.instant))
            days[place].left += 1
            days[place].bytes += line.bytes
            result.events += 1
            result.bytes += line.bytes
        }
    }

    private func place(of day: CivilDate) -> Int {
        if let place = places[day.daysSinceEpoch] { return place }
        places[day.daysSinceEpoch] = days.count
        days.append(Day(date: day))
        return days.count - 1
    }

    // MARK: The second reading

    /// Days in their order; within a day by time, then by text: nothing depends on the order of arrival. While some days are
    /// passed on, the next are put into order.
    func forEachDay(_ body: (CivilDate, UnsafeRawBufferPointer) throws -> Void) throws {
        let order = days.indices.sorted { days[$0].date < days[$1].date }
        var next = 0
        var preparing: Aside<[(CivilDate, [UInt8])]>?
        func pass(on group: [Day]) throws {
            let ready = try preparing?.finish() ?? []
            preparing = nil
            if !group.isEmpty {
                try spool.flush()
                let spool = spool
                preparing = Aside { try Self.prepare(group, spool) }
            }
            for (day, text) in ready { try text.withUnsafeBytes { try body(day, $0) } }
        }
        /// Passes on the days that are complete, and that no earlier one keeps waiting.
        func passOnComplete() throws {
            var (group, bytes): ([Day], Int64) = ([], 0)
            while next < order.count, days[order[next]].left == 0 {
                let place = order[next]
                group.append(days[place])
                bytes += days[place].bytes
                buffered -= days[place].waiting.count
                days[place].waiting = []
                next += 1
                if bytes >= Self.groupBytes {
                    try pass(on: group)
                    (group, bytes) = ([], 0)
                }
            }
            if !group.isEmpty { try pass(on: group) }
        }
        var reader = try facts.reader()
        var ripe: Int64 = 0
        try store.forEachEvent { _, line in
            guard let (place, instant) = try reader.next() else { return }
            try take(line, place, instant)
            guard days[place].left == 0 else { return }
            ripe += days[place].bytes
            guard ripe >= Self.groupBytes else { return }
            ripe = 0
            try Interrupt.check()
            try passOnComplete()
        }
        try passOnComplete()
        try pass(on: [])
    }

    private func take(_ line: UnsafeRawBufferPointer, _ place: Int, _ instant: Timestamp) throws {
        if days[place].waiting.isEmpty {
            // The whole day, which is mostly what comes next; growing would take twice as much.
            let needed = Int(days[place].bytes) + days[place].left * EventPiece.head
            days[place].waiting.reserveCapacity(min(needed, Self.dayBuffer * 16))
        }
        days[place].waiting.append(line, at: instant)
        days[place].left -= 1
        buffered += line.count + EventPiece.head
        if days[place].waiting.count > Self.dayBuffer, days[place].left > 0, buffered > Self.memory / 2 {
            try moveOut(place)
        }
        if buffered > Self.memory { for place in days.indices { try moveOut(place) } }
    }

    private func moveOut(_ place: Int) throws {
        guard !days[place].waiting.isEmpty else { return }
        let start = spool.position
        try days[place].waiting.withUnsafeBytes { try spool.write($0) }
        days[place].spooled.append(start..<spool.position)
        buffered -= days[place].waiting.count
        days[place].waiting = []
    }

    private static func prepare(_ group: [Day], _ spool: SpoolFile) throws -> [(CivilDate, [UInt8])] {
        let texts = Mutex([[UInt8]](repeating: [], count: group.count))
        try Parallel.forEach(group.count) {
        } _: { _, index in
            var bytes = group[index].waiting
            for range in group[index].spooled { bytes += try spool.read(range) }
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
