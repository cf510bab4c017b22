/// A zip file into which bytes were put, or from which some are missing: what lies behind that place is not where the directory
/// says. The entries are looked for at both places, and the one that was hit is damaged.
struct ZipShift: Sendable {
    let distance: Int64
    /// What stands for the offsets of the directory that are wrong.
    private(set) var patches: [(offset: Int64, bytes: [UInt8])]

    /// `offset` is where the directory is, and `end` where the record is that names another place.
    init(_ distance: Int64, directory offset: Int64, endRecord end: Int64) {
        self.distance = distance
        patches = [(end + 16, Self.bytes(offset))]
    }

    static func damage(of path: String) -> BackupError {
        BackupError(.damaged, "bytes were put into it in the zip, or are missing", at: path)
    }

    static func damage(of file: FileHandle) -> BackupError {
        BackupError(
            .damaged,
            "its directory is not where its end record says: something was put before or into it, or is missing",
            at: file.path)
    }

    /// Finds the header of an entry, which the directory lists at `place`.
    mutating func settle(_ entry: inout ZipDirectory.Entry, listedAt place: Int64, _ file: FileHandle) throws {
        let moved = entry.offset + distance
        guard try !Self.hasHeader(of: entry, file, at: entry.offset), try Self.hasHeader(of: entry, file, at: moved)
        else { return }
        entry.offset = moved
        patches.append((place + 42, Self.bytes(moved)))
    }

    private static func hasHeader(of entry: ZipDirectory.Entry, _ file: FileHandle, at offset: Int64) throws -> Bool {
        var fields = try ByteFields(file, at: offset, count: 30 + Int64(entry.name.count))
        return fields.number(UInt32.self) == 0x0403_4B50 && fields.slice(26) != nil
            && fields.slice(entry.name.count)?.elementsEqual(entry.name) == true
    }

    private static func bytes(_ offset: Int64) -> [UInt8] {
        withUnsafeBytes(of: UInt32(clamping: offset).littleEndian) { Array($0) }
    }
}
