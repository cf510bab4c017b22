/// Which packs `check` reads in full.
public enum CheckedPacks: Sendable, Equatable {
    case none
    case all
    /// Part `n` of `t`: the packs whose first byte leaves n − 1 when divided by t, as restic divides them.
    case part(Int, of: Int)
    /// So many percent of them, at random.
    case percent(Double)

    /// "3/7" or "2.5%".
    public init?(subset text: String) {
        if text.hasSuffix("%") {
            guard let percent = Double(text.dropLast()), percent > 0, percent <= 100 else { return nil }
            self = .percent(percent)
            return
        }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let part = Int(parts[0]), let parts = Int(parts[1]), 1...256 ~= parts, 1...parts ~= part
        else { return nil }
        self = .part(part, of: parts)
    }

    func select(_ count: Int, _ id: (Int) -> SHA256Digest) -> [Int] {
        switch self {
        case .none: return []
        case .all: return Array(0..<count)
        case .part(let part, let parts):
            return (0..<count).filter { Int(id($0).words[0] >> 56) % parts == part - 1 }
        case .percent(let percent):
            let wanted = count == 0 ? 0 : max(1, Int((Double(count) * percent / 100).rounded()))
            return Array((0..<count).shuffled().prefix(wanted)).sorted()
        }
    }
}

/// A record that damage hits, by all the names that people have for it.
public struct AffectedRecord: Sendable, Hashable, Comparable, CustomStringConvertible {
    public let localID: String
    public let citeKey: String
    public let title: String
    var created: Timestamp?

    init(localID: String, citeKey: String, title: String) {
        (self.localID, self.citeKey) = (localID, citeKey)
        // Enough to know it by.
        self.title = String(title.prefix(80))
    }

    public var description: String {
        let names = [citeKey, localID].filter { !$0.isEmpty }.joined(separator: ", ")
        return title.isEmpty ? names : "'\(title)' (\(names))"
    }

    public static func < (left: AffectedRecord, right: AffectedRecord) -> Bool {
        (left.citeKey, left.localID) < (right.citeKey, right.localID)
    }
}

/// What `check` found, and what it hits.
public struct VaultCheckResult: Sendable {
    /// A file of a snapshot that cannot be restored as it was.
    public struct Affected: Sendable, Equatable {
        public let snapshot: Snapshot
        /// Below the snapshot's root: "/library/attachments/a.pdf". A folder stands for all that is in it.
        public let path: String
        public let reason: String
        /// Whose it was, where somebody knows.
        public var records: [AffectedRecord] = []

        /// Names enough to know where to look; programs get all.
        var message: String {
            guard !records.isEmpty else { return "cannot be restored: \(reason)" }
            return "cannot be restored: \(reason); it affects \(firstNames(records.map(\.description), most: 10))"
        }
    }

    public var findings: [Finding] = []
    public var affected: [Affected] = []
    /// There are more than `affected` lists.
    public var affectedCount = 0
    public var snapshots = 0
    public var trees = 0
    public var packs = 0
    public var blobs = 0
    public var packsRead = 0
    public var bytesRead: Int64 = 0
    /// What kept a pack from being read, where that was not what is in it.
    var unread: BackupError?
    /// Packs that no index names.
    var unindexed: [VaultListing.Item] = []

    public var isSound: Bool { !findings.contains { $0.severity == .damage } }
}

