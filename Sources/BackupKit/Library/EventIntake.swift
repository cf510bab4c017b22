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
    /// Another line of its file says the same, and neither has an id: two equal events.
    private var isRepeat: BitSet
    private var known = 0
    /// Lines that are taken one by one, when the others are in the store.
    private var others: SpoolFile

    init(_ intake: Intake, _ scan: EventScan, rejects: RejectedLines? = nil) throws {
        self.intake = intake
        self.scan = scan
        self.rejects = rejects
        isNew = BitSet(count: Int(scan.accepted))
        isOther = isNew
        isRepeat = isNew
        others = try SpoolFile()
    }

    func take() throws {
        let newKeys = try LineKeyRuns()
        try classify(into: newKeys)
        let first = store.changeCounter + 1
        isNew.countRanks()
        try write()
        try insert(newKeys, from: first)
        intake.count(added: newKeys.count, unchanged: known)
        try takeOthers()
        for file in scan.files { try file.checkUnchanged() }
    }

    private func classify(into newKeys: LineKeyRuns) throws {
        let walk = try LocalKeyWalk(store, count: scan.keys.count)
        var new: [LineKey] = []
        var group: (key: LineKey, verdict: RecordBatch.Verdict)?
        try scan.keys.forEach { key in
            let place = Int(key.place & EventScan.placeMask)
            if let last = group, last.key.key == key.key {
                let isSecond = isSecond(key, after: last.key)
                if key.place & EventScan.hasNoID != 0 { group = (key, last.verdict) }
                // The same line again, with an id or from another file, says nothing new.
                if key.content == last.key.content, !isSecond { return known += 1 }
                isOther.insert(place)
                if isSecond { isRepeat.insert(place) }
                return
            }
            let verdict = try walk.look(key.key, content: key.content)
            group = (key, verdict)
            switch verdict {
            case .known: known += 1
            case .new where key.place & EventScan.isOdd == 0:
                isNew.insert(place)
                new.append(LineKey(key: key.key, content: key.content, place: UInt64(place)))
                if new.count == 1 << 16 {
                    try newKeys.add(new)
                    new.removeAll(keepingCapacity: true)
                }
            case .new, .other: isOther.insert(place)
            }
        }
        try newKeys.add(new)
    }

    /// Whether a line is another event than the equal one before it: neither has an id, and they stand in one file.
    private func isSecond(_ key: LineKey, after first: LineKey) -> Bool {
        key.place & EventScan.hasNoID != 0 && first.place & EventScan.hasNoID != 0
            && file(of: key.place) == file(of: first.place)
    }

    private func file(of place: UInt64) -> Int {
        let place = place & EventScan.placeMask
        var (low, high) = (0, scan.windows.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if scan.windows[middle].first <= place { low = middle } else { high = middle }
        }
        return scan.windows[low].file
    }

    /// Reads the files again and inserts the rows that are new, one batch being written while the next is filled.
    private func write() throws {
        let reader = EventReader(store.hasher, store.clock.now())
        var buffer: [UInt8] = []
        var batch = RecordBatch(store.hasher, sorts: [EventScan.kind])
        var spare = batch
        var running: Aside<Void>?
        var lines: [Int: Int] = [:]
        func turn() throws {
            try running?.finish()
            running = nil
            swap(&batch, &spare)
            batch.removeAll()
            guard !spare.rows.isEmpty else { return }
            let (full, store) = (spare, store)
            running = Aside { try store.insertRows(of: full, Array(full.rows.indices)) }
        }
        for window in scan.windows {
            let before = lines[window.file, default: 0]
            lines[window.file] = before + window.lines
            let places = Int(window.first)..<Int(window.first + window.accepted)
            guard window.rejected > 0 || isNew.hasMember(in: places) || isOther.hasMember(in: places) else { continue }
            var place = window.first
            var number = before
            let path = scan.files[window.file].path
            try scan.files[window.file].forEachLine(of: window.number, in: &buffer) { line in
                number += 1
                switch reader.read(line) {
                case .blank: break
                case .rejected(let reason):
                    intake.reject("\(path):\(number)", reason)
                    try rejects?.append(line)
                case .event(let event):
                    try take(event, Int(place), window.file, &batch)
                    place += 1
                }
            }
            guard place == window.first + window.accepted else {
                try scan.files[window.file].checkUnchanged(); continue
            }
            if batch.bytes.count >= 1 << 20 {
                try Interrupt.check()
                try turn()
            }
        }
        try turn()
        try turn()
    }

    private func take(_ event: EventReader.Event, _ place: Int, _ file: Int, _ batch: inout RecordBatch) throws {
        if isNew.contains(place) {
            batch.add(sort: 0, createdAt: event.createdAt, modifiedAt: event.modifiedAt) {
                $0 += event.id
            } fields: {
                $0 += event.text
            }
        } else if isOther.contains(place) {
            try others.append { bytes in
                for number in [UInt64(event.text.count), UInt64(file), isRepeat.contains(place) ? 1 : 0] {
                    withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
                }
                bytes += event.text
            }
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

    /// Known under another content, twice in the files, dated in the future: the usual way, one by one.
    private func takeOthers() throws {
        try others.flush()
        var position: Int64 = 0
        var repeats: [SHA256Digest: Int] = [:]
        var file: UInt64 = 0
        while position < others.size {
            let head = try others.read(position..<position + 24)
            let numbers = head.withUnsafeBytes { head in
                (0..<3).map { UInt64(littleEndian: head.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self)) }
            }
            let text = try others.read(position + 24..<position + 24 + Int64(numbers[0]))
            position += 24 + Int64(numbers[0])
            if numbers[1] != file { repeats = [:] }
            file = numbers[1]
            let record = try text.withUnsafeBytes { text in
                try EventLine.record(text) { canonical in
                    guard numbers[2] == 1 else { return 1 }
                    let digest = SHA256Digest.of(canonical)
                    // The first of them went with the others.
                    repeats[digest, default: 1] += 1
                    return repeats[digest] ?? 2
                }
            }
            try intake.take(record)
        }
    }
}

/// The lines that an import rejected, byte for byte.
final class RejectedLines {
    private let file: FileHandle

    init(_ file: FileHandle) { self.file = file }

    func append(_ line: UnsafeRawBufferPointer?) throws {
        guard let line else { return }
        try file.write(line)
        try [UInt8(ascii: "\n")].withUnsafeBytes { try file.write($0) }
    }
}

/// A set of small numbers that knows how many of its members come before one.
struct BitSet {
    private var words: [UInt64]
    private var ranks: [UInt32] = []

    init(count: Int) { words = [UInt64](repeating: 0, count: count / 64 + 1) }

    mutating func insert(_ number: Int) { words[number / 64] |= 1 << UInt64(number % 64) }

    func contains(_ number: Int) -> Bool { words[number / 64] >> UInt64(number % 64) & 1 != 0 }

    func hasMember(in range: Range<Int>) -> Bool {
        guard !range.isEmpty else { return false }
        return words[range.lowerBound / 64...(range.upperBound - 1) / 64].contains { $0 != 0 }
    }

    /// Must be called when the set is complete, before `rank`.
    mutating func countRanks() {
        var sum: UInt32 = 0
        ranks = words.map { word in
            defer { sum += UInt32(word.nonzeroBitCount) }
            return sum
        }
    }

    /// How many members are less than `number`.
    func rank(of number: Int) -> Int {
        let below = words[number / 64] & ((1 << UInt64(number % 64)) - 1)
        return Int(ranks[number / 64]) + below.nonzeroBitCount
    }
}
