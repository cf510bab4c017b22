import Synchronization

/// Walks all trees that some snapshots reach, each once, on all cores, and marks the blobs that they need.
struct TreeWalk {
    /// What is wrong with one tree, or with what it refers to.
    struct Defect: Sendable, Hashable {
        let tree: SHA256Digest
        /// The node within the tree; nil for the tree itself.
        let node: String?
        let message: String
        /// Bytes are missing or wrong, as against an order or a name that should not be.
        let isDamage: Bool
        /// No pack has it, and so no repair brings it back.
        var isLoss = false

        var sentence: String { node.map { "'\($0)' \(message)" } ?? message }
    }

    struct Result: Sendable {
        /// One flag for each blob of the index, of whichever copy was found.
        var used: [Bool] = []
        var defects: [Defect] = []
        var trees = 0
        var files = 0
        /// Blobs that are needed and in no pack.
        var missing: Set<BlobHandle> = []
    }

    let vault: Vault
    let index: BlobIndex
    /// Asks of every node what a sound one has; without, only which blobs are needed.
    var isStrict = true

    /// The trees of a level are read at the same time, and tell those of the next.
    func run(_ roots: [SHA256Digest], progress: Progress = .none) throws -> Result {
        var result = Result(used: [Bool](repeating: false, count: index.count))
        var seen: Set<SHA256Digest> = []
        var level = roots.filter { seen.insert($0).inserted }
        while !level.isEmpty {
            let trees = level
            // Several trees at a time: handing out and gathering one by one would cost more than a small tree does.
            let step = max(1, min(64, trees.count / (Parallel.cores * 4)))
            let parts = stride(from: 0, to: trees.count, by: step).map { $0..<min($0 + step, trees.count) }
            let found = try Parallel.map(parts.count, state: { try BlobReader(vault) }) { reader, number in
                try Interrupt.check()
                var part = Part()
                for tree in trees[parts[number]] { try visit(tree, reader, &part) }
                return part
            }
            var next: [SHA256Digest] = []
            for part in found {
                for number in part.used { result.used[number] = true }
                result.defects += part.defects
                result.missing.formUnion(part.missing)
                result.files += part.files
                next += part.subtrees.filter { seen.insert($0).inserted }
            }
            result.trees += trees.count
            progress.report(ProgressEvent("trees", done: UInt64(result.trees), unit: .items))
            level = next
        }
        return result
    }

    private struct Part: Sendable {
        var used: [Int] = []
        var subtrees: [SHA256Digest] = []
        var defects: [Defect] = []
        var missing: Set<BlobHandle> = []
        var files = 0
    }

    private func visit(_ id: SHA256Digest, _ reader: BlobReader, _ part: inout Part) throws {
        let handle = BlobHandle(.tree, id)
        guard let number = index.find(handle) else {
            part.missing.insert(handle)
            part.defects.append(
                Defect(tree: id, node: nil, message: "the folder's list is in no pack", isDamage: true, isLoss: true))
            return
        }
        part.used.append(number)
        do {
            try reader.read(handle, in: index) { json in
                var last: [UInt8]?
                try Tree.forEachNode(json) { node in
                    check(node, of: id, after: last, &part)
                    last = node.name
                }
            }
        } catch let error as BackupError where error.isOfBytes {
            part.defects.append(
                Defect(
                    tree: id, node: nil, message: "the folder's list cannot be read: \(error.message)", isDamage: true))
        }
    }

    private func check(_ node: TreeNode, of tree: SHA256Digest, after last: [UInt8]?, _ part: inout Part) {
        func defect(_ message: String, isDamage: Bool = true, isLoss: Bool = false) {
            let name = String(decoding: node.name, as: UTF8.self)
            part.defects.append(
                Defect(tree: tree, node: name, message: message, isDamage: isDamage, isLoss: isLoss))
        }
        if isStrict {
            if !node.hasSafeName { defect("a name that leads elsewhere") }
            if let last, !last.lexicographicallyPrecedes(node.name) {
                defect(last == node.name ? "is there twice" : "is out of order", isDamage: false)
            }
            if case .other(let word) = node.kind { defect("has the unknown type '\(word)'") }
        }
        switch node.kind {
        case .folder:
            guard let subtree = node.subtree else { return defect("is a folder without a list") }
            part.subtrees.append(subtree)
        case .file:
            part.files += 1
            guard let content = node.content else { return defect("is a file without a list of blobs") }
            var length: UInt64 = 0
            for id in content {
                let handle = BlobHandle(.data, id)
                guard let number = index.find(handle) else {
                    part.missing.insert(handle)
                    defect("needs the blob \(id.hex.prefix(10)), which is in no pack", isLoss: true)
                    continue
                }
                part.used.append(number)
                length += UInt64(index[number].contentLength)
            }
            if isStrict, length != node.size, !content.contains(where: { part.missing.contains(BlobHandle(.data, $0)) })
            {
                defect("has \(node.size) bytes, and its blobs \(length)", isDamage: false)
            }
        case .symlink, .device, .characterDevice, .fifo, .socket, .other:
            // What newer programs mean by it nobody here knows, but that they need it.
            part.used += (node.content ?? []).compactMap { index.find(BlobHandle(.data, $0)) }
            if let subtree = node.subtree { part.subtrees.append(subtree) }
        }
    }
}
