public struct PruneOptions: Sendable {
    /// How much of the data that is kept may go with it though nobody needs it, rather than being copied around: a part
    /// of 1, restic's 5 %.
    public var maxUnused = 0.05
    /// Do nothing unless more than this part of the vault is not needed.
    public var onlyAbove: Double?
    public var dryRun = false
    /// Packs that are needed in part stay as they are: nothing new is written.
    var repacks = true

    public init() {}

    /// A command that prunes as much as these options say.
    func typed(_ command: String) -> String {
        guard maxUnused != PruneOptions().maxUnused else { return TypedCommand.quoted(command) }
        let percent = String((maxUnused * 10_000).rounded() / 100)
        return TypedCommand.quoted(
            command, options: ["max-unused": percent.hasSuffix(".0") ? String(percent.dropLast(2)) : percent])
    }
}

/// What pruning did, or would do.
public struct PruneResult: Sendable, Equatable {
    public var packsUnindexed = 0
    public var packsRemoved = 0
    public var packsRepacked = 0
    /// Bytes of packs before, and by how many fewer they become.
    public var bytesBefore: UInt64 = 0
    public var bytesFreed: UInt64 = 0
    /// What no snapshot needs, before and after.
    public var bytesUnused: UInt64 = 0
    public var bytesUnusedLeft: UInt64 = 0
    /// It was not worth the work, or there was none.
    public var wasNothing = false
    public var findings: [Finding] = []
}

extension Vault {
    /// Removes what no snapshot needs. The vault MUST be locked exclusively.
    ///
    /// Whenever it stops, the next one finishes its work: first packs go that no index names; what is still needed is
    /// copied into new packs with an index of their own; then the other packs get new indexes; then the old indexes go,
    /// and only then the packs that none names any more.
    public func prune(_ options: PruneOptions = PruneOptions(), progress: Progress = .none) throws -> PruneResult {
        let (plan, loaded) = try prunePlan(options, progress)
        if options.dryRun { return plan.result }
        var result = plan.result
        do {
            if plan.result.wasNothing {
                _ = try backend.sweep()
                try backend.setRoomAside()
            } else {
                try execute(plan, loaded, &result, progress)
            }
        } catch let error as BackupError where error.code == .destinationFull {
            if plan.result.wasNothing { return try withoutHelp(result, options) }
            return try pruneWithoutRoom(options, copying: plan.bytesToCopy, progress)
        }
        return result
    }

    /// Prunes under a lock of its own. Where not even that fits, only a vault in which there is nothing to remove is no
    /// error: no room for a lock would change that.
    public func prune(
        waiting wait: Double, _ options: PruneOptions = PruneOptions(), progress: Progress = .none
    ) throws -> PruneResult {
        do {
            return try locked(exclusively: true, wait: wait) { try $0.prune(options, progress: progress) }
        } catch let error as BackupError where error.code == .destinationFull {
            let result = try prunePlan(options, progress).plan.result
            guard result.wasNothing else { throw error }
            return try withoutHelp(result, options)
        }
    }

    func prunePlan(_ options: PruneOptions, _ progress: Progress) throws -> (plan: PrunePlan, loaded: LoadedIndex) {
        let (snapshots, wrong) = try snapshots()
        var loaded = try loadIndex()
        // Who cannot see all that is needed must not remove what seems not to be.
        loaded.findings = wrong + loaded.findings
        try loaded.mustBeWhole("nothing is pruned while ")
        let plan = try PrunePlan(self, snapshots, loaded, options, progress)
        if !plan.result.wasNothing { try refuseLostSnapshots(unindexed: plan.unindexed) }
        return (plan, loaded)
    }

    func execute(
        _ plan: PrunePlan, _ loaded: LoadedIndex, _ result: inout PruneResult, _ progress: Progress
    ) throws {
        try backend.remove(plan.unindexed.map { VaultFile(.data, $0) })
        let writer = try PackWriter(self, known: BlobIndex())
        try repack(plan, loaded.blobs, writer, progress)
        _ = try writer.finish()
        let index = loaded.blobs
        for number in plan.repack {
            for blob in index.packs[number].blobs where plan.keep[blob] && !writer.holds(index[blob].handle) {
                throw BackupError(.failed, "blob \(index[blob].id.hex) was not copied, so nothing is removed")
            }
        }
        if plan.changesIndex {
            try writeIndexes(of: plan.kept, index)
            try backend.remove(loaded.files.map { VaultFile(.index, $0) })
        }
        do {
            try backend.remove((plan.remove + plan.repack).map { VaultFile(.data, index.packs[$0].id) })
            _ = try backend.sweep()
            try backend.setRoomAside()
        } catch let error as BackupError where error.code != .interrupted && error.code != .locked {
            // No index names them any more: the next prune removes them.
            result.findings.append(
                Finding(.skipped, .warning, error.subject ?? backend.location, "could not be removed: \(error.message)")
            )
        }
    }

