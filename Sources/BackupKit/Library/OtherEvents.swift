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
            if hasID { try adoption.take(event) }
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
        var ofOne: [LineKey] = []
        func sort() throws {
            defer { ofOne.removeAll(keepingCapacity: true) }
            guard zip(ofOne, ofOne.dropFirst()).contains(where: { $0.content > $1.content }) else { return }
            // The first line of all makes the event, and is among these or in the store already.
            let (first, _) = try event(line(at: Int64(ofOne[0].place)))
            let later = try ofOne.dropFirst(store.firstLook(first) == .nothing ? 1 : 0)
            let sorted = later.sorted { ($0.content, $0.place) < ($1.content, $1.place) }
            for (line, other) in zip(later, sorted) where line.place != other.place {
                moved[Int64(line.place)] = Int64(other.place)
            }
        }
        try lines.forEach { line in
            if let last = ofOne.last, last.key != line.key { try sort() }
            ofOne.append(line)
        }
        try sort()
        return moved
    }

    /// Counts and returns lines of events that `--overwrite` does not take: each event is overwritten once, with its latest
    /// line, so a second import of the same logs changes nothing.
    private func passReplaced(_ lines: LineKeyRuns, _ intake: Intake) throws -> Set<Int64> {
        var replaced: Set<Int64> = []
        func pass(_ line: LineKey, by later: Record) throws {
            replaced.insert(Int64(line.place))
            try intake.passReplaced(event(at: line), by: later)
        }
        func end(_ latest: LineKey) throws {
            let event = try event(at: latest)
            // The first line of all may have made the event.
            guard let made = try store.madeInThisBatch(event), made.modifiedAt.milliseconds > latest.content else {
                return
            }
            try pass(latest, by: made)
        }
        var latest: LineKey?
        try lines.forEach { line in
            guard let known = latest, known.key == line.key else {
                if let latest { try end(latest) }
                latest = line
                return
            }
            let (old, new) = known.content > line.content ? (line, known) : (known, line)
            try pass(old, by: event(at: new))
            latest = new
        }
        if let latest { try end(latest) }
        return replaced
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
