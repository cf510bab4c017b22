/// Lines of event logs that are taken one by one, kept until all others are in the store. Those of one event are taken in the
/// order of their times, wherever they stand: what its latest line says holds, and another import of the logs changes nothing.
struct OtherEvents {
    private let store: Store
    private var spool: SpoolFile

    private struct Line {
        static let headBytes: Int64 = 24

        let text: [UInt8]
        let file: UInt64
        let isRepeat: Bool
        /// Where the next line begins.
        let end: Int64
    }

    init(_ store: Store) throws {
        self.store = store
        spool = try SpoolFile()
    }

    mutating func append(_ text: UnsafeRawBufferPointer, file: Int, isRepeat: Bool) throws {
        try spool.append { bytes in
            for number in [UInt64(text.count), UInt64(file), isRepeat ? 1 : 0] {
                withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
            }
            bytes += text
        }
    }

    mutating func take(into adoption: EventAdoption, for intake: Intake) throws {
        try spool.flush()
        // A line with an id may be one of those without.
        let others = try takeThoseWithoutID(into: adoption)
        let replaced = try intake.isEdit ? passReplaced(others, intake) : []
        let moved = try intake.isEdit ? [:] : movedByTime(others)
        try forEachLine { line, place in
            if replaced.contains(place) { return }
            let (event, hasID) = try event(moved[place].map(self.line(at:)) ?? line)
            guard hasID else { return }
            // The first line of all may have made the event.
            if intake.isEdit, let made = try store.madeInThisBatch(event), made.modifiedAt > event.modifiedAt {
                return try intake.passReplaced(event, by: made)
            }
            try adoption.take(event)
        }
    }

    /// Returns where those with an id are.
    private func takeThoseWithoutID(into adoption: EventAdoption) throws -> LineKeyRuns {
        let others = try LineKeyRuns()
        var repeats: [SHA256Digest: Int] = [:]
        var file: UInt64 = 0
        try forEachLine { line, place in
            if line.file != file {
                repeats = [:]
                adoption.beginLog()
            }
            file = line.file
            var number = 1
            let (event, hasID) = try event(line) { canonical in
                guard line.isRepeat else { return 1 }
                let digest = SHA256Digest.of(canonical)
                // The first of them went with the others.
                number = repeats[digest, default: 1] + 1
                repeats[digest] = number
                return number
            }
            guard hasID else { return try adoption.take(event, number: number) }
            let time = event.modifiedAt.milliseconds
            try others.append(LineKey(key: store.hasher.key(event.localID), content: time, place: UInt64(place)))
        }
        return others
    }

    /// What is taken in the place of which line, where lines of one event are out of the order of their times.
    private func movedByTime(_ lines: LineKeyRuns) throws -> [Int64: Int64] {
        var moved: [Int64: Int64] = [:]
        try forEachEvent(of: lines) { ofOne in
            guard zip(ofOne, ofOne.dropFirst()).contains(where: { $0.content > $1.content }) else { return }
            // The first line of all makes the event, and is among these or in the store already.
            let first = try event(at: ofOne[0])
            let later = try ofOne.dropFirst(store.firstLook(first) == .nothing ? 1 : 0)
            let sorted = later.sorted { ($0.content, $0.place) < ($1.content, $1.place) }
            for (line, other) in zip(later, sorted) where line.place != other.place {
                moved[Int64(line.place)] = Int64(other.place)
            }
        }
        return moved
    }

    /// Counts and returns the lines of events that have a later one: `--overwrite` takes that alone, so a second import of the
    /// same logs changes nothing.
    private func passReplaced(_ lines: LineKeyRuns, _ intake: Intake) throws -> Set<Int64> {
        var replaced: Set<Int64> = []
        try forEachEvent(of: lines) { ofOne in
            guard ofOne.count > 1, let latest = ofOne.max(by: { ($0.content, $0.place) < ($1.content, $1.place) })
            else { return }
            let later = try event(at: latest)
            for line in ofOne where line.place != latest.place {
                replaced.insert(Int64(line.place))
                try intake.passReplaced(event(at: line), by: later)
            }
        }
        return replaced
    }

    /// Calls `body` with the lines of one event after those of another.
    private func forEachEvent(of lines: LineKeyRuns, _ body: ([LineKey]) throws -> Void) throws {
        var ofOne: [LineKey] = []
        try lines.forEach { line in
            if let last = ofOne.last, last.key != line.key {
                try body(ofOne)
                ofOne.removeAll(keepingCapacity: true)
            }
            ofOne.append(line)
        }
        if !ofOne.isEmpty { try body(ofOne) }
    }

    private func event(at line: LineKey) throws -> Record { try event(self.line(at: Int64(line.place))).0 }

    // MARK: Reading lines back

    private func forEachLine(_ body: (Line, Int64) throws -> Void) throws {
        var place: Int64 = 0
        while place < spool.size {
            let line = try line(at: place)
            try body(line, place)
            place = line.end
        }
    }

    private func line(at place: Int64) throws -> Line {
        let start = place + Line.headBytes
        let numbers = try spool.read(place..<start).withUnsafeBytes { head in
            (0..<3).map { UInt64(littleEndian: head.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self)) }
        }
        let end = start + Int64(numbers[0])
        return Line(text: try spool.read(start..<end), file: numbers[1], isRepeat: numbers[2] == 1, end: end)
    }

    /// `number` is asked which of equal lines one without an id is.
    private func event(
        _ line: Line, number: (_ canonical: String) -> Int = { _ in 1 }
    ) throws -> (Record, hasID: Bool) {
        try line.text.withUnsafeBytes { try EventLine.recordAndForm($0, number: number) }
    }
}

extension Store {
    /// The event with the local id of this one, if the running batch has written it.
    fileprivate func madeInThisBatch(_ event: Record) throws -> Record? {
        guard let batch = currentBatch else { return nil }
        return try records(localID: event.localID)
            .first { $0.record.type == event.type && $0.change >= batch.firstChange }?.record
    }
}
