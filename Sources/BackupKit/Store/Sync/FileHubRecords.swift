/// Pushing to and reading from a hub in a file.
extension FileHub: Hub {
    /// A page ends when it is as large as this, whatever its count, so that memory stays bounded.
    private static let pageBytes = 8 << 20

    // MARK: Writing

    public func push(_ push: HubPush, by caller: String?) throws -> HubAnswer {
        guard push.items.count <= limits.recordsPerPush else {
            throw BackupError(
                .refused, "takes \(limits.recordsPerPush) records at once, not \(push.items.count)", at: path)
        }
        var dropped: Set<SHA256Digest> = []
        let told = try busyIsTemporary {
            dropped = []
            return try database.write { () -> HubAnswer in
                if let answer = try answer(to: push.id) { return answer }
                let start = try last()
                if let token = push.token { _ = try position(of: token) }
                let before = try token(at: start)
                if let answer = try judge(push, caller, head: before) { return answer }
                dropped = try digests(ofAssets: push.items.filter { $0.base != nil }.map(\.record.id))
                let end = try write(push, after: start)
                if !dropped.isEmpty { dropped = try digestsNamed().map(dropped.subtracting) ?? [] }
                try note(push.id, from: start, through: end)
                return .accepted(first: start + 1, before: before, after: try token(at: end))
            }
        }
        try removeAssets(dropped)
        return told
    }

    /// Notes which numbers a push has got.
    func note(_ push: String, from start: Int64, through end: Int64) throws {
        try database.statement("INSERT INTO push VALUES (?, ?, ?)").bind(1, end).bind(2, start + 1).bind(3, push).run()
        try database.statement("UPDATE counter SET value = ?").bind(1, end).run()
    }

    /// The last number that was given out. The counter is not believed alone: a number that is given out twice would be a
    /// version that nobody notices.
    func last() throws -> Int64 {
        try Self.numbers.map { try database.integer($0) }.filter { 0...Self.highest ~= $0 }.max() ?? 0
    }

    /// Numbers above this one are not believed, and not given out.
    static let highest = HubRecord.versions.upperBound / 2

    private static let numbers = [
        "SELECT value FROM counter", "SELECT max(last) FROM push", "SELECT max(change) FROM record",
    ]

    /// What was answered to a push that was done already.
    private func answer(to id: String) throws -> HubAnswer? {
        let query = try database.statement("SELECT first, last FROM push WHERE id = ?").bind(1, id)
        defer { query.reset() }
        guard try query.step() else { return nil }
        let (first, last) = (query.integer(0), query.integer(1))
        return .accepted(first: first, before: try token(at: first &- 1), after: try token(at: last))
    }

    /// Nil when nothing speaks against the push.
    private func judge(_ push: HubPush, _ caller: String?, head: String) throws -> HubAnswer? {
        var conflicts: [HubRecord] = []
        var refused: [Int: String] = [:]
        var shares: [String: Share?] = [:]
        for (index, item) in push.items.enumerated() {
            let zone = item.record.id.zone
            let share = try shares[zone] ?? share(of: zone)
            shares[zone] = .some(share)
            if item.record.hubBytes > limits.recordBytes {
                refused[index] = "is larger than the hub's \(limits.recordBytes) bytes a record"
            } else if let reason = try refusal(of: item.record, share, caller) {
                refused[index] = reason
            } else {
                if item.base != nil { try listPlace(of: item.record.id) }
                let known = try place(replacedBy: item)?.version
                if known == item.base { continue }
                do {
                    // A hub never forgets a record, so the base is of another history.
                    guard known != nil, let current = try record(item.record.id) else { throw HubError.tokenUnknown }
                    if current.version != item.base { conflicts.append(current) }
                } catch let error as BackupError where error.code == .damaged {
                    refused[index] = HubDefect.ofIt + error.message
                }
            }
        }
        return conflicts.isEmpty && refused.isEmpty
            ? nil : .rejected(conflicts: conflicts, refused: refused, head: head)
    }

    /// Returns the last number used.
    private func write(_ push: HubPush, after start: Int64) throws -> Int64 {
        var last = start
        var opened: [String] = []
        for item in push.items {
            last += 1
            if Share.isShare(item.record), try opens(item.record) { opened.append(item.record.id.zone) }
            let known = item.base == nil ? nil : try place(replacedBy: item)
            let statement = try database.statement(known == nil ? Self.insert : Self.update)
            Store.bind(item.record, change: last, to: statement)
            if let known { statement.bind(15, known.change) }
            try statement.bind(12, Int64(0)).bind(14, last).run()
            if let known { try dropProof(at: known.change) }
            try prove(item.record, version: last)
            try notePlace(of: item.record.id, last)
        }
        for zone in opened { last = try bringForward(zone, after: last) }
        guard last <= Self.highest else {
            throw FileHub.damaged("it has no numbers left for new records", at: path)
        }
        try settlePlaces()
        return last
    }

