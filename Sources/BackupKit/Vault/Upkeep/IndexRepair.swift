/// The index as the packs themselves tell it. A pack's header is authenticated and names every blob in it, so index files
/// that are damaged, gone or wrong can be made anew (decision 110).
struct MendedIndex {
    private(set) var blobs = BlobIndex()
    /// Packs that no index named, or that one described wrongly.
    private(set) var packs = 0
    /// Packs without a header that no index names: nobody can tell what is in them.
    private(set) var findings: [Finding] = []
    /// What the index said of packs that hold something else.
    private(set) var replaced: Set<BlobHandle> = []

    /// Throws where a pack cannot be read: it may be whole, and nobody else knows what is in it.
    init(_ vault: Vault, _ loaded: Vault.LoadedIndex) throws {
        var known = loaded.blobs
        var listed: Set<SHA256Digest> = []
        for pack in try vault.look(at: vault.backend.list(.data).items, .none) {
            let id = pack.file.id
            listed.insert(id)
            try pack.requireRead()
            let number = loaded.blobs.packNumber(id)
            guard let header = pack.header else {
                // Whatever an index says of a pack without a header is all that is known of it.
                if let number {
                    try keep(number, of: loaded)
                } else {
                    findings.append(pack.nameless)
                }
                continue
            }
            switch known.add(header) {
            case .known where !loaded.contradictions.contains(id): if let number { try keep(number, of: loaded) }
            case .known, .new, .contradicting: try replace(number, with: header, vault, loaded)
            }
        }
        for (number, pack) in loaded.blobs.packs.enumerated() where !listed.contains(pack.id) {
            // Whatever was said of one that is gone, none of its blobs is there.
            blobs.add(loaded.blobs.description(of: number))
        }
        guard !blobs.packs.isEmpty || loaded.unusable.isEmpty else {
            throw BackupError(
                .damaged, "no index is made while no pack is there", at: vault.backend.location,
                remedy: "look whether the disk is there that holds the folder 'data'")
        }
    }

    private mutating func keep(_ number: Int, of loaded: Vault.LoadedIndex) throws {
        let pack = loaded.blobs.description(of: number)
        guard !loaded.contradictions.contains(pack.id) else {
            throw BackupError(
                .damaged, "two indexes say different things of this pack, and it has no header of its own",
                at: VaultFile(.data, pack.id).path, remedy: "bring the pack back from a copy of the vault")
        }
        blobs.add(pack)
    }

    private mutating func replace(
        _ number: Int?, with header: PackIndex.Pack, _ vault: Vault, _ loaded: Vault.LoadedIndex
    ) throws {
        packs += 1
        guard let number else {
            blobs.add(header)
            return
        }
        let named = loaded.blobs.description(of: number)
        // Authenticated is what was written, and even that may have been wrong.
        let isHeader = try Self.soundBlobs(of: header, vault) >= Self.soundBlobs(of: named, vault)
        blobs.add(isHeader ? header : named)
        replaced.formUnion((isHeader ? named : header).blobs.map(\.handle))
    }

    private static func soundBlobs(of pack: PackIndex.Pack, _ vault: Vault) throws -> Int {
        var index = BlobIndex()
        index.add(pack)
        let reader = try BlobReader(vault)
        return try (0..<index.count).count { try reader.isWhole($0, in: index) }
    }
}

extension UnindexedPack {
    fileprivate var nameless: Finding {
        misfiled
            ?? Finding(
                .unreadable, .warning, file.path, "has no header, and no index names it: its blobs cannot be found",
                remedy:
                    "bring it back from a copy of the vault; 'backup-tool vault prune' removes it if no snapshot needs it"
            )
    }

    fileprivate func requireRead() throws {
        guard case .failure(let error) = name else { return }
        throw Vault.unreadPack(error.placed(at: file.path))
    }
}

extension BackupError {
    /// An error that names no place gets this one.
    fileprivate func placed(at place: String) -> BackupError {
        BackupError(code, message, at: subject ?? place, remedy: remedy)
    }
}

extension BlobIndex {
    /// What an index file says of a pack.
    func description(of number: Int) -> PackIndex.Pack {
        var pack = PackIndex.Pack(id: packs[number].id, blobs: packs[number].blobs.map { self[$0] })
        pack.isToBeDeleted = packs[number].isToBeDeleted
        return pack
    }
}
