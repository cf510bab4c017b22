/// Says which files of which snapshots damage hits: a pack's name tells nobody what is lost.
struct DamageReport {
    private static let mostPaths = 1000

    private let vault: Vault
    private let index: BlobIndex
    private let defects: [SHA256Digest: [TreeWalk.Defect]]
    private let damaged: Set<BlobHandle>

    init(vault: Vault, index: BlobIndex, defects: [TreeWalk.Defect], damaged numbers: Set<Int>) {
        self.vault = vault
        self.index = index
        self.defects = Dictionary(grouping: defects, by: \.tree)
        // A blob of which another copy is sound can be had.
        var damaged: Set<BlobHandle> = []
        for number in numbers {
            var hasAnother = false
            index.forEachCopy(index[number].handle) { copy in
                hasAnother = !numbers.contains(copy)
                return !hasAnother
            }
            if !hasAnother { damaged.insert(index[number].handle) }
        }
        self.damaged = damaged
    }

    /// Returns the snapshots that are hit; of many files only some are listed.
    @discardableResult
    func add(to result: inout VaultCheckResult, _ snapshots: [Snapshot]) -> Set<SHA256Digest> {
        var broken: Set<SHA256Digest> = []
        var found = Found(reader: try? BlobReader(vault))
        for snapshot in snapshots {
            guard let root = snapshot.file.tree else { continue }
            let hits = hits(in: root, &found, depth: 0)
            if hits.count > 0 { broken.insert(snapshot.id) }
            result.affectedCount = Self.sum(result.affectedCount, hits.count)
            for hit in hits.first.prefix(max(0, Self.mostPaths - result.affected.count)) {
                result.affected.append(
                    .init(snapshot: snapshot, path: hit.path.isEmpty ? "/" : hit.path, reason: hit.reason))
            }
        }
        return broken
    }

    private struct Hit {
        let path: String
        let reason: String
    }

    /// Trees that name each other twice come to more paths than there is memory: some are listed, and all are counted.
    private struct Hits {
        var first: [Hit] = []
        var count = 0

        mutating func add(_ hit: Hit) {
            if first.count < DamageReport.mostPaths { first.append(hit) }
            count = DamageReport.sum(count, 1)
        }

        mutating func add(_ inner: Hits, below name: String) {
            for hit in inner.first.prefix(DamageReport.mostPaths - first.count) {
                first.append(Hit(path: name + hit.path, reason: hit.reason))
            }
            count = DamageReport.sum(count, inner.count)
        }
    }

    private static func sum(_ left: Int, _ right: Int) -> Int {
        let (sum, isOver) = left.addingReportingOverflow(right)
        return isOver ? .max : sum
    }

    private struct Found {
        let reader: BlobReader?
        /// Snapshots share most of their trees, and most trees have no damage.
        var byTree: [SHA256Digest: Hits] = [:]
    }

    private func hits(in tree: SHA256Digest, _ found: inout Found, depth: Int) -> Hits {
        if let known = found.byTree[tree] { return known }
        var hits = Hits()
        for defect in defects[tree] ?? [] {
            hits.add(Hit(path: defect.node.map { "/" + $0 } ?? "", reason: defect.message))
        }
        // A name that leads back to itself would need a SHA-256 that contains itself; a thousand levels are enough.
        if depth < 1000, let reader = found.reader,
            let nodes = try? reader.read(BlobHandle(.tree, tree), in: index, Tree.init(parsing:))
        {
            for node in nodes.nodes {
                let name = "/" + String(decoding: node.name, as: UTF8.self)
                if let subtree = node.subtree, node.kind != .file {
                    hits.add(self.hits(in: subtree, &found, depth: depth + 1), below: name)
                }
                let lost = (node.content ?? []).count { damaged.contains(BlobHandle(.data, $0)) }
                if lost > 0 {
                    let all = node.content?.count ?? 0
                    hits.add(
                        Hit(
                            path: name,
                            reason: all == 1 ? "its content is damaged" : "\(lost) of its \(all) pieces are damaged"))
                }
            }
        } else if hits.count == 0 {
            hits.add(Hit(path: "", reason: "the folder's list is damaged"))
        }
        found.byTree[tree] = hits
        return hits
    }
}
