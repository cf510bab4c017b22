/// A snapshot file: one moment of some folders, with who made it and when.
public struct SnapshotFile: Sendable, Equatable {
    public var time: GoTime
    public var parent: SHA256Digest?
    /// nil in snapshots that somebody broke; there is nothing to restore then.
    public var tree: SHA256Digest?
    public var paths: [String]
    public var hostname = ""
    public var username = ""
    public var uid: UInt32 = 0
    public var gid: UInt32 = 0
    public var excludes: [String] = []
    public var tags: [String] = []
    /// The snapshot that this one replaced, when only its tags were changed.
    public var original: SHA256Digest?
    public var programVersion = ""
    public var summary: JSON?
    /// What newer programs write.
    public var others: [JSON.Member] = []

    public init(time: GoTime, tree: SHA256Digest?, paths: [String]) {
        self.time = time
        self.tree = tree
        self.paths = paths
    }

    private static let keys: Set<String> = [
        "time", "parent", "tree", "paths", "hostname", "username", "uid", "gid", "excludes", "tags", "original",
        "program_version", "summary",
    ]

    public init(parsing json: UnsafeRawBufferPointer) throws {
        let document = try JSON(parsing: json)
        guard let members = document.members, members.contains(where: { $0.key == "tree" }) else {
            // Any sealed file opens under any name: one without a tree is no snapshot.
            throw BackupError(.damaged, "is no snapshot: it has no 'tree'")
        }
        guard let time = document["time"]?.string.flatMap(GoTime.init) else {
            throw BackupError(.damaged, "has no readable 'time'")
        }
        func text(_ key: String) -> String { document[key]?.string ?? "" }
        func texts(_ key: String) -> [String] { (document[key]?.array ?? []).compactMap(\.string) }
        func number(_ key: String) -> UInt32 { document[key]?.integer.flatMap { UInt32(exactly: $0) } ?? 0 }
        func id(_ key: String) throws -> SHA256Digest? {
            guard let value = document[key], value != .null else { return nil }
            guard let digest = value.string.flatMap({ SHA256Digest(hex: $0) }) else {
                throw BackupError(.damaged, "has an unreadable '\(key)'")
            }
            return digest
        }
        self.init(time: time, tree: try id("tree"), paths: texts("paths"))
        parent = try id("parent")
        original = try id("original")
        hostname = text("hostname")
        username = text("username")
        uid = number("uid")
        gid = number("gid")
        excludes = texts("excludes")
        tags = texts("tags")
        programVersion = text("program_version")
        summary = document["summary"]
        others = members.filter { !Self.keys.contains($0.key) }
    }

    /// What it holds, as far as whoever made it said so.
    public var fileCount: Int? { count("total_files_processed") }
    public var byteCount: Int? { count("total_bytes_processed") }

    private func count(_ name: String) -> Int? { summary?[name]?.integer.map { Int(clamping: $0) } }

    /// The snapshot as JSON, in the order that restic writes; what is empty is left out as restic does.
    public var json: JSON {
        func list(_ items: [String]) -> JSON { .array(items.map { .string($0) }) }
        var members = [JSON.Member("time", .string(time.text))]
        if let parent { members.append(JSON.Member("parent", .string(parent.hex))) }
        members.append(JSON.Member("tree", tree.map { .string($0.hex) } ?? .null))
        members.append(JSON.Member("paths", list(paths)))
        if !hostname.isEmpty { members.append(JSON.Member("hostname", .string(hostname))) }
        if !username.isEmpty { members.append(JSON.Member("username", .string(username))) }
        if uid != 0 { members.append(JSON.Member("uid", JSON(uid))) }
        if gid != 0 { members.append(JSON.Member("gid", JSON(gid))) }
        if !excludes.isEmpty { members.append(JSON.Member("excludes", list(excludes))) }
        if !tags.isEmpty { members.append(JSON.Member("tags", list(tags))) }
        if let original { members.append(JSON.Member("original", .string(original.hex))) }
        if !programVersion.isEmpty { members.append(JSON.Member("program_version", .string(programVersion))) }
        if let summary { members.append(JSON.Member("summary", summary)) }
        return .object(members + others)
    }

    /// The bytes of the file, before they are packed and sealed.
    public func encoded() -> [UInt8] {
        var out: [UInt8] = []
        GoText.append(json, to: &out)
        return out
    }
}
