import TestSupport
import Testing

@testable import BackupKit

/// What the last snapshot knows is found again by path.
@Suite struct ParentTreeTests {
    private func file(_ size: UInt64) -> TreeNode {
        var node = TreeNode(name: [], kind: .file)
        (node.size, node.content, node.modified) = (size, [.of("\(size)")], GoTime(seconds: Int64(size)))
        return node
    }

    private let paths = [
        "a b", "a/b", "a/b\"c", "a/é", "a/<&>", "a-b", "a-/x", "a/z/\u{2028}", "b\\", "B", "folder/0", "folder/00",
        "folder/1",
    ]

    @Test func everyFileIsFoundByItsPath_andGoesIntoTheNextTreeAsItWas() throws {
        try withNewVault { _, vault, writer in
            var builder = TreeBuilder(below: "library")
            for (number, path) in paths.enumerated() {
                builder.add("library/\(path)", .init(file(UInt64(number)), path: path))
            }
            let root = try builder.store(writer)
            _ = try writer.finish()
            let index = try vault.loadIndex().blobs
            let id = try #require(ParentTree(root, index, vault).id(ofFolder: "library"))
            let tree = try ParentTree(id, index, vault)
            #expect(tree.fileCount == paths.count && tree.folderCount == 5)
            #expect(tree.bytes == Int64((0..<paths.count).reduce(0, +)))
            #expect(tree.id(ofFolder: "") == id && tree.id(ofFolder: "a/z") != nil && tree.id(ofFolder: "a/y") == nil)
            var again = TreeBuilder(parent: tree, below: "library")
            for (number, path) in paths.enumerated() {
                let place = try #require(tree.find(path), "\(path)")
                let node = try #require(tree.node(place))
                #expect(node.size == UInt64(number) && node.modified == GoTime(seconds: Int64(number)))
                again.add("library/\(path)", place, modified: node.modified)
            }
            for path in ["", "a", "a/", "a/b/c", "c", "folder", "folder/", "folder/000", "z", "/a"] {
                #expect(tree.find(path) == nil, "\(path)")
            }
            #expect(try again.store(PackWriter(vault, known: index)) == root)
            #expect(again.folderCounts == TreeBuilder.Counts(new: 0, changed: 0, unmodified: 5))
        }
    }

    /// Others may write trees in any order, with names twice, and with folders that fan out without end.
    @Test func treesOfOthersAreReadAsFarAsTheyGo() throws {
        try withNewVault { _, vault, writer in
            let lane = try PackWriter.Lane(writer)
            func tree(_ json: String) throws -> SHA256Digest {
                try Array(json.utf8).withUnsafeBytes { try lane.store($0, as: .tree).id }
            }
            var id = try tree("{\"nodes\":[]}")
            for _ in 0..<60 {
                let nodes = ["x", "y"].map { "{\"name\":\"\($0)\",\"type\":\"dir\",\"subtree\":\"\(id.hex)\"}" }
                id = try tree("{\"nodes\":[\(nodes.joined(separator: ","))]}")
            }
            let root = try tree(
                """
                {"nodes": [{"name":"b","type":"file","size":2}, {"size":1,"type":"file","name":"a"},
                 {"name":"fan","type":"dir","subtree":"\(id.hex)"}, {"name":"..","type":"dir","subtree":"\(id.hex)"},
                 {"name":"lost","type":"dir","subtree":"\(SHA256Digest.of("lost").hex)"}, {"name":"p","type":"fifo"}]}
                """)
            _ = try writer.finish()
            let found = try ParentTree(root, vault.loadIndex().blobs, vault)
            #expect(found.node("a")?.size == 1 && found.node("b")?.size == 2 && found.fileCount == 2)
            #expect(found.find("p") == nil && found.id(ofFolder: "lost") == nil && found.id(ofFolder: "fan/x/y") != nil)
            #expect(found.folderCount <= 1 << 18)
        }
    }
}
