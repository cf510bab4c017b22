/// Where every blob of a vault lies: what all of its index files say, in less than 64 bytes a blob.
///
/// Packs keep their blobs together and in the order in which they lie in the file; a hash table leads from a blob's name
/// to its number. A name is a SHA-256, so its first bits are the hash.
public struct BlobIndex: Sendable {
    public struct Pack: Sendable {
        public let id: SHA256Digest
        /// The numbers of its blobs.
        public let blobs: Range<Int>
        /// As the index has it: what the blobs and the header that describes them come to.
        public let size: UInt64
        /// rustic's word for "will be removed", and what we say of a pack that is lost: it MUST NOT be counted on.
        public fileprivate(set) var isToBeDeleted: Bool
    }

    private struct Place {
        /// Shifted by one; the lowest bit is the type.
        var pack: UInt32
        var offset: UInt32
        var length: UInt32
        var plainLength: UInt32
    }

    public private(set) var packs: [Pack] = []
    private var packNumbers: [SHA256Digest: UInt32] = [:]
    private var ids: [SHA256Digest] = []
    private var places: [Place] = []
    /// Numbers of blobs plus one; 0 is free. Its length is a power of two.
    private var slots: [UInt32] = [UInt32](repeating: 0, count: 1024)

    public init() {}

    /// The number of blobs, doubles included.
    public var count: Int { ids.count }

    public enum Addition: Sendable, Equatable {
        case new
        /// Another index says the same.
        case known
        /// Another index says something else of the same pack.
        case contradicting
    }

    /// Takes a pack in. One that is there already stays as it is.
    @discardableResult
    public mutating func add(_ pack: PackIndex.Pack) -> Addition {
        let blobs = Self.isSorted(pack.blobs) ? pack.blobs : pack.blobs.sorted { $0.offset < $1.offset }
        if let number = packNumbers[pack.id] {
            let known = packs[Int(number)].blobs
            let same = known.count == blobs.count && zip(known, blobs).allSatisfy { self[$0] == $1 }
            return same ? .known : .contradicting
        }
        let number = UInt32(packs.count)
        let start = ids.count
        packNumbers[pack.id] = number
        packs.append(
            Pack(
                id: pack.id, blobs: start..<start + blobs.count, size: PackHeader.packSize(blobs),
                isToBeDeleted: pack.isToBeDeleted))
        if (start + blobs.count) * 4 > slots.count * 3 { grow(for: start + blobs.count) }
        for blob in blobs {
            ids.append(blob.id)
            places.append(
                Place(
                    pack: number << 1 | UInt32(blob.type.rawValue), offset: blob.offset, length: blob.length,
                    plainLength: blob.plainLength))
            insert(ids.count - 1)
        }
        return .new
    }

    /// The index with what other files say of some packs, too: before restic 0.10 a pack could be described in parts. Given back
    /// apart are packs of which both cannot be true.
    func merging(_ others: [SHA256Digest: Set<PackedBlob>]) -> (index: BlobIndex, contradictions: [SHA256Digest]) {
        var index = BlobIndex()
        var contradictions: [SHA256Digest] = []
        for known in packs {
            var pack = PackIndex.Pack(id: known.id, blobs: known.blobs.map { self[$0] })
            pack.isToBeDeleted = known.isToBeDeleted
            if let more = others[known.id] {
                let all = more.union(pack.blobs).sorted { ($0.offset, $0.length) < ($1.offset, $1.length) }
                let fits = zip(all, all.dropFirst()).allSatisfy { $0.end <= UInt64($1.offset) }
                if fits { pack.blobs = all } else { contradictions.append(known.id) }
            }
            index.add(pack)
        }
        return (index, contradictions)
    }

    private static func isSorted(_ blobs: [PackedBlob]) -> Bool {
        var last: UInt32 = 0
        for blob in blobs {
            if blob.offset < last { return false }
            last = blob.offset
        }
        return true
    }

    private mutating func grow(for count: Int) {
        var size = slots.count
        while count * 2 > size { size *= 2 }
        slots = [UInt32](repeating: 0, count: size)
        for number in ids.indices { insert(number) }
    }

