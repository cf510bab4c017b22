/// What a damaged gzip or xz file holds in front of the damage, and libarchive's filters keep back: they hand over 64 KiB at
/// a time. Its reader of zip files knows both methods, and hands over what it has; so it gets the file as an entry of one.
final class UnpackedRest {
    private let unpacker: ArchiveUnpacker
    /// Bytes that were handed over before.
    private var known: UInt64

    init(_ file: FileHandle, _ kind: ArchiveUnpacker.Kind, after known: UInt64) throws {
        self.known = known
        let start = kind == .gzip ? try Self.deflatedOffset(file) : 0
        let size = try UInt32(clamping: min(file.status().size - start, Int64(UInt32.max) - 1))
        unpacker = try ArchiveUnpacker(
            file, .cutZip, behind: Self.header(method: kind == .gzip ? 8 : 95, size: size), from: start)
        guard try unpacker.next() else { throw BackupError(.damaged, "is empty", at: file.path) }
    }

    /// The next bytes; nil at the end. Throws where the damage is.
    func next() throws -> UnsafeRawBufferPointer? {
        while true {
            let bytes = try unpacker.data()
            if bytes.isEmpty { return nil }
            let passed = Int(min(known, UInt64(bytes.count)))
            known -= UInt64(passed)
            if passed < bytes.count { return UnsafeRawBufferPointer(rebasing: bytes[passed...]) }
        }
    }

    /// The header of an entry in a zip file (APPNOTE 4.3.7).
    private static func header(method: UInt16, size: UInt32) -> [UInt8] {
        var header = Array("PK".utf8) + [3, 4]
        for field in [63, 0, method, 0, 0] { header.append(little: field) }
        for field in [0, size, UInt32.max - 1] { header.append(little: field) }
        for field in [UInt16(1), 0] { header.append(little: field) }
        return header + Array("x".utf8)
    }

    /// Where the deflated bytes of a gzip file begin (RFC 1952, section 2.3).
    private static func deflatedOffset(_ file: FileHandle) throws -> Int64 {
        let head = try [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, used in
            used = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
        }
        let (extra, name, comment, checksum): (UInt8, UInt8, UInt8, UInt8) = (4, 8, 16, 2)
        var rest = head.dropFirst(10)
        let flags = head.count > 3 ? head[3] : 0
        if flags & extra != 0 {
            let length = rest.prefix(2).reversed().reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(2 + length)
        }
        for text in [name, comment] where flags & text != 0 { rest = rest.drop { $0 != 0 }.dropFirst() }
        if flags & checksum != 0 { rest = rest.dropFirst(2) }
        return Int64(rest.startIndex)
    }
}
