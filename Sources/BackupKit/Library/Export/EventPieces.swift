/// Lines on their way from the database into days, each behind its length and a number.
struct EventPiece {
    static let head = 16
    /// A piece of this many bytes is full.
    static let size = 1 << 20
    private(set) var bytes: [UInt8] = []

    init() { bytes.reserveCapacity(Self.size * 9 / 8) }

    /// What was found in the lines.
    struct Lines: Sendable {
        /// Of each line when it happened, nil when it is not wanted, and its length in a file.
        var all: [(time: LocalTime?, bytes: Int64)] = []
        var media: Set<String> = []
        var omitted: [Omission] = []
        /// Rows whose text is broken.
        var damaged: [(change: Int64, reason: String)] = []
    }

    mutating func add(_ change: Int64, _ line: UnsafeRawBufferPointer) {
        bytes.append(line, at: Timestamp(milliseconds: change))
    }

    static func forEach(in bytes: UnsafeRawBufferPointer, _ body: (Int64, Range<Int>) throws -> Void) rethrows {
        var place = 0
        while bytes.count - place >= head {
            let length = Int(bytes.loadUnaligned(fromByteOffset: place, as: Int64.self))
            let number = bytes.loadUnaligned(fromByteOffset: place + 8, as: Int64.self)
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
                let bytes = Int64(range.count + 1)
                var media: [String] = []
                let time: LocalTime??
                do { time = try Self.time(of: line, options, scanner, &media) } catch let error as BackupError {
                    lines.all.append((nil, bytes))
                    lines.damaged.append((change, error.message))
                    return
                }
                switch time {
                case .some(.some(let time)) where options.wants(time.day):
                    lines.all.append((time, bytes))
                    lines.media.formUnion(media)
                case .some(.none):
                    lines.all.append((nil, bytes))
                    lines.omitted.append(Omission(path: "record \(change)", reason: "has no readable time"))
                default: lines.all.append((nil, bytes))
                }
            }
        }
        return lines
    }

    /// Nil when the line is not wanted, and a nil inside when it does not say when.
    private static func time(
        of line: UnsafeRawBufferPointer, _ options: EventExportOptions, _ scanner: EventScanner,
        _ media: inout [String]
    ) throws -> LocalTime?? {
        if let event = scanner.scan(line) {
            guard options.types.isEmpty || options.types.contains(event.type) else { return nil }
            if !scanner.media.isEmpty { media = scanner.media }
            return event.time
        }
        let fields = try Fields.parse(line)
        let type = Fields.string("type", in: fields) ?? Fields.string("eventType", in: fields)
        guard options.types.isEmpty || type.map(options.types.contains) == true else { return nil }
        media = RecordFiles.media(in: fields)
        return .some(EventText.time(in: fields))
    }
}

extension EventExportOptions {
    fileprivate func wants(_ day: CivilDate) -> Bool {
        if let from, day < from { return false }
        if let to, day > to { return false }
        return true
    }
}

/// What the first reading of events leaves for the second: of each its day and its instant, 12 bytes in a nameless file.
struct EventFacts {
    private static let bytes = 12
    private static let readAtOnce: Int64 = 12 << 12
    private var spool: SpoolFile

    init() throws { spool = try SpoolFile() }

    /// Nil for an event that is not wanted.
    mutating func add(_ fact: (place: Int, instant: Timestamp)?) throws {
        try spool.append { bytes in
            withUnsafeBytes(of: UInt32(truncatingIfNeeded: fact?.place ?? -1)) { bytes += $0 }
            withUnsafeBytes(of: fact?.instant.milliseconds ?? 0) { bytes += $0 }
        }
    }

    mutating func reader() throws -> Reader {
        try spool.flush()
        return Reader(spool: spool)
    }

    struct Reader {
        let spool: SpoolFile
        private var position: Int64 = 0
        private var bytes: [UInt8] = []
        private var index = 0

        fileprivate init(spool: SpoolFile) { self.spool = spool }

        mutating func next() throws -> (place: Int, instant: Timestamp)? {
            if index == bytes.count {
                let end = min(position + EventFacts.readAtOnce, spool.size)
                bytes = try spool.read(position..<end)
                (position, index) = (end, 0)
                // Both readings see the same snapshot.
                guard !bytes.isEmpty else { throw BackupError(.failed, "more events than before") }
            }
            defer { index += EventFacts.bytes }
            return bytes.withUnsafeBytes { bytes in
                let place = bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self)
                guard place != UInt32.max else { return nil }
                let instant = bytes.loadUnaligned(fromByteOffset: index + 4, as: Int64.self)
                return (Int(place), Timestamp(milliseconds: instant))
            }
        }
    }
}

extension [UInt8] {
    /// Adds a line as `EventPiece` keeps them.
    mutating func append(_ line: UnsafeRawBufferPointer, at time: Timestamp) {
        Swift.withUnsafeBytes(of: (Int64(line.count), time.milliseconds)) { self += $0 }
        self += line
    }
}