    /// Copies what is needed of some packs as it is, sealed, after opening it to see that it is whole.
    private func repack(_ plan: PrunePlan, _ index: BlobIndex, _ writer: PackWriter, _ progress: Progress) throws {
        let done = Counter()
        let total = plan.repack.reduce(UInt64(0)) { $0 + index.packs[$1].size }
        try Parallel.forEach(plan.repack.count, state: { try Repacker(self, writer) }) { repacker, number in
            let pack = index.packs[plan.repack[number]]
            for blob in pack.blobs where plan.keep[blob] {
                try Interrupt.check()
                try repacker.lane.copy(sealed: repacker.reader.verified(index[blob], in: pack.id), of: index[blob])
            }
            progress.report(ProgressEvent("repacking", done: done.add(pack.size), of: total))
        }
    }

    private final class Repacker {
        let reader: BlobReader
        let lane: PackWriter.Lane

        init(_ vault: Vault, _ writer: PackWriter) throws {
            reader = try BlobReader(vault)
            lane = try PackWriter.Lane(writer)
        }
    }

    private func writeIndexes(of packs: [Int], _ index: BlobIndex) throws {
        var batch = PackIndex()
        var count = 0
        for number in packs {
            let pack = index.packs[number]
            batch.packs.append(PackIndex.Pack(id: pack.id, blobs: pack.blobs.map { index[$0] }))
            count += pack.blobs.count
            if count >= PackIndex.usualBlobs {
                try storeUnpacked(.index, batch.encoded())
                (batch, count) = (PackIndex(), 0)
            }
        }
        if count > 0 { try storeUnpacked(.index, batch.encoded()) }
    }
}

extension PackIndex {
    /// An index file is closed at so many blobs, as restic's.
    static let usualBlobs = 50_000
}

/// What is to become of every pack. Nothing is done yet.
struct PrunePlan {
    private(set) var unindexed: [SHA256Digest] = []
    /// How many bytes the copies and a whole new index take at most.
    private(set) var bytesToCopy: UInt64 = 0
    /// Numbers of packs: those nobody needs, those of which a part is copied, those that stay.
    private(set) var remove: [Int] = []
    var repack: [Int] = []
    var kept: [Int] = []
    /// For every blob of the index whether this copy of it is needed.
    var keep: [Bool] = []
    var changesIndex = false
    private(set) var result = PruneResult()

    init(
        _ vault: Vault, _ snapshots: [Snapshot], _ loaded: Vault.LoadedIndex, _ options: PruneOptions,
        _ progress: Progress
    ) throws {
        let index = loaded.blobs
        if let empty = snapshots.first(where: { $0.file.tree == nil }) {
            throw BackupError(
                .damaged, "nothing is pruned while the snapshot names no tree",
                at: VaultFile(.snapshot, empty.id).path,
                remedy: "remove it first: \(TypedCommand.quoted("vault forget", [empty.shortID]))")
        }
        let walk = TreeWalk(vault: vault, index: index, isStrict: false)
        let needed = try walk.run(snapshots.compactMap(\.file.tree), progress: progress)
        if let defect = needed.defects.first {
            throw BackupError(
                .damaged, "nothing is pruned while \(defect.sentence)",
                at: "tree \(defect.tree.hex.prefix(10))",
                remedy: Vault.lossRemedy)
        }
        let sizes = try vault.backend.list(.data).sizes
        for (id, size) in sizes where index.packNumber(id) == nil {
            unindexed.append(id)
            result.bytesBefore += UInt64(size)
            result.bytesFreed += UInt64(size)
        }
        unindexed.sort()
        result.packsUnindexed = unindexed.count
        try choose(needed.used, index, sizes, try BlobReader(vault))
        sort(index, sizes, options)
        for number in repack {
            let kept = index.packs[number].blobs.filter { keep[$0] }.map { index[$0] }
            bytesToCopy += PackHeader.packSize(kept)
        }
        if !repack.isEmpty { bytesToCopy += try vault.indexRoom() }
        let isBelow = options.onlyAbove.map { Double(result.bytesUnused) <= $0 * Double(result.bytesBefore) } ?? false
        let fewest = (index.count + PackIndex.usualBlobs - 1) / PackIndex.usualBlobs
        let isMarked = kept.contains { index.packs[$0].isToBeDeleted }
        changesIndex = !remove.isEmpty || !repack.isEmpty || isMarked || loaded.files.count > fewest + 8
        result.wasNothing = isBelow && !isMarked || unindexed.isEmpty && !changesIndex
    }