    private static let insert = Query(
        "INSERT INTO record (\(Store.recordColumns), version) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
    private static let update = Query(
        """
        UPDATE record SET (\(Store.recordColumns), version) = (?,?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE change = ?
        """)
    /// Most records of a push are new. So their keys are looked for first, in one table after the other: for both at once
    /// SQLite would fill a third.
    private static let placesOfKey = ["recent", "identity"].map { Query("SELECT change FROM \($0) WHERE key = ?") }
    private static let place = Query("SELECT change, version \(atPlace)")
    private static let record = Query("SELECT \(columns) \(atPlace)")
    private static let atPlace = "FROM record WHERE change = ? AND zone = ? AND ifnull(name, local_id) = ?"

    /// FNV-1a over zone and name, as a number that SQLite keeps in six bytes. http://www.isthe.com/chongo/tech/comp/fnv/
    private static func key(_ id: RecordID) -> Int64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for text in [id.zone, id.name] {
            for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
            hash = hash &* 0x100_0000_01b3
        }
        return Int64(hash >> 17)
    }

    func place(of id: RecordID) throws -> (change: Int64, version: Int64)? {
        // A row whose name is too large to be read is not this one.
        do {
            return try find(id, Self.place) { ($0.integer(0), Self.version($0.integer(1), at: $0.integer(0))) }
        } catch let error as BackupError where error.isTooLarge { return nil }
    }

    func record(_ id: RecordID) throws -> HubRecord? {
        try find(id, Self.record, hubRecord)
    }

    /// Throws `.damaged` when the row cannot be read as it is.
    private func hubRecord(_ row: Statement) throws -> HubRecord {
        guard [1, 2, 3, 4, 5, 6, 9].allSatisfy(row.isUTF8) else { throw BackupError(.damaged, "is not UTF-8") }
        let numbers = [0, 7, 8, 10, 11].allSatisfy(row.isInteger) && (row.isNull(12) || row.isInteger(12))
        guard numbers else { throw BackupError(.damaged, "has no number where one belongs") }
        guard let version = soundVersion(row) else { throw BackupError(.damaged, "is not as it was written") }
        let record = try Store.storedRecord(row).record
        // Where nothing vouches for a row, it is the hub that has to see damage: other devices hear of it then.
        if row.isNull(14), !record.isDeleted {
            do { try Fields.check(record.fields) } catch let error as BackupError {
                throw BackupError(.damaged, error.message)
            }
        }
        return HubRecord(record, version: version)
    }

    private func find<Result>(_ id: RecordID, _ query: Query, _ read: (Statement) throws -> Result) throws -> Result? {
        var result: Result?
        _ = try forEachPlace(of: id) { place in
            let found = try database.statement(query).bind(1, place).bind(2, id.zone).bind(3, id.name)
            defer { found.reset() }
            guard try found.step() else { return false }
            result = try read(found)
            return true
        }
        return result
    }

    /// Whether `body` is true of one of the places that the tables of keys name for a record.
    func forEachPlace(of id: RecordID, _ body: (Int64) throws -> Bool) throws -> Bool {
        for places in Self.placesOfKey {
            let places = try database.statement(places).bind(1, Self.key(id))
            defer { places.reset() }
            while try places.step() { if try body(places.integer(0)) { return true } }
        }
        return false
    }

    func notePlace(of id: RecordID, _ change: Int64) throws {
        try database.statement(Self.insertPlace).bind(1, Self.key(id)).bind(2, change).run()
    }

    /// A device knows a version of the record, so the hub has given it out. Where `identity` does not know its place, as
    /// after a name was changed in the row, the record is looked for among all rows.
    private func listPlace(of id: RecordID) throws {
        guard try place(of: id) == nil else { return }
        var found: Int64?
        try forEachRow(Self.names) { place, row in
            if let row, row.equals(1, id.zone), row.equals(2, id.name) { found = place }
            return found == nil
        }
        if let found { try notePlace(of: id, found) }
    }

    private static let insertPlace = Query("INSERT OR IGNORE INTO recent VALUES (?, ?)")

    /// Brings the keys that have gathered to where they stay, in their order, and drops those of what has moved on.
    private func settlePlaces() throws {
        guard try database.integer("SELECT count(*) FROM recent") > 20 * limits.recordsPerPush else { return }
        try database.execute(
            """
            DELETE FROM identity WHERE key IN (SELECT key FROM recent)
                AND NOT EXISTS (SELECT 1 FROM record WHERE record.change = identity.change);
            INSERT INTO identity SELECT key, change FROM recent
                WHERE EXISTS (SELECT 1 FROM record WHERE record.change = recent.change) ORDER BY key, change;
            DELETE FROM recent;
            """)
    }

    // MARK: Reading

    static let names = Query(
        "SELECT change, zone, ifnull(name, local_id) FROM record WHERE change >= ? ORDER BY change")

