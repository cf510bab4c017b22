/// One folder of a snapshot: its nodes by the bytes of their names.
public struct Tree: Sendable, Equatable {
    public var nodes: [TreeNode] = []

    public init(nodes: [TreeNode] = []) { self.nodes = nodes }

    /// Reads a tree blob. Order and doubles are not judged here: others have written such trees.
    public init(parsing json: UnsafeRawBufferPointer) throws {
        try Self.forEachNode(json) { nodes.append($0) }
    }

    /// Reads a tree blob node by node.
    public static func forEachNode(_ json: UnsafeRawBufferPointer, _ body: (TreeNode) throws -> Void) throws {
        var scanner = JSONScanner(json)
        var hasNodes = false
        try scanner.readMembers { scanner, key in
            guard json[key].elementsEqual("nodes".utf8) else {
                _ = try scanner.value()
                return
            }
            hasNodes = true
            if try scanner.takeNull() { return }
            try scanner.readElements { try body(try TreeNode(reading: &$0, json)) }
        }
        try scanner.expectEnd()
        guard hasNodes else { throw BackupError(.damaged, "is no tree: it has no 'nodes'") }
    }

    /// The bytes of the tree blob; its SHA-256 is the tree's id. Nodes are put into the order that readers rely on.
    /// Throws when two have one name.
    public func encoded() throws -> [UInt8] {
        // Mostly they come sorted, and comparing neighbours is a hundredth of what sorting costs.
        let isSorted = zip(nodes, nodes.dropFirst()).allSatisfy { Self.precedes($0.name, $1.name) }
        let sorted = isSorted ? nodes : nodes.sorted { Self.precedes($0.name, $1.name) }
        if !isSorted {
            for (left, right) in zip(sorted, sorted.dropFirst()) where left.name == right.name {
                throw BackupError(
                    .refused, "is there twice in one folder", at: String(decoding: left.name, as: UTF8.self))
            }
        }
        var out: [UInt8] = []
        out.reserveCapacity(32 + sorted.count * 420)
        out += "{\"nodes\":[".utf8
        for (number, node) in sorted.enumerated() {
            if number > 0 { out.append(UInt8(ascii: ",")) }
            node.append(to: &out)
        }
        out += "]}\n".utf8
        return out
    }

    /// The order of names: byte by byte.
    static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool { left.lexicographicallyPrecedes(right) }
}
