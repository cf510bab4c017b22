/// What is written about one file of a layout.
public struct FileFacts: Sendable, Equatable {
    public let size: Int64
    public let digest: SHA256Digest
    /// An attachment that stays out of the cloud.
    public var isLocalOnly = false

    public init(size: Int64, digest: SHA256Digest, isLocalOnly: Bool = false) {
        self.size = size
        self.digest = digest
        self.isLocalOnly = isLocalOnly
    }
}

/// Something that should have been in an export and is not, with the reason.
public struct Omission: Sendable, Equatable {
    public let path: String
    public let reason: String

    public init(path: String, reason: String) {
        self.path = path
        self.reason = reason
    }
}

/// `manifest.json` (`docs/formats.md`).
public struct Manifest: Sendable, Equatable {
    public static let fileName = "manifest.json"
    public static let format = "backup-tool-library"
    public static let version: Int64 = 1
    /// What counts deleted records; all other counts are called after their kinds.
    static let tombstones = "tombstones"

    public var exportID: String
    public var createdAt: Timestamp
    public var tool: String
    public var storeID: String
    public var schemaVersion: Int
    public var kinds: Set<Kind>
    public var counts: [String: Int]
    public var contentDigest: SHA256Digest
    public var omitted: [Omission]
    public var files: [String: FileFacts]
    /// The files that records link and the store knows, and that are not in the backup. Whoever restores it takes no other
    /// file of such a name for one of them.
    public var elsewhere: [String: FileFacts]

    public init(
        exportID: String, createdAt: Timestamp, tool: String, storeID: String, schemaVersion: Int, kinds: Set<Kind>,
        counts: [String: Int], contentDigest: SHA256Digest, omitted: [Omission], files: [String: FileFacts],
        elsewhere: [String: FileFacts]
    ) {
        self.exportID = exportID
        self.createdAt = createdAt
        self.tool = tool
        self.storeID = storeID
        self.schemaVersion = schemaVersion
        self.kinds = kinds
        self.counts = counts
        self.contentDigest = contentDigest
        self.omitted = omitted
        self.files = files
        self.elsewhere = elsewhere
    }

    /// The file's text: the facts first, then one line a file, sorted.
    public func text() -> [UInt8] { text(listing: Self.listing(files.sorted { precedesBytewise($0.key, $1.key) })) }

    /// The lines of the files.
    static func listing(_ sorted: [(key: String, value: FileFacts)]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(sorted.reduce(0) { $0 + $1.key.utf8.count + 120 })
        for (path, facts) in sorted {
            out += (out.isEmpty ? "\n    " : ",\n    ").utf8
            appendJSONString(path, to: &out)
            out += ": {\"size\":".utf8
            appendDecimal(UInt64(max(0, facts.size)), to: &out)
            out += ",\"sha256\":\"".utf8
            facts.digest.appendHex(to: &out)
            out += (facts.isLocalOnly ? "\",\"localOnly\":true}" : "\"}").utf8
        }
        return out
    }

    /// The same for whoever has the lines already.
    func text(listing: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(listing.count + 2000)
        func line(_ name: String, _ value: JSON) {
            out += "  ".utf8
            appendJSONString(name, to: &out)
            out += ": \(value.compact),\n".utf8
        }
        out += "{\n".utf8
        line("format", .string(Self.format))
        line("formatVersion", JSON(Self.version))
        line("exportId", .string(exportID))
        line("createdAt", .string(createdAt.iso8601))
        line("tool", .string(tool))
        line("storeId", .string(storeID))
        line("schemaVersion", JSON(schemaVersion))
        line("kinds", .array(Kind.allCases.filter(kinds.contains).map { .string($0.rawValue) }))
        line("counts", .object(counts.sorted { $0.key < $1.key }.map { JSON.Member($0.key, JSON($0.value)) }))
        line("limits", ["assetBytes": JSON(CloudLimits.assetBytes), "recordBytes": JSON(CloudLimits.recordBytes)])
        line("contentDigest", .string(contentDigest.hex))
        line(
            "omitted",
            .array(omitted.map { ["path": .string($0.path), "reason": .string($0.reason)] }))
        if !elsewhere.isEmpty {
            out += "  \"elsewhere\": {".utf8
            out += Self.listing(elsewhere.sorted { precedesBytewise($0.key, $1.key) })
            out += "\n  },\n".utf8
        }
        out += "  \"files\": {".utf8
        out += listing
        out += "\n  }\n}\n".utf8
        return out
    }