    private mutating func insert(_ number: Int) {
        let mask = slots.count - 1
        var slot = Int(truncatingIfNeeded: ids[number].words[0]) & mask
        while slots[slot] != 0 { slot = (slot + 1) & mask }
        slots[slot] = UInt32(number + 1)
    }

    // MARK: Looking up

    public subscript(number: Int) -> PackedBlob {
        let place = places[number]
        return PackedBlob(
            place.pack & 1 == 0 ? .data : .tree, ids[number], offset: place.offset, length: place.length,
            plainLength: place.plainLength)
    }

    /// The number of the pack that a blob lies in.
    public func pack(of number: Int) -> Int { Int(places[number].pack >> 1) }

    public func packNumber(_ id: SHA256Digest) -> Int? { packNumbers[id].map(Int.init) }

    /// Packs that are in the vault and not in here.
    func unnamed(among items: [VaultListing.Item]) -> [VaultListing.Item] {
        items.filter { packNumber($0.id) == nil }
    }

    /// From now on nobody relies on what a pack holds: whoever has it stores it again.
    mutating func distrust(_ number: Int) { packs[number].isToBeDeleted = true }

    /// Calls `body` with the number of each copy of a blob until that answers false.
    func forEachCopy(_ handle: BlobHandle, _ body: (Int) throws -> Bool) rethrows {
        let mask = slots.count - 1
        var slot = Int(truncatingIfNeeded: handle.id.words[0]) & mask
        while slots[slot] != 0 {
            let number = Int(slots[slot]) - 1
            if places[number].pack & 1 == UInt32(handle.type.rawValue), ids[number] == handle.id {
                if try !body(number) { return }
            }
            slot = (slot + 1) & mask
        }
    }

    /// The numbers of all copies of a blob.
    func copies(of handle: BlobHandle) -> [Int] {
        var numbers: [Int] = []
        forEachCopy(handle) { number in
            numbers.append(number)
            return true
        }
        return numbers
    }

    /// The blob's number, of a copy that stays if there is one.
    public func find(_ handle: BlobHandle) -> Int? {
        var found: Int?
        forEachCopy(handle) { number in
            if found == nil || packs[pack(of: number)].isToBeDeleted == false { found = number }
            return packs[pack(of: number)].isToBeDeleted
        }
        return found
    }

    /// Whether the blob is there to stay, so that nobody needs to write it again.
    public func holds(_ handle: BlobHandle) -> Bool {
        find(handle).map { !packs[pack(of: $0)].isToBeDeleted } ?? false
    }
}

extension Vault.LoadedIndex {
    /// Throws when a part of the index cannot be relied on.
    func mustBeWhole(_ consequence: String = "") throws {
        guard let damage = findings.first(where: { $0.severity == .damage }) else { return }
        let isOfSubject = !consequence.isEmpty && damage.message.hasPrefix("is ")
        throw BackupError(
            .damaged, "\(consequence)\(isOfSubject ? "it " : "")\(damage.message)", at: damage.subject,
            remedy: damage.remedy ?? "see 'backup-tool vault check'")
    }
}

extension Vault {
    /// An index as it was loaded.
    public struct LoadedIndex: Sendable {
        public var blobs = BlobIndex()
        /// The files that it was made of, sorted.
        public var files: [SHA256Digest] = []
        /// Files that are damaged: what they said, only the packs can tell.
        var unusable: [SHA256Digest] = []
        /// Packs of which two files say what cannot both be true.
        var contradictions: Set<SHA256Digest> = []
        /// A file that may be whole and could not be used.
        var obstacle: Finding?
        /// What could not be read, and what contradicts itself. Who changes anything MUST stop when there is damage.
        public var findings: [Finding] = []
    }

    /// Reads all index files.
    public func loadIndex() throws -> LoadedIndex {
        for _ in 0..<3 {
            if let loaded = try loadListedIndex() { return loaded }
            // What takes the place of an index is there before that goes.
            pause(backend.settling)
        }
        throw BackupError(
            .temporary, "another process is rebuilding the index", at: backend.location,
            remedy: "run the command again")
    }

