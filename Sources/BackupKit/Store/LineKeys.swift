/// What an import has to know of a line to decide whether it is new: 24 bytes, however long the line is.
struct LineKey {
    /// Of the record that the line would become.
    var key: Int64
    var content: Int64
    /// Where the line is among all, below `placeLimit`; the bits above are marks of whoever made the key.
    var place: UInt64

    static let bytes = 24
    static let placeLimit: UInt64 = 1 << 62

    @inline(__always) static func precedes(_ left: LineKey, _ right: LineKey) -> Bool {
        guard left.key == right.key else { return left.key < right.key }
        return left.place & (placeLimit - 1) < right.place & (placeLimit - 1)
    }
}

/// Any number of keys, put into order in bounded memory: sorted runs in a nameless file, then merged.
final class LineKeyRuns {
    private static let readAtOnce = 512

    private var spool: SpoolFile
    private var runs: [(start: Int64, count: Int)] = []
    private(set) var count = 0

    init() throws { spool = try SpoolFile() }

    /// Adds a run, which MUST be in order.
    func add(_ run: [LineKey]) throws {
        guard !run.isEmpty else { return }
        runs.append((spool.position, run.count))
        count += run.count
        try run.withUnsafeBytes { try spool.write($0) }
    }

    private struct Head {
        var keys: [LineKey]
        var index: Int
        var next: Int64
        var left: Int
    }

    /// Visits all keys in their order.
    func forEach(_ body: (LineKey) throws -> Void) throws {
        try spool.flush()
        var heads: [Head] = []
        for run in runs {
            var head = Head(keys: [], index: 0, next: run.start, left: run.count)
            if try refill(&head) { heads.append(head) }
        }
        // A heap of the runs, the one with the least key on top.
        func least(_ one: Int, _ two: Int) -> Bool {
            LineKey.precedes(heads[one].keys[heads[one].index], heads[two].keys[heads[two].index])
        }
        var heap = Array(heads.indices).sorted(by: least)
        while let top = heap.first {
            try body(heads[top].keys[heads[top].index])
            heads[top].index += 1
            if heads[top].index == heads[top].keys.count, try !refill(&heads[top]) {
                let last = heap.removeLast()
                guard !heap.isEmpty else { return }
                if last != top { heap[0] = last }
            }
            var place = 0
            while 2 * place + 1 < heap.count {
                var child = 2 * place + 1
                if child + 1 < heap.count, least(heap[child + 1], heap[child]) { child += 1 }
                guard least(heap[child], heap[place]) else { break }
                heap.swapAt(child, place)
                place = child
            }
        }
    }

    private func refill(_ head: inout Head) throws -> Bool {
        guard head.left > 0 else { return false }
        let count = min(head.left, Self.readAtOnce)
        let size = Int64(count * LineKey.bytes)
        let bytes = try spool.read(head.next..<head.next + size)
        head.keys.removeAll(keepingCapacity: true)
        bytes.withUnsafeBytes { bytes in
            for index in 0..<count {
                head.keys.append(bytes.loadUnaligned(fromByteOffset: index * LineKey.bytes, as: LineKey.self))
            }
        }
        head.index = 0
        head.next += size
        head.left -= count
        return true
    }
}

/// What the store says to keys that come in their order. Many are answered by walking along the table of local ids, few
/// by looking each one up.
final class LocalKeyWalk {
    private let query: Statement
    private let isWalk: Bool
    private var row: (key: Int64, content: Int64)?

    /// `count` keys will be asked for.
    init(_ store: Store, count: Int) throws {
        let known = try store.database.integer("SELECT ifnull(max(change), 0) FROM record")
        // A step of the walk costs about an eighth of a look-up.
        isWalk = known / 8 < Int64(count)
        query = try store.database.prepare(
            isWalk
                ? "SELECT key, content FROM local_key ORDER BY key" : "SELECT key, content FROM local_key WHERE key = ?"
        )
        if isWalk { try step() }
    }

    private func step() throws { row = try query.step() ? (query.integer(0), query.integer(1)) : nil }

    /// Whether the store has the key, and whether with this content. No key may be asked for twice.
    func look(_ key: Int64, content: Int64) throws -> RecordBatch.Verdict {
        if !isWalk {
            query.reset()
            query.bind(1, key)
            try step()
        }
        while let row, row.key < key { try step() }
        var verdict = RecordBatch.Verdict.new
        while let row, row.key == key {
            if row.content == content { verdict = .known } else if verdict == .new { verdict = .other }
            try step()
        }
        return verdict
    }
}