    public func changes(after token: String?, limit: Int, for caller: String?) throws -> HubPage {
        try busyIsTemporary {
            var (damaged, orphans): ([Int64], [Int64]) = ([], [])
            let page = try database.read {
                damaged = []
                let head = try last()
                let start = try token.map { try position(of: $0) }
                var shares: [String: Share?] = [:]
                var page = HubPage(records: [], token: "", more: false)
                var (last, bytes) = (start ?? 0, 0)
                try forEachRow(Self.changes, from: start.map { $0 + 1 } ?? .min) { place, row in
                    if place > 0, page.records.count + page.defects.count >= max(1, limit) || bytes > Self.pageBytes {
                        page.more = true
                        return false
                    }
                    last = max(last, place)
                    let id = try row == nil ? identity(at: place) : nil
                    let zone = id?.zone ?? row?.text(1) ?? ""
                    let share = try shares[zone] ?? share(of: zone)
                    shares[zone] = .some(share)
                    guard share?.mayRead(caller) ?? true else {
                        if share == Self.unreadable, let row, let defect = try defectOfShare(in: zone, row) {
                            damaged.append(place)
                            page.defects.append(defect)
                        }
                        return true
                    }
                    bytes += (row?.bytes(5).count ?? 0) + 200
                    do {
                        guard let row else { throw BackupError(.damaged, "is too large to be read") }
                        let found = try hubRecord(row)
                        if !Share.isOfFiles(found.record) { page.records.append(found) }
                    } catch let error as BackupError where error.code == .damaged {
                        if row != nil { damaged.append(place) }
                        page.defects.append(
                            HubDefect(
                                id: try id ?? identity(at: place), reason: error.message,
                                version: row.map { Self.version($0.integer(13), at: place) }))
                    }
                    return true
                }
                page.token = try self.token(at: page.more ? last : head)
                orphans = try self.orphans(from: start.map { $0 + 1 } ?? 1, through: page.more ? last : .max)
                return page
            }
            try announce(damaged)
            return try findStrayed(orphans) ? changes(after: token, limit: limit, for: caller) : page
        }
    }

    private static let changes = Query(
        "SELECT \(columns) FROM record WHERE change >= ? ORDER BY change")

    /// Visits the rows in the order of their places, until `body` says false. Instead of a row that is too large to be read
    /// it gets nil, and the others come all the same.
    func forEachRow(
        _ query: Query, from first: Int64 = .min, _ body: (_ place: Int64, Statement?) throws -> Bool
    ) throws {
        var next = first
        while true {
            let rows = try database.statement(query).bind(1, next)
            defer { rows.reset() }
            do {
                while try rows.step() {
                    let place = rows.integer(0)
                    guard try body(place, rows), place < .max else { return }
                    next = place + 1
                }
                return
            } catch let error as BackupError where error.isTooLarge {
                let culprit = try database.statement(
                    "SELECT change FROM record WHERE change >= ? ORDER BY change LIMIT 1"
                )
                .bind(1, next)
                defer { culprit.reset() }
                guard try culprit.step() else { return }
                let place = culprit.integer(0)
                guard try body(place, nil), place < .max else { return }
                next = place + 1
            }
        }
    }

    /// Which record a row is that cannot be read as a whole.
    func identity(at place: Int64) throws -> RecordID {
        let query = try database.statement("SELECT zone, ifnull(name, local_id) FROM record WHERE change = ?")
            .bind(1, place)
        defer { query.reset() }
        do {
            guard try query.step(), query.isUTF8(0), query.isUTF8(1) else { return HubDefect.row(place) }
            return RecordID(zone: query.text(0), name: query.text(1))
        } catch let error as BackupError where error.isTooLarge { return HubDefect.row(place) }
    }

    public func fetch(_ ids: [RecordID], for caller: String?) throws -> HubFetch {
        try busyIsTemporary {
            var damaged: [Int64] = []
            let answer = try database.read {
                damaged = []
                var answer = HubFetch(records: [], head: try token(at: try last()))
                for id in ids {
                    let share = try share(of: id.zone)
                    guard share?.mayRead(caller) ?? true else {
                        if share == Self.unreadable, id == Share.id(of: id.zone) {
                            answer.defects.append(HubDefect(id: id, reason: Self.shareUnreadable))
                        }
                        continue
                    }
                    do { if let found = try record(id) { answer.records.append(found) } } catch let error as BackupError
                        where error.code == .damaged
                    {
                        let place = try place(of: id)
                        if let place, !error.isTooLarge { damaged.append(place.change) }
                        answer.defects.append(HubDefect(id: id, reason: error.message, version: place?.version))
                    }
                }
                return answer
            }
            try announce(damaged)
            return answer
        }
    }
}

extension BackupError {
    /// Whether a row was met with a value above what SQLite may read.
    fileprivate var isTooLarge: Bool { code == .damaged && message == SQLite.tooLarge }
}