    /// Of blobs that are there several times, the copy stays whose pack is needed most; so the old pack of an
    /// interrupted prune goes, and the new one stays. Not one that is damaged, though: the other may be the last that is whole.
    private mutating func choose(
        _ used: [Bool], _ index: BlobIndex, _ sizes: [SHA256Digest: Int64], _ reader: BlobReader
    ) throws {
        keep = [Bool](repeating: false, count: index.count)
        var needed = [UInt64](repeating: 0, count: index.packs.count)
        for number in used.indices where used[number] {
            index.forEachCopy(index[number].handle) { copy in
                needed[index.pack(of: copy)] += UInt64(index[copy].length)
                return true
            }
        }
        for number in used.indices where used[number] {
            var copies: [(number: Int, share: Double)] = []
            index.forEachCopy(index[number].handle) { copy in
                let pack = index.packs[index.pack(of: copy)]
                guard let size = sizes[pack.id], UInt64(size) == pack.size else { return true }
                let share = Double(needed[index.pack(of: copy)]) / Double(pack.size) - (pack.isToBeDeleted ? 2 : 0)
                copies.append((copy, share))
                return true
            }
            if copies.count > 1 {
                copies.sort { $0.share > $1.share }
                copies = try copies.first { try reader.isWhole($0.number, in: index) }.map { [$0] } ?? []
            }
            guard let best = copies.first else {
                throw BackupError(
                    .damaged, "nothing is pruned while a pack that is needed is missing or damaged",
                    at: VaultFile(.data, index.packs[index.pack(of: number)].id).path,
                    remedy: Vault.lossRemedy)
            }
            keep[best.number] = true
        }
    }

    private mutating func sort(_ index: BlobIndex, _ sizes: [SHA256Digest: Int64], _ options: PruneOptions) {
        var candidates: [(pack: Int, unused: UInt64, isMixed: Bool)] = []
        var total: UInt64 = 0
        var left: UInt64 = 0
        for (number, pack) in index.packs.enumerated() {
            let size = sizes[pack.id].map { UInt64($0) }
            result.bytesBefore += size ?? 0
            var used: UInt64 = 0
            var types: Set<BlobType> = []
            for blob in pack.blobs {
                types.insert(index[blob].type)
                if keep[blob] { used += UInt64(index[blob].length) }
            }
            total += used
            let unused = pack.blobs.reduce(UInt64(0)) { $0 + (keep[$1] ? 0 : UInt64(index[$1].length)) }
            result.bytesUnused += unused
            if used == 0 {
                remove.append(number)
                result.bytesFreed += size ?? 0
            } else if unused > 0 || types.count > 1 {
                candidates.append((number, unused, types.count > 1))
                left += unused
            } else {
                kept.append(number)
            }
        }
        // What frees most for the least copying comes first. Version 2 has no packs of both kinds, so those go anyway.
        candidates.sort { a, b in
            if a.isMixed != b.isMixed { return a.isMixed }
            return Double(a.unused) / Double(index.packs[a.pack].size) > Double(b.unused)
                / Double(index.packs[b.pack].size)
        }
        let allowed = UInt64(max(0, options.maxUnused) * Double(total))
        for candidate in candidates {
            if options.repacks, candidate.isMixed || left > allowed {
                repack.append(candidate.pack)
                left -= candidate.unused
                result.bytesFreed += candidate.unused
            } else {
                kept.append(candidate.pack)
            }
        }
        kept.sort()
        result.bytesUnusedLeft = left
        result.packsRemoved = remove.count
        result.packsRepacked = repack.count
    }
}
