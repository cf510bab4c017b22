/// Records that a restore has put aside: each one, whole, in an envelope that is a record of a type of its own. So nothing
/// takes it for the record that it is a version of: no merge, no search by local id or cite key, no view of a library.
/// It is local-only, and so never leaves the device; backups keep it.
public enum Quarantine {
    public static let type = "Quarantined"
    public static let zone = "Quarantine"
    private static let (member, filesMember) = ("record", "files")

    /// Named after the record and what it says, so that the same version is put aside once. `files` are the digests of the
    /// files that it links, by their paths in the backup.
    static func envelope(of record: Record, files: [ByteName: SHA256Digest] = [:]) throws -> Record {
        let text = record.jsonText
        let mark = text.withUnsafeBytes { SHA256Digest.of($0) }.hex.prefix(16)
        let name = "\(record.id.name)@\(mark)"
        return Record(
            id: RecordID(zone: zone, name: name), type: type, localID: name,
            fields: Fields.text([Field(member, String(decoding: text, as: UTF8.self))] + filesField(files)),
            createdAt: record.createdAt,
            modifiedAt: record.modifiedAt, schemaVersion: record.schemaVersion, isLocalOnly: true)
    }

    private static func filesField(_ files: [ByteName: SHA256Digest]) -> [Field] {
        let sorted = files.sorted { precedesBytewise($0.key.text, $1.key.text) }
        let members = sorted.map { JSON.Member($0.key.text, .string($0.value.hex)) }
        return members.isEmpty ? [] : [Field(filesMember, .object(members))]
    }

    /// The digests of the files that the record in an envelope links; nil where a version of this tool made it that noted none.
    static func files(of envelope: Record) throws -> [ByteName: SHA256Digest]? {
        guard let text = try Fields.parse(envelope.fields).first(where: { $0.name == filesMember })?.value else {
            return nil
        }
        var files: [ByteName: SHA256Digest] = [:]
        for member in try JSON(parsing: text).members ?? [] {
            files[ByteName(member.key)] = member.value.string.flatMap { SHA256Digest(hex: $0) }
        }
        return files
    }

    /// What is in an envelope; nil when the record is none.
    public static func content(of envelope: Record) throws -> Record? {
        guard envelope.type == type, !envelope.isDeleted else { return nil }
        guard let inside = try content(ofEnvelope: envelope.fields) else {
            throw BackupError(.damaged, "is an envelope without a record", at: envelope.id.description)
        }
        return inside
    }

    /// The same of an envelope's fields; nil where these hold no record.
    static func content(ofEnvelope fields: String) throws -> Record? {
        guard var text = try Fields.parse(fields).first(where: { $0.name == member })?.value else { return nil }
        return try text.withUTF8 { try Record(parsing: UnsafeRawBufferPointer($0)) }
    }
}
