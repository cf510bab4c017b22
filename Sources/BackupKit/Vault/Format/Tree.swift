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
        try readNodes(json) { try body(try TreeNode(reading: &$0, json)) }
    }

    /// Reads a tree blob; `body` reads each node itself, exactly that.
    static func readNodes(_ json: UnsafeRawBufferPointer, _ body: (inout JSONScanner) throws -> Void) throws {
        var scanner = JSONScanner(json)
        var hasNodes = false
        try scanner.readMembers { scanner, key in
            guard json[key].elementsEqual("nodes".utf8) else {
                _ = try scanner.value()
                return
            }
            hasNodes = true
            if try scanner.takeNull() { return }
            try scanner.readElements(body)
        }
        try scanner.expectEnd()
        guard hasNodes else { throw BackupError(.damaged, "is no tree: it has no 'nodes'") }
    }

    /// The bytes of the tree blob; its SHA-256 is the tree's id.
    public func encoded() throws -> [UInt8] { try Self.encode(nodes, name: \.name) { $0.append(to: &$1) } }

    /// The bytes of a tree blob of whatever can be appended as a node, put into the order that readers rely on: byte by
    /// byte. Throws when two have one name.
    static func encode<Entry>(
        _ entries: [Entry], name: (Entry) -> [UInt8], append: (Entry, inout [UInt8]) -> Void
    ) throws -> [UInt8] {
        // Mostly they come sorted, and comparing neighbours is a hundredth of what sorting costs.
        let isSorted = zip(entries, entries.dropFirst()).allSatisfy { precedes(name($0), name($1)) }
        let sorted = isSorted ? entries : entries.sorted { precedes(name($0), name($1)) }
        if !isSorted {
            for (left, right) in zip(sorted, sorted.dropFirst()) where name(left) == name(right) {
                throw BackupError(
                    .refused, "is there twice in one folder", at: String(decoding: name(left), as: UTF8.self))
            }
        }
        var out: [UInt8] = []
        out.reserveCapacity(32 + sorted.count * 420)
        out += "{\"nodes\":[".utf8
        for (number, entry) in sorted.enumerated() {
            if number > 0 { out.append(UInt8(ascii: ",")) }
            append(entry, &out)
        }
        out += "]}\n".utf8
        return out
    }
}
