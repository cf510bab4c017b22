/// Hashes of what a `.bib` file has brought, in their order. The lowest bit tells what the file holds now from what it has
/// ever brought.
struct Brought {
    private let hashes: [UInt64]

    /// In any order; each may be there many times.
    init(_ hashes: [UInt64]) {
        var sorted = hashes
        sorted.sort()
        var end = 0
        for hash in sorted where end == 0 || sorted[end - 1] != hash {
            sorted[end] = hash
            end += 1
        }
        sorted.removeSubrange(end...)
        self.hashes = sorted
    }

    init(joining all: [Brought]) { self.init(all.flatMap(\.hashes)) }

    fileprivate init(bytes: UnsafeRawBufferPointer) {
        hashes = stride(from: 0, to: bytes.count - bytes.count % 8, by: 8).map {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: $0, as: UInt64.self))
        }
    }

    func contains(_ hash: UInt64) -> Bool {
        let place = firstIndex(below: hashes.count) { hashes[$0] >= hash }
        return place < hashes.count && hashes[place] == hash
    }

    /// The marks of what stands between entries, as `library.bib` shows it, or of a keyword.
    struct Part {
        private let hash: UInt64

        fileprivate init(hash: UInt64) { self.hash = hash }

        init(_ hasher: RecordHasher, shown: [UInt8]) {
            hash = shown.withUnsafeBytes { hasher.text($0, after: hasher.text("part")) }
        }

        var everBrought: UInt64 { hash & ~1 }
        var held: UInt64 { hash | 1 }
    }

    /// The marks of a publication.
    struct Record {
        private let hasher: RecordHasher
        private let hash: UInt64

        init(_ hasher: RecordHasher, _ localID: String) {
            self.hasher = hasher
            hash = UInt64(bitPattern: hasher.key(localID))
        }

        var everBrought: UInt64 { hash & ~1 }
        var held: UInt64 { hash | 1 }

        /// Of all that a file says of it.
        func whole(_ fields: UnsafeRawBufferPointer) -> UInt64 { hasher.text(fields, after: hash) & ~1 }

        func field(_ name: UnsafeRawBufferPointer) -> FieldMarks {
            FieldMarks(hasher: hasher, hash: hasher.text(name, after: hash))
        }

        func everHeld(_ field: Field) -> UInt64 { marks(field).everHeld }

        /// Of one of the words of a field that is a list.
        func keyword(_ word: String) -> Part {
            Part(hash: hasher.text(word, after: hasher.text("keyword", after: hash)))
        }

        func everBrought(_ field: Field) -> UInt64 {
            var value = field.value
            return value.withUTF8 { marks(field).everBrought(UnsafeRawBufferPointer($0)) }
        }

        func held(_ field: Field) -> UInt64 { marks(field).held }

        private func marks(_ field: Field) -> FieldMarks {
            FieldMarks(hasher: hasher, hash: hasher.text(field.name, after: hash))
        }
    }

    /// A field is held whatever its value: two files may word it in two ways, and the store has one of these.
    struct FieldMarks {
        fileprivate let hasher: RecordHasher
        fileprivate let hash: UInt64

        var held: UInt64 { hash | 1 }
        var everHeld: UInt64 { hash & ~1 }

        func everBrought(_ value: UnsafeRawBufferPointer) -> UInt64 { hasher.text(value, after: hash) & ~1 }
    }

    /// What the file holds from now on, and with it all that these ever brought; with `keeping` also what these held.
    fileprivate func after(_ known: Brought, keeping: Bool) -> Brought {
        Brought(hashes + (keeping ? known.hashes : known.hashes.filter { $0 & 1 == 0 }))
    }

    private static let gone: UInt64 = 1 << 63

    /// The same without these marks, or with them where they were there once.
    fileprivate func with(_ marks: Set<UInt64>, areThere: Bool) -> Brought {
        Brought(hashes.map { marks.contains(areThere ? $0 ^ Self.gone : $0) ? $0 ^ Self.gone : $0 })
    }

    fileprivate func missed(by other: Brought) -> Brought { Brought(hashes.filter { !other.contains($0) }) }

    fileprivate func without(_ marks: Set<UInt64>) -> Brought { Brought(hashes.filter { !marks.contains($0) }) }

    fileprivate static func same(_ left: Brought, _ right: Brought) -> Bool { left.hashes == right.hashes }

    fileprivate func write<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        // A key path costs a hundred times as much as a closure here.
        try hashes.map { $0.littleEndian }.withUnsafeBytes(body)
    }

    fileprivate var held: [UInt64] { hashes.filter { $0 & 1 == 1 } }
}

/// The `.bib` files that this device has imported, by their real paths, and hashes of what each of them brought. It stays on
/// this device: no other has these files.
extension Store {
    /// What the file of that path is called in the order of its entries; nil when it was not imported here.
    func importedName(ofPath path: String) throws -> String? {
        let query = try database.statement("SELECT name FROM imported_file WHERE path = ?").bind(1, path)
        defer { query.reset() }
        return try query.step() ? query.text(0) : nil
    }

