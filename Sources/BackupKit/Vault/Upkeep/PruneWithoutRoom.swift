extension Vault {
    /// Pruning where new packs and a whole new index do not fit: only packs that nobody needs at all go. The order is the
    /// usual one, but for one index file after the other: its successor without those packs, the file itself, and then
    /// the packs that no index names any more, whose room serves the next. `bytes` is what the copies would have taken.
    func pruneWithoutRoom(
        _ options: PruneOptions, copying bytes: UInt64, _ progress: Progress
    ) throws -> PruneResult {
        _ = try backend.giveRoomUp()
        var options = options
        options.repacks = false
        // What the attempt before has written is in the vault now.
        let (plan, loaded) = try prunePlan(options, progress)
        var result = plan.result
        try backend.remove(plan.unindexed.map { VaultFile(.data, $0) })
        let gone = Set(plan.remove.map { loaded.blobs.packs[$0].id })
        let cipher = try VaultCipher(key)
        var namings: [SHA256Digest: Int] = [:]
        var works: [(file: SHA256Digest, left: Int)] = []
        for file in loaded.files {
            let packs = try packs(of: file, cipher).get()
            let named = packs.filter { gone.contains($0.id) }
            for pack in named { namings[pack.id, default: 0] += 1 }
            if !named.isEmpty { works.append((file, packs.count - named.count)) }
        }
        // The shortest successors first: mostly there is none to write at all.
        for work in works.sorted(by: { $0.left < $1.left }) {
            try Interrupt.check()
            let packs = try packs(of: work.file, cipher).get()
            let kept = packs.filter { !gone.contains($0.id) }
            if !kept.isEmpty { try storeUnpacked(.index, PackIndex(packs: kept).encoded()) }
            try backend.remove([VaultFile(.index, work.file)])
            var free: [SHA256Digest] = []
            for pack in packs where gone.contains(pack.id) {
                namings[pack.id, default: 1] -= 1
                if namings[pack.id] == 0 { free.append(pack.id) }
            }
            try backend.remove(free.map { VaultFile(.data, $0) })
        }
        // The packs are gone in any case, and the next prune tries again.
        try? backend.setRoomAside()
        if bytes > 0 {
            let again = "run \(options.typed("vault prune")) again"
            result.findings.append(
                Finding(
                    .skipped, .warning, backend.location,
                    "there was no room to write: packs that are needed in part were left as they are",
                    remedy: result.bytesFreed >= bytes ? again : "free \(bytes) bytes on its disk, and \(again)"))
        }
        return result
    }

    /// A disk is full, and there is nothing to remove: whoever prunes again hears the same.
    func withoutHelp(_ result: PruneResult, _ options: PruneOptions) throws -> PruneResult {
        var result = result
        let bytes = try lockRoom()
        result.findings.append(
            Finding(
                .skipped, .warning, backend.location,
                "its disk is full, and nothing in the vault can be removed",
                remedy: "free \(bytes) bytes on that disk; then \(options.typed("vault forget --prune")) with the ids "
                    + "of old snapshots makes more room"))
        return result
    }

    /// What a lock and the reserve take, and with them a whole new index.
    func lockRoom() throws -> UInt64 {
        let largest = try backend.list(.index).items.reduce(0) { max($0, $1.size) }
        return Self.blocks(UInt64(clamping: 2 * largest))
    }

    func indexRoom() throws -> UInt64 {
        Self.blocks(try backend.list(.index).items.reduce(0) { $0 + UInt64(clamping: $1.size) })
    }

    /// With what file systems add to a few files, in whole blocks.
    private static func blocks(_ bytes: UInt64) -> UInt64 { (bytes + (132 << 10)) & ~4095 }
}
