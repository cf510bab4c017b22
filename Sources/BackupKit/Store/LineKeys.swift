/// What an import has to know of a line to decide whether it is new: 24 bytes, however long the line is.
struct LineKey {
    /// Of the record that the line would become.
    var key: Int64
    var content: Int64
    /// Where the line is among all, below `placeLimit`; the bits above are marks of whoever made the key.
    var place: UInt64

    static let bytes = 24
    static let placeLimit: UInt64 = 1 << 61

    @inline(__always) static func precedes(_ left: LineKey, _ right: LineKey) -> Bool {
        guard left.key == right.key else { return left.key < right.key }
        return left.place & (placeLimit - 1) < right.place & (placeLimit - 1)
    }
}

/// Any number of keys, put into order in bounded memory: sorted runs in a nameless file, then merged.
final class LineKeyRuns {
    /// So many keys of all runs together are in memory while they are merged.
    private static let readAhead = 1 << 17

    private var spool: SpoolFile
    private var runs: [(start: Int64, count: Int)] = []
    /// The keys that are in no run yet.
    private var unsorted: [LineKey] = []
    var count: Int { runs.reduce(unsorted.count) { $0 + $1.count } }

    init() throws { spool = try SpoolFile() }

    func append(_ key: LineKey) throws {
        unsorted.append(key)
        if unsorted.count == 1 << 16 { try sortLast() }
    }

    private func sortLast() throws {
        unsorted.sort { LineKey.precedes($0, $1) }
        try add(unsorted)
        unsorted.removeAll(keepingCapacity: true)
    }

    /// Adds a run, which MUST be in order.
    func add(_ run: [LineKey]) throws {
        guard !run.isEmpty else { return }
        runs.append((spool.position, run.count))
        try run.withUnsafeBytes { try spool.write($0) }
    }

    /// A run that is being merged: the keys that were read of it, and where the others are.
    private struct Head {
        var keys: [LineKey]
        var index: Int
        var next: Int64
        var left: Int
    }

    /// The least key of a run that was not visited yet.
    private struct Top {
        var key: LineKey
        let run: Int
    }

    /// Visits all keys in their order.
    func forEach(_ body: (LineKey) throws -> Void) throws {
        try sortLast()
        try spool.flush()
        var heads = runs.map { Head(keys: [], index: 0, next: $0.start, left: $0.count) }
        var heap: [Top] = []
        for run in heads.indices {
            if let key = try next(&heads[run]) { heap.append(Top(key: key, run: run)) }
        }
        heap.sort { LineKey.precedes($0.key, $1.key) }
        while let top = heap.first {
            try body(top.key)
            if let key = try next(&heads[top.run]) {
                heap[0].key = key
            } else {
                let last = heap.removeLast()
                guard !heap.isEmpty else { return }
                heap[0] = last
            }
            Self.sink(&heap)
        }
    }

    /// Puts the first of a heap where it belongs, everything else being in order.
    private static func sink(_ heap: inout [Top]) {
        heap.withUnsafeMutableBufferPointer { heap in
            let top = heap[0]
            var place = 0
            while 2 * place + 1 < heap.count {
                var child = 2 * place + 1
                if child + 1 < heap.count, LineKey.precedes(heap[child + 1].key, heap[child].key) { child += 1 }
                guard LineKey.precedes(heap[child].key, top.key) else { break }
                heap[place] = heap[child]
                place = child
            }
            heap[place] = top
        }
    }

    @inline(__always) private func next(_ head: inout Head) throws -> LineKey? {
        if head.index == head.keys.count, try !refill(&head) { return nil }
        head.index += 1
        return head.keys[head.index - 1]
    }

    private func refill(_ head: inout Head) throws -> Bool {
        guard head.left > 0 else { return false }
        let count = min(head.left, max(32, min(512, Self.readAhead / max(1, runs.count))))
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
    private let store: Store
    private let query: Statement
    private let isWalk: Bool
    private var row: (key: Int64, content: Int64, hasRow: Bool)?

    /// `count` keys will be asked for.
    init(_ store: Store, count: Int) throws {
        let known = try store.database.integer("SELECT ifnull(max(change), 0) FROM record")
        // A step of the walk costs about an eighth of a look-up.
        isWalk = known / 8 < Int64(count)
        self.store = store
        // A walk past all rows is cheaper than a look at each of them.
        let isAnyGone = try !isWalk || store.isAnyGone()
        query = try store.database.prepare(
            "SELECT key, content, \(isAnyGone ? Store.hasRow : "1") FROM local_key "
                + (isWalk ? "ORDER BY key" : "WHERE key = ?"))
        if isWalk { try step() }
    }

    private func step() throws {
        repeat {
            row = try query.step() ? (query.integer(0), query.integer(1), query.integer(2) != 0) : nil
        } while try row.map { try !$0.hasRow && store.isGone($0.key) } ?? false
    }

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