    /// Reads a manifest of ours; throws `.damaged` with the reason when it is none, `.refused` when it is newer.
    public init(parsing bytes: UnsafeRawBufferPointer) throws {
        var head: [JSON.Member] = []
        var files: [String: FileFacts] = [:]
        var elsewhere: [String: FileFacts] = [:]
        var scanner = JSONScanner(bytes)
        try scanner.forEachMember { key, kind, range in
            let name = jsonUnescape(bytes, key)
            let value = UnsafeRawBufferPointer(rebasing: bytes[range])
            // The list of files can be long: it is read without building a document of it.
            if name == "files", kind == .object {
                files = try Self.files(value)
            } else if name == "elsewhere", kind == .object {
                elsewhere = try Self.files(value)
            } else {
                head.append(JSON.Member(name, try JSON(parsing: value)))
            }
        }
        try scanner.expectEnd()
        let facts = JSON.object(head)
        guard facts["format"]?.string == Self.format else {
            throw BackupError(.damaged, "is no manifest of backup-tool")
        }
        guard let version = facts["formatVersion"]?.integer, version >= 1 else {
            throw BackupError(.damaged, "has no 'formatVersion'")
        }
        guard version == Self.version else {
            throw BackupError(
                .refused, "is of format version \(version), this backup-tool reads \(Self.version)",
                remedy: "use a newer backup-tool")
        }
        func text(_ name: String) throws -> String {
            guard let text = facts[name]?.string else { throw BackupError(.damaged, "has no '\(name)'") }
            return text
        }
        guard let createdAt = Timestamp(iso8601: try text("createdAt")) else {
            throw BackupError(.damaged, "'createdAt' is no time")
        }
        guard let digest = SHA256Digest(hex: try text("contentDigest")) else {
            throw BackupError(.damaged, "'contentDigest' is no SHA-256")
        }
        guard let schemaVersion = facts["schemaVersion"]?.integer.flatMap({ Int(exactly: $0) }) else {
            throw BackupError(.damaged, "has no 'schemaVersion'")
        }
        self.init(
            exportID: try text("exportId"), createdAt: createdAt, tool: try text("tool"),
            storeID: try text("storeId"), schemaVersion: schemaVersion,
            kinds: try Self.kinds(facts["kinds"]),
            counts: try Self.counts(facts["counts"]),
            contentDigest: digest,
            omitted: try Self.omitted(facts["omitted"]), files: files, elsewhere: elsewhere)
    }

    private static func kinds(_ value: JSON?) throws -> Set<Kind> {
        guard let names = value?.array else { throw BackupError(.damaged, "has no 'kinds'") }
        return try Set(
            names.map { name in
                guard let kind = name.string.flatMap(Kind.init(rawValue:)) else {
                    throw BackupError(.damaged, "'kinds' has an unknown kind: \(printable(name.compact))")
                }
                return kind
            })
    }

    private static func omitted(_ value: JSON?) throws -> [Omission] {
        guard let entries = value?.array else { throw BackupError(.damaged, "has no 'omitted'") }
        return try entries.map { entry in
            guard let path = entry["path"]?.string, let reason = entry["reason"]?.string else {
                throw BackupError(.damaged, "an entry of 'omitted' has no 'path' or no 'reason'")
            }
            return Omission(path: path, reason: reason)
        }
    }

    /// How much there should be of everything but settings, which not every export has.
    private static func counts(_ value: JSON?) throws -> [String: Int] {
        guard let members = value?.members else { throw BackupError(.damaged, "has no 'counts'") }
        let needed = Set(Kind.allCases.map(\.rawValue) + [tombstones]).subtracting([Kind.settings.rawValue])
        var counts: [String: Int] = [:]
        for member in members {
            guard needed.contains(member.key) || member.key == Kind.settings.rawValue else {
                throw BackupError(.damaged, "'counts' counts something unknown: '\(printable(member.key))'")
            }
            guard let count = member.value.integer.flatMap({ Int(exactly: $0) }), count >= 0 else {
                throw BackupError(.damaged, "'counts' has no usable number of \(member.key)")
            }
            guard counts.updateValue(count, forKey: member.key) == nil else {
                throw BackupError(.damaged, "'counts' counts \(member.key) twice")
            }
        }
        if let name = needed.subtracting(counts.keys).min() {
            throw BackupError(.damaged, "'counts' does not count \(name)")
        }
        return counts
    }

    private static func files(_ object: UnsafeRawBufferPointer) throws -> [String: FileFacts] {
        var files: [String: FileFacts] = [:]
        var scanner = JSONScanner(object)
        try scanner.forEachMember { key, _, range in
            let path = jsonUnescape(object, key)
            let facts = try JSON(parsing: UnsafeRawBufferPointer(rebasing: object[range]))
            guard let size = facts["size"]?.integer, size >= 0,
                let digest = facts["sha256"]?.string.flatMap({ SHA256Digest(hex: $0) })
            else { throw BackupError(.damaged, "says nothing usable about '\(printable(path))'") }
            let entry = FileFacts(size: size, digest: digest, isLocalOnly: facts["localOnly"]?.bool ?? false)
            guard files.updateValue(entry, forKey: path) == nil else {
                throw BackupError(.damaged, "lists '\(printable(path))' twice")
            }
        }
        return files
    }
}