    /// The paths of the files that go by that name.
    func importedPaths(named name: String) throws -> [String] {
        let query = try database.prepare("SELECT path FROM imported_file WHERE name = ? ORDER BY path").bind(1, name)
        var paths: [String] = []
        while try query.step() { paths.append(query.text(0)) }
        return paths
    }

    /// What the file of one path has brought is what the file of another path has brought.
    func moveImported(from old: String, to new: String) throws {
        try RowSeal.imported.resealing(old, as: new, self) {
            try database.statement("UPDATE imported_file SET path = ? WHERE path = ?").bind(1, new).bind(2, old).run()
        }
        hasNewMarks = true
    }

    /// The same where the file of the new path is known, too.
    func joinImported(from old: String, to new: String) throws {
        guard try importedName(ofPath: new) != nil else { return try moveImported(from: old, to: new) }
        try setBrought(Brought(joining: [brought(by: old), brought(by: new)]), by: new)
        try database.statement("DELETE FROM imported_file WHERE path = ?").bind(1, old).run()
        hasNewMarks = true
    }

    private func setBrought(_ brought: Brought, by path: String) throws {
        try RowSeal.imported.resealing(path, self) {
            try brought.write { bytes in
                try database.statement("UPDATE imported_file SET brought = ? WHERE path = ?")
                    .bind(1, blob: bytes).bind(2, path).run()
            }
        }
    }

    /// Where the file of that path may have been before; nil where no import has said so.
    func oldPlace(of path: String) throws -> String? { try meta(Self.oldPlace + path) }

    func setOldPlace(of path: String, _ old: String?) throws { try setMeta(Self.oldPlace + path, old) }

    private static let oldPlace = "old place:"

    /// The other files by their paths, with what each has brought and says. Backups, which have no name, are left out.
    func importedFiles(otherThan path: String) throws -> [(path: String, brought: Brought, said: HeldSince)] {
        let query = try database.prepare(
            "SELECT path, brought, since FROM imported_file WHERE path <> ? AND name <> '' ORDER BY path"
        ).bind(1, path)
        var files: [(path: String, brought: Brought, said: HeldSince)] = []
        while try query.step() {
            files.append((query.text(0), Brought(bytes: query.bytes(1)), HeldSince(bytes: query.bytes(2))))
        }
        return files
    }

    /// What the file of that path has brought, and held when it was imported last.
    func brought(by path: String) throws -> Brought {
        let query = try database.prepare("SELECT brought FROM imported_file WHERE path = ?").bind(1, path)
        return try query.step() ? Brought(bytes: query.bytes(0)) : Brought([])
    }

    /// Since when the file of that path has said what it says.
    func heldSince(by path: String) throws -> HeldSince {
        let query = try database.prepare("SELECT since FROM imported_file WHERE path = ?").bind(1, path)
        return try query.step() ? HeldSince(bytes: query.bytes(0)) : HeldSince()
    }

    /// The same of all files: whoever copies one says nothing new.
    func heldSinceByAny() throws -> HeldSince {
        if let known = seen.saidByFiles { return known }
        let query = try database.prepare("SELECT since FROM imported_file")
        var held = HeldSince()
        while try query.step() { held.formUnion(HeldSince(bytes: query.bytes(0))) }
        seen.saidByFiles = held
        return held
    }

    /// What all other files held when they were imported last; `isWanted` gets their names. A backup, which has no name,
    /// holds what once was.
    func heldByOthers(than path: String, where isWanted: (String) -> Bool = { _ in true }) throws -> Brought {
        let others = "SELECT brought, name FROM imported_file WHERE path <> ? AND name <> ''"
        let query = try database.prepare(others).bind(1, path)
        var held: [UInt64] = []
        while try query.step() {
            if isWanted(query.text(1)) { held += Brought(bytes: query.bytes(0)).held }
        }
        return Brought(held)
    }

    /// `isPart`: not all of the file was read, so it may hold and say what it did before.
    func noteImported(
        path: String, name: String, brought: [UInt64], since: [Timestamp: [UInt64]], isPart: Bool
    ) throws {
        let known = try self.brought(by: path)
        let all = Brought(brought).after(known, keeping: isPart)
        let since = try HeldSince.bytes(of: isPart ? heldSince(by: path).and(since) : since)
        let query = try database.prepare("SELECT since FROM imported_file WHERE path = ?").bind(1, path)
        let isKnown = try query.step() && query.bytes(0).elementsEqual(since)
        if try isKnown && importedName(ofPath: path) == name, Brought.same(all, known) { return }
        try rememberSaid(by: path, known, now: all, since: since)
        try RowSeal.imported.resealing(path, self) {
            let query = try database.statement(
                """
                INSERT INTO imported_file (path, name, brought, since) VALUES (?, ?, ?, ?) ON CONFLICT (path)
                DO UPDATE SET name = excluded.name, brought = excluded.brought, since = excluded.since
                """)
            try all.write { bytes in
                try since.withUnsafeBytes { since in
                    try query.bind(1, path).bind(2, name).bind(3, blob: bytes).bind(4, blob: since).run()
                }
            }
        }
        hasNewMarks = true
    }