extension Vault {
    /// Checks everything that can be checked without reading file content, and reads the packs that `packs` names.
    ///
    /// Under a shared lock: who backs up meanwhile only adds, so snapshots are listed first, then the index is read, then
    /// the packs are listed, and what is new in between is nowhere missed.
    ///
    /// `name` may say whose the affected files are.
    public func check(
        _ packs: CheckedPacks = .none, progress: Progress = .none,
        naming name: (inout [VaultCheckResult.Affected]) throws -> Void = { _ in }
    ) throws -> VaultCheckResult {
        var result = VaultCheckResult()
        let (snapshots, wrong) = try snapshots()
        result.findings = findings + wrong
        result.snapshots = snapshots.count
        result.findings += try keyFindings() + Self.misplaced(backend.list(.config))
        let loaded = try loadIndex()
        let index = loaded.blobs
        result.findings += loaded.findings
        result.packs = index.packs.count
        result.blobs = index.count
        if snapshots.isEmpty, wrong.isEmpty, index.count > 0 {
            result.findings.append(
                Finding(
                    .suspiciousLoss, .warning, VaultFile.Kind.snapshot.rawValue, "there is none, and packs hold data",
                    remedy: "if there should be some, look whether their disk is there before anything is pruned"))
        }

        var damaged = try checkSizes(index, &result)
        let selected = packs.select(index.packs.count) { index.packs[$0].id }
        if !selected.isEmpty { damaged.formUnion(try readPacks(selected, index, &result, progress)) }
        result.findings += try look(at: result.unindexed, packs).compactMap { $0.finding(index) }

        let roots = snapshots.compactMap(\.file.tree)
        for snapshot in snapshots where snapshot.file.tree == nil {
            result.findings.append(
                Finding(
                    .malformed, .damage, VaultFile(.snapshot, snapshot.id).path, "the snapshot names no tree",
                    remedy: "there is nothing to restore: "
                        + "\(TypedCommand.quoted("vault forget", [snapshot.shortID])) removes it"))
        }
        let walk = TreeWalk(vault: self, index: index)
        let trees = try walk.run(roots, progress: progress)
        result.trees = trees.trees
        result.findings += Self.marked(index, trees.used)
        for defect in trees.defects where !defect.isDamage {
            result.findings.append(
                Finding(
                    .malformed, .warning, "tree \(defect.tree.hex.prefix(10))",
                    "'\(defect.node ?? "")' \(defect.message)"))
        }
        let broken = trees.defects.filter(\.isDamage)
        if !broken.isEmpty || !damaged.isEmpty {
            DamageReport(vault: self, index: index, defects: broken, damaged: damaged).add(to: &result, snapshots)
            try name(&result.affected)
            if !result.unindexed.isEmpty { result.findings.append(Self.lostIndex(result.unindexed.count)) }
        }
        // After a repair there is nothing left to repair. The store may have what no pack has.
        let isRepaired =
            damaged.isEmpty && result.unindexed.isEmpty && loaded.findings.isEmpty && broken.allSatisfy(\.isLoss)
        result.findings += result.affected.map {
            Finding(
                .contentMismatch, .damage, "\($0.snapshot.shortID):\($0.path)", $0.message,
                remedy: isRepaired ? Self.backupRemedy(for: $0.snapshot.shortID) : Self.lossRemedy)
        }
        return result
    }

    /// Packs that rustic wanted to remove, and that snapshots need.
    private static func marked(_ index: BlobIndex, _ used: [Bool]) -> [Finding] {
        let needed = used.indices.lazy.filter { used[$0] }.map { index.pack(of: $0) }
        return Set(needed.filter { index.packs[$0].isToBeDeleted }).sorted().map { number in
            Finding(
                .conflict, .warning, VaultFile(.data, index.packs[number].id).path,
                "is marked as to be removed, and snapshots need it: other programs do not find it",
                remedy: "'backup-tool vault prune' takes the mark away")
        }
    }

    static func lostIndex(_ packs: Int) -> Finding {
        Finding(
            .entryUnexpected, .warning, VaultFile.Kind.data.rawValue,
            "\(packs == 1 ? "1 pack is" : "\(packs) packs are") in no index, and may hold what is missed",
            remedy: indexRemedy)
    }