    /// On all cores; nil when a file is gone since it was listed.
    private func loadListedIndex() throws -> LoadedIndex? {
        var loaded = LoadedIndex()
        let listing = try backend.list(.index)
        loaded.findings += Self.misplaced(listing)
        // Some files at a time, so that their packs need not all be in memory beside the index made of them.
        let ids = listing.items.map(\.id)
        var again: [SHA256Digest: Set<PackedBlob>] = [:]
        for start in stride(from: 0, to: ids.count, by: 8) {
            let part = Array(ids[start..<min(start + 8, ids.count)])
            let results = try Parallel.map(part.count, state: { try VaultCipher(key) }) { cipher, number in
                try packs(of: part[number], cipher)
            }
            for (id, result) in zip(part, results) {
                switch result {
                case .success(let packs):
                    loaded.files.append(id)
                    for pack in packs where loaded.blobs.add(pack) == .contradicting {
                        again[pack.id, default: []].formUnion(pack.blobs)
                    }
                case .failure(let error):
                    if error.code == .notFound { return nil }
                    try note(id, error, in: &loaded)
                }
            }
        }
        guard !again.isEmpty else { return loaded }
        let (index, contradictions) = loaded.blobs.merging(again)
        loaded.blobs = index
        loaded.contradictions = Set(contradictions)
        loaded.findings += contradictions.map { id in
            Finding(
                .conflict, .damage, VaultFile(.data, id).path, "two indexes say different things of this pack",
                remedy: Self.indexRemedy)
        }
        return loaded
    }

    private func note(_ id: SHA256Digest, _ error: BackupError, in loaded: inout LoadedIndex) throws {
        let file = VaultFile(.index, id)
        let misfiled = try misfiled(file)
        let isDamaged = misfiled == nil && error.code == .damaged
        let finding =
            misfiled
            ?? Finding(
                .unreadable, .damage, file.path, "the index cannot be used: \(error.message)",
                remedy: isDamaged ? Self.indexRemedy : error.remedy)
        loaded.findings.append(finding)
        if isDamaged { loaded.unusable.append(id) } else { loaded.obstacle = loaded.obstacle ?? finding }
    }

    func packs(of id: SHA256Digest, _ cipher: VaultCipher) throws -> Result<[PackIndex.Pack], BackupError> {
        do {
            let json = try unpacked(.index, id, cap: Unpacked.Cap.index, cipher)
            var packs: [PackIndex.Pack] = []
            try json.withUnsafeBytes { bytes in
                try PackIndex.forEachPack(bytes) { pack in
                    guard version > 1 || pack.blobs.allSatisfy({ !$0.isCompressed }) else {
                        throw BackupError(.damaged, "names compressed blobs, which version 1 has not")
                    }
                    packs.append(pack)
                }
            }
            return .success(packs)
        } catch let error as BackupError where error.isOfBytes {
            return .failure(error)
        }
    }

    static func misplaced(_ listing: VaultListing) -> [Finding] {
        listing.misplaced.map { stray in
            if let what = stray.nonFile {
                return Finding(
                    .entryUnexpected, .damage, stray.path, "is \(what), not a file",
                    remedy: "remove it, then run 'backup-tool vault repair --save FOLDER'")
            }
            return Finding(
                .entryUnexpected, .warning, stray.path, "has the wrong name or folder, so no command reads it",
                remedy: "move it back: a pack to data/, into the folder of its first two digits, a snapshot to "
                    + "snapshots/, an index to index/; keep it until 'backup-tool vault check' finds nothing")
        }
    }

    /// The JSON inside a snapshot, an index or a lock.
    func unpacked(_ kind: VaultFile.Kind, _ id: SHA256Digest, cap: Int, _ cipher: VaultCipher) throws -> [UInt8] {
        var sealed = try backend.readAll(VaultFile(kind, id), limit: cap + (1 << 16))
        guard sealed.withUnsafeBytes({ SHA256Digest.of($0) }) == id else {
            throw BackupError(.damaged, "is not what was written: its SHA-256 is not its name")
        }
        return try sealed.withUnsafeMutableBytes { try Unpacked.decode(cipher.openInPlace($0), cap: cap) }
    }

    /// Seals and stores a snapshot or an index.
    @discardableResult
    func storeUnpacked(_ kind: VaultFile.Kind, _ json: [UInt8]) throws -> SHA256Digest {
        let sealed = try VaultCipher(key).seal(Unpacked.encode(json, version: version))
        return try sealed.withUnsafeBytes { try backend.store(kind, $0) }
    }
}
