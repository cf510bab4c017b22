/// What is to become of an accepted line of an event log, told from its key.
enum EventFate {
    /// `other` lines are taken one by one, when the others are in the store: known under another content, twice in the files,
    /// dated in the future. `repeated` lines say the same as another of their file, and neither has an id: two equal events.
    case new, known, other, repeated

    /// Decides on every line, in the order of the keys. `firstOfFile` are the places at which the files begin;
    /// `mayGetIDs` tells whether there are events without an id that a line with a new id may be, and `mayHaveIDs` whether
    /// there are events with one that a line without may be; `mayShareLocalIDs` whether a line with a `localId` may be known
    /// by it. All of it is done on another thread; until this returns, nobody else may touch the store.
    static func forEach(
        of keys: LineKeyRuns, in store: Store, firstOfFile: [UInt64], mayGetIDs: @escaping () throws -> Bool,
        mayHaveIDs: @escaping () throws -> Bool, mayShareLocalIDs: @escaping () throws -> Bool,
        _ body: @escaping (LineKey, EventFate) throws -> Void
    ) throws {
        var adopts: Bool?
        var isKnown: Bool?
        var sharesLocalIDs: Bool?
        /// Whether a line whose id is new may be one that is known without an id, or the other way round.
        func mayBeKnown(_ key: LineKey) throws -> Bool {
            if key.place & EventScan.hasLocalID != 0 {
                if sharesLocalIDs == nil { sharesLocalIDs = try mayShareLocalIDs() }
                if sharesLocalIDs == true { return true }
            }
            if key.place & EventScan.hasNoID == 0 {
                if adopts == nil { adopts = try mayGetIDs() }
                return adopts == true
            }
            if isKnown == nil { isKnown = try mayHaveIDs() }
            return isKnown == true
        }
        let walk = try LocalKeyWalk(store, count: keys.count)
        var group: (key: LineKey, verdict: RecordBatch.Verdict)?
        /// Whether a line is another event than the equal one before it: neither has an id, and they stand in one file.
        func isSecond(_ key: LineKey, after first: LineKey) -> Bool {
            key.place & EventScan.hasNoID != 0 && first.place & EventScan.hasNoID != 0
                && file(of: key.place, firstOfFile) == file(of: first.place, firstOfFile)
        }
        func decide(_ key: LineKey) throws {
            if let last = group, last.key.key == key.key {
                let isSecond = isSecond(key, after: last.key)
                if key.place & EventScan.hasNoID != 0 { group = (key, last.verdict) }
                // The same line again, with an id or from another file, says nothing new.
                if key.content == last.key.content, !isSecond { return try body(key, .known) }
                return try body(key, isSecond ? .repeated : .other)
            }
            let verdict = try walk.look(key.key, content: key.content)
            group = (key, verdict)
            switch verdict {
            case .known: try body(key, .known)
            case .new where key.place & EventScan.isOdd == 0: try body(key, mayBeKnown(key) ? .other : .new)
            case .new, .other: try body(key, .other)
            }
        }
        // The store is asked while the next keys are put into order.
        let lane = Lane<[LineKey]>(ahead: 4) { try $0.forEach(decide) }
        var batch: [LineKey] = []
        try keys.forEach { key in
            batch.append(key)
            if batch.count == 1 << 12 {
                try lane.add(batch)
                batch.removeAll(keepingCapacity: true)
            }
        }
        try lane.add(batch)
        try lane.finish()
    }

    static func file(of place: UInt64, _ firstOfFile: [UInt64]) -> Int {
        let place = place & EventScan.placeMask
        var (low, high) = (0, firstOfFile.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if firstOfFile[middle] <= place { low = middle } else { high = middle }
        }
        return low
    }
}