    /// Keeps the difference to what the file said before, for the undo of the current batch.
    private func rememberSaid(by path: String, _ known: Brought, now: Brought, since: [UInt8]) throws {
        guard let batch = currentBatch else { return }
        let before = try heldSince(by: path)
        // A new file has lost nothing, and may say much.
        let lost = before.isEmpty ? before : before.missed(by: since.withUnsafeBytes { HeldSince(bytes: $0) })
        let insert = try database.statement("INSERT OR IGNORE INTO batch_said VALUES (?, ?, ?, ?, ?)")
        insert.bind(1, batch.id).bind(2, path)
        try known.missed(by: now).write { gone in
            try Brought(now.held.filter { !known.contains($0) }).write { new in
                try HeldSince.bytes(of: lost.byTime).withUnsafeBytes { since in
                    try insert.bind(3, blob: gone).bind(4, blob: new).bind(5, blob: since).run()
                }
            }
        }
    }

    /// After the undo of a batch each file that it read holds what it held before. The file has still said what it said in
    /// that batch.
    func returnSaid(_ batch: Batch) throws {
        let query = try database.prepare("SELECT path, lost, new, since FROM batch_said WHERE batch = ?")
            .bind(1, batch.id)
        var files: [(path: String, lost: Brought, new: Brought, since: HeldSince)] = []
        while try query.step() {
            let (lost, new) = (Brought(bytes: query.bytes(1)), Brought(bytes: query.bytes(2)))
            files.append((query.text(0), lost, new, HeldSince(bytes: query.bytes(3))))
        }
        for file in files where try importedName(ofPath: file.path) != nil {
            let brought = try Brought(joining: [brought(by: file.path).missed(by: file.new), file.lost])
            var since = try heldSince(by: file.path)
            since.formUnion(file.since)
            try RowSeal.imported.resealing(file.path, self) {
                let update = try database.statement("UPDATE imported_file SET brought = ?, since = ? WHERE path = ?")
                try brought.write { brought in
                    try HeldSince.bytes(of: since.byTime).withUnsafeBytes { since in
                        try update.bind(1, blob: brought).bind(2, blob: since).bind(3, file.path).run()
                    }
                }
            }
        }
    }

    /// An import noted these marks for the file of that path, and it has turned out that it should not.
    func forget(_ marks: Set<UInt64>, broughtBy path: String) throws {
        let known = try brought(by: path)
        let left = known.without(marks)
        guard !Brought.same(left, known) else { return }
        try setBrought(left, by: path)
    }

    /// An undo takes out what files have brought, and whatever gets such an id then is another work. A redo brings it back.
    func noteBrought(_ localIDs: [String], areThere: Bool) throws {
        guard !localIDs.isEmpty else { return }
        let memories = try memories()
        let records = localIDs.map { Brought.Record(hasher, memories[$0] ?? $0) }
        let marks = Set(records.flatMap { [$0.everBrought, $0.held] })
        let query = try database.prepare("SELECT path, brought FROM imported_file")
        var files: [(path: String, brought: Brought)] = []
        while try query.step() {
            let known = Brought(bytes: query.bytes(1))
            let now = known.with(marks, areThere: areThere)
            if !Brought.same(known, now) { files.append((query.text(0), now)) }
        }
        for file in files { try setBrought(file.brought, by: file.path) }
    }

    private static let memory = "memory:"

    /// By which id the memories of the imported files know a publication that has got another id since. Ids change where a
    /// hub has another work under them; what a file has brought stays with the work.
    func memories() throws -> [String: String] {
        let query = try database.prepare("SELECT substr(key, 8), value FROM meta WHERE key >= ? AND key < 'memory;'")
            .bind(1, Self.memory)
        var memories: [String: String] = [:]
        while try query.step() { memories[query.text(0)] = query.text(1) }
        return memories
    }

    /// A record gets another local id. What the files have brought under the old one is remembered of the new one, and
    /// whatever gets the old one now is another work.
    func moveMemory(of record: Record, to new: String) throws {
        // A tombstone may have the id of its listing already (`WorkID.tombstone`). The files know it by its name then.
        let old = sameBytes(record.localID, new) && record.isDeleted ? record.id.name : record.localID
        guard !sameBytes(old, new) else { return }
        let known = try meta(Self.memory + old) ?? old
        try setMeta(Self.memory + new, known)
        try setMeta(Self.memory + old, "\(known)'")
    }

    /// Whether any file has brought that publication.
    func isBrought(_ localID: String) throws -> Bool {
        let mark = Brought.Record(hasher, try meta(Self.memory + localID) ?? localID).everBrought
        let query = try database.prepare("SELECT brought FROM imported_file")
        while try query.step() {
            if Brought(bytes: query.bytes(0)).contains(mark) { return true }
        }
        return false
    }
}
