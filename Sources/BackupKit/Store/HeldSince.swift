/// Since when a file has said what it says: for the mark of each value the time that the file had when it first said
/// it. A value that the file no longer has is forgotten.
struct HeldSince {
    private var times: [UInt64: Timestamp] = [:]

    var isEmpty: Bool { times.isEmpty }

    subscript(mark: UInt64) -> Timestamp? { times[mark] }

    mutating func formUnion(_ other: HeldSince) { times.merge(other.times) { min($0, $1) } }

    /// The marks that `other` lacks, or has only since a later time.
    func missed(by other: HeldSince) -> HeldSince {
        var missed = self
        missed.times = times.filter { mark, time in other[mark].map { $0 > time } ?? true }
        return missed
    }

    var byTime: [Timestamp: [UInt64]] { Dictionary(grouping: times.keys) { times[$0] ?? .distantPast } }

    /// These marks and those, each with its first time.
    func and(_ others: [Timestamp: [UInt64]]) -> [Timestamp: [UInt64]] {
        var all = self
        for (time, marks) in others {
            for mark in marks { all.times[mark] = min(all.times[mark] ?? time, time) }
        }
        return all.byTime
    }

    /// For each time its milliseconds, how many marks have it, and these: 64-bit numbers, least byte first.
    init(bytes: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)) {
        let numbers = bytes.count / 8
        func number(_ index: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        times.reserveCapacity(numbers)
        var next = 0
        while next + 2 <= numbers {
            let time = Timestamp(milliseconds: Int64(bitPattern: number(next)))
            let start = next + 2
            let end = start + Int(min(number(next + 1), UInt64(numbers - start)))
            for index in start..<end { times[number(index)] = time }
            next = end
        }
    }

    static func bytes(of marks: [Timestamp: [UInt64]]) -> [UInt8] {
        var numbers: [UInt64] = []
        for (time, marks) in marks.sorted(by: { $0.key < $1.key }) {
            numbers += [UInt64(bitPattern: time.milliseconds), UInt64(marks.count)]
            numbers += marks.sorted()
        }
        return numbers.map { $0.littleEndian }.withUnsafeBytes { Array($0) }
    }
}