    /// Key files that nobody can use are no help on the day when they are needed.
    private func keyFindings() throws -> [Finding] {
        var findings = try listKeys().findings
        let listing = try backend.list(.key)
        findings += Self.misplaced(listing)
        for item in listing.items {
            // A file that cannot be read at all is a finding of the list above.
            guard let bytes = try? backend.readAll(VaultFile(.key, item.id), limit: KeyFile.limit) else { continue }
            if !KeyRing.isWritten(bytes, as: item.id) {
                findings.append(
                    Finding(
                        .digestMismatch, .damage, VaultFile(.key, item.id).path, "is not what was written",
                        remedy: "bring it back from a copy of the vault; else \(remedyWithoutCopy(item.id))"))
            }
        }
        return findings.filter { !self.findings.contains($0) }
    }

    /// The key in use opens the vault still; another one has to go, and its password gets a new key.
    private func remedyWithoutCopy(_ key: SHA256Digest) -> String {
        key == keyID
            ? "'backup-tool vault key passwd --new-password-file FILE', with its password, makes a new one"
            : TypedCommand.quoted("vault key remove", [String(key.hex.prefix(8))]) + " removes it, and "
                + "'backup-tool vault key add --new-password-file FILE' makes a new one for its password"
    }

    /// Every pack of the index is there, and as large as its blobs and its header. Returns the numbers of those blobs
    /// that are not.
    func checkSizes(_ index: BlobIndex, _ result: inout VaultCheckResult) throws -> Set<Int> {
        let listing = try backend.list(.data)
        result.findings += Self.misplaced(listing)
        var sizes = listing.sizes
        var damaged: Set<Int> = []
        for pack in index.packs {
            let size = sizes.removeValue(forKey: pack.id)
            if let finding = Self.wrongSize(of: pack, size) {
                result.findings.append(finding)
                // Where it was cut, the blobs before are still whole.
                damaged.formUnion(pack.blobs.filter { index[$0].end > UInt64(clamping: size ?? 0) })
            }
            if size == nil { continue }
            var end: UInt64 = 0
            for number in pack.blobs {
                if UInt64(index[number].offset) != end {
                    let path = VaultFile(.data, pack.id).path
                    result.findings.append(
                        Finding(.contentMismatch, .damage, path, "by the index its blobs overlap or leave gaps"))
                    break
                }
                end = index[number].end
            }
        }
        result.unindexed = index.unnamed(among: listing.items)
        return damaged
    }

    /// Reads packs on all cores; returns the numbers of the blobs that are damaged.
    func readPacks(
        _ selected: [Int], _ index: BlobIndex, _ result: inout VaultCheckResult, _ progress: Progress
    ) throws -> Set<Int> {
        let total = selected.reduce(UInt64(0)) { $0 + index.packs[$1].size }
        let done = Counter()
        let reports = try Parallel.map(selected.count, state: { try PackChecker(self, index) }) { checker, number in
            try Interrupt.check()
            var report = try checker.check(selected[number])
            // Memory and cables fail now and then too; that must be known, and is no damage to the vault.
            if !report.findings.isEmpty || !report.damaged.isEmpty {
                let again = try checker.check(selected[number])
                // What one of two readings finds whole, is.
                report.damaged = report.damaged.filter(Set(again.damaged).contains)
                report.unread = report.unread ?? again.unread
                if again.findings.isEmpty, !report.findings.isEmpty {
                    report = again
                    report.findings = [
                        Finding(
                            .unreadable, .warning, VaultFile(.data, index.packs[selected[number]].id).path,
                            "was read wrongly once and rightly the second time",
                            remedy: "check this machine's memory and disks")
                    ]
                }
            }
            let sum = done.add(index.packs[selected[number]].size)
            progress.report(ProgressEvent("reading packs", done: sum, of: total))
            return report
        }
        var damaged: Set<Int> = []
        for report in reports {
            result.findings += report.findings
            result.bytesRead += report.bytes
            result.unread = result.unread ?? report.unread
            damaged.formUnion(report.damaged)
        }
        result.packsRead = selected.count
        return damaged
    }
}
