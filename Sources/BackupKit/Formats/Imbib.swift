/// imbib's own backup format (`docs/domain.md`).
public struct ImbibManifest: Sendable, Equatable {
    public var createdAt: Timestamp
    public var appVersion: String
    public var schemaVersion: Int
    public var publicationCount: Int
    public var attachmentCount: Int
    public var checksums: [String: String]

    public init(
        createdAt: Timestamp, appVersion: String, schemaVersion: Int, publicationCount: Int, attachmentCount: Int,
        checksums: [String: String]
    ) {
        self.createdAt = createdAt
        self.appVersion = appVersion
        self.schemaVersion = schemaVersion
        self.publicationCount = publicationCount
        self.attachmentCount = attachmentCount
        self.checksums = checksums
    }

    /// Reads both generations: the older counts `pdfCount`, and dates are numbers or ISO 8601.
    public init(parsing bytes: UnsafeRawBufferPointer) throws {
        let json = try JSON(parsing: bytes)
        guard let version = json["version"]?.integer, let list = json["fileChecksums"]?.members else {
            throw BackupError(.damaged, "is no manifest of an imbib backup")
        }
        guard version == 1 else {
            throw BackupError(.refused, "is of imbib backup version \(version), only version 1 is known")
        }
        let date = json["createdAt"]
        let created =
            date?.double.flatMap { Timestamp(appleReference: $0) }
            ?? date?.string.flatMap { Timestamp(iso8601: $0) }
        guard let created else { throw BackupError(.damaged, "'createdAt' is no date") }
        func count(_ name: String) -> Int? { json[name]?.integer.flatMap { Int(exactly: $0) } }
        var checksums: [String: String] = [:]
        for member in list {
            guard let text = member.value.string else {
                throw BackupError(.damaged, "the checksum of '\(printable(member.key))' is no text")
            }
            checksums[member.key] = text
        }
        self.init(
            createdAt: created, appVersion: json["appVersion"]?.string ?? "",
            schemaVersion: count("schemaVersion") ?? SchemaVersion.first,
            publicationCount: count("publicationCount") ?? 0,
            attachmentCount: count("attachmentCount") ?? count("pdfCount") ?? 0, checksums: checksums)
    }

    public func text() -> String {
        let date = createdAt.appleReference
        let number = date == date.rounded() ? String(Int64(date)) : String(date)
        let list = checksums.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        let json: JSON = [
            "version": 1, "createdAt": .number(number), "appVersion": .string(appVersion),
            "schemaVersion": JSON(schemaVersion), "publicationCount": JSON(publicationCount),
            "attachmentCount": JSON(attachmentCount),
            "fileChecksums": .object(list.map { JSON.Member($0.key, .string($0.value)) }),
        ]
        return json.pretty
    }
}

/// imbib's "checksum": byte i of the file XORed into place i mod 32. It notices a flipped bit, but not two blocks that
/// changed places.
public struct XORFold {
    private var words = SIMD32<UInt8>()
    private var position = 0

    public init() {}

    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var index = 0
        while index < bytes.count, position != 0 {
            words[position] ^= bytes[index]
            position = (position + 1) & 31
            index += 1
        }
        while bytes.count - index >= 32 {
            words ^= bytes.loadUnaligned(fromByteOffset: index, as: SIMD32<UInt8>.self)
            index += 32
        }
        while index < bytes.count {
            words[position] ^= bytes[index]
            position = (position + 1) & 31
            index += 1
        }
    }

    public var hex: String {
        var text = ""
        for index in 0..<32 {
            let digits = String(words[index], radix: 16)
            text += digits.utf8.count == 1 ? "0" + digits : digits
        }
        return text
    }
}
