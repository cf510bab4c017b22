/// A file or folder in a tar archive.
struct TarMember {
    var info: EntryInfo
    var isFolder: Bool
    /// Where its first header begins.
    var offset: Int64
    /// Where its bytes begin.
    var dataOffset: Int64

    /// The folder that was packed, as `tar -cf - .` puts it in front.
    var isRoot: Bool { isFolder && info.path == "." }

    /// Where the next member begins.
    var end: Int64 { dataOffset + (info.size + 511) / 512 * 512 }
}

/// Walks through the members of a tar archive: strict, in bounded memory, and accounting for every byte.
final class TarCursor {
    /// As libarchive has it: no honest extended header is larger.
    private static let extensionBytes: Int64 = 1 << 20
    /// 2^56: no file is larger, and sums of such sizes cannot overflow.
    private static let sizeMax: Int64 = 1 << 56

    private let source: any ByteSource
    private let limits: ReadLimits
    /// What error messages call the archive.
    private let archive: String
    private var chunk = UnsafeRawBufferPointer(start: nil, count: 0)
    private var position: Int64 = 0
    private var produced: Int64 = 0
    private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: TarHeader.blockSize, alignment: 8)
    private(set) var findings: [Finding] = []
    /// Damage that was met inside a member; after it the cursor does not know where it is.
    private(set) var failure: BackupError?

    init(_ source: any ByteSource, archive: String, limits: ReadLimits) {
        self.source = source
        self.archive = archive
        self.limits = limits
    }

    deinit { scratch.deallocate() }

    // MARK: Bytes

    /// Up to `count` bytes, without copying; empty at the end.
    func take(upTo count: Int64) throws -> UnsafeRawBufferPointer {
        if chunk.isEmpty { try refill() }
        let length = Int(min(count, Int64(chunk.count)))
        let piece = UnsafeRawBufferPointer(rebasing: chunk[..<length])
        chunk = UnsafeRawBufferPointer(rebasing: chunk[length...])
        position += Int64(length)
        return piece
    }

    private func refill() throws {
        do {
            chunk = try source.next()
        } catch let error as BackupError {
            failure = error
            throw error
        }
        produced += Int64(chunk.count)
        try limits.checkRatio(unpacked: produced, packed: source.consumed, at: archive)
    }

    private func skip(_ count: Int64) throws {
        if count > Int64(chunk.count), try source.seek(to: position + count) {
            chunk = UnsafeRawBufferPointer(start: nil, count: 0)
            position += count
            return
        }
        var rest = count
        while rest > 0 {
            let piece = try take(upTo: rest)
            if piece.isEmpty { throw truncated() }
            rest -= Int64(piece.count)
        }
    }

    /// Goes on elsewhere in a source that can do that.
    func restart(at offset: Int64) throws {
        failure = nil
        if offset >= position && offset - position <= Int64(chunk.count) {
            chunk = UnsafeRawBufferPointer(rebasing: chunk[Int(offset - position)...])
        } else {
            chunk = UnsafeRawBufferPointer(start: nil, count: 0)
            guard try source.seek(to: offset) else {
                throw BackupError(.failed, "cannot be read at byte \(offset)", at: archive)
            }
        }
        position = offset
    }

    /// The next 512 bytes; nil at the end, damage when there are fewer.
    private func block() throws -> UnsafeRawBufferPointer? {
        let first = try take(upTo: Int64(TarHeader.blockSize))
        if first.isEmpty { return nil }
        if first.count == TarHeader.blockSize { return first }
        scratch.copyMemory(from: first)
        var filled = first.count
        while filled < TarHeader.blockSize {
            let piece = try take(upTo: Int64(TarHeader.blockSize - filled))
            if piece.isEmpty { throw position < TarHeader.blockSize ? notAHeader(at: 0) : truncated() }
            UnsafeMutableRawBufferPointer(rebasing: scratch[filled...]).copyMemory(from: piece)
            filled += piece.count
        }
        return UnsafeRawBufferPointer(scratch)
    }

    func truncated() -> BackupError {
        let error = BackupError(
            .damaged, "is cut off: it ends after \(position) bytes, without the mark that ends a tar archive",
            at: archive)
        failure = error
        return error
    }

    private func damaged(_ what: String) -> BackupError {
        let error = BackupError(.damaged, what, at: archive)
        failure = error
        return error
    }

    // MARK: Members

    /// The next member; nil after the last one, when everything behind it was looked at.
    func next() throws -> TarMember? {
        let start = position
        var extra = TarExtension()
        while true {
            let offset = position
            guard let block = try block() else { throw offset == 0 ? notAHeader(at: 0) : truncated() }
            if TarHeader.isZero(block) {
                guard offset == start else { throw damaged("extended headers belong to no member") }
                try finish(isEmpty: offset == 0)
                return nil
            }
            guard let header = TarHeader(block) else { throw notAHeader(at: offset) }
            switch header.type {
            case UInt8(ascii: "x"), UInt8(ascii: "g"):
                let isGlobal = header.type == UInt8(ascii: "g")
                try named(header) { try extra.read(pax: content(of: header), isGlobal: isGlobal) }
            case UInt8(ascii: "L"):
                extra.name = Array(try content(of: header).prefix { $0 != 0 })
            default:
                return try member(header, extra, start: start)
            }
        }
    }

    private func notAHeader(at offset: Int64) -> BackupError {
        if offset == 0 {
            return BackupError(
                .refused, "holds no tar archive, or its first header is damaged", at: archive,
                remedy: "if it is one compressed file, unpack it first, with 'gunzip', 'xz -d' or 'zstd -d'")
        }
        return damaged("the tar header at byte \(offset) is damaged")
    }

    private func named(_ header: TarHeader, _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as BackupError {
            throw BackupError(error.code, error.message, at: String(decoding: header.name, as: UTF8.self))
        }
    }

    /// The content of an extended header, and the zeros behind it.
    private func content(of header: TarHeader) throws -> [UInt8] {
        guard header.size <= Self.extensionBytes else {
            throw BackupError(
                .refused, "an extended header of \(header.size) bytes is too large",
                at: String(decoding: header.name, as: UTF8.self))
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(header.size))
        while bytes.count < header.size {
            let piece = try take(upTo: header.size - Int64(bytes.count))
            if piece.isEmpty { throw truncated() }
            bytes += piece
        }
        try skipPadding(after: header.size, of: String(decoding: header.name, as: UTF8.self))
        return bytes
    }

    private func member(_ header: TarHeader, _ extra: TarExtension, start: Int64) throws -> TarMember {
        let name = extra.name ?? header.name
        let shown = String(decoding: name, as: UTF8.self)
        try refuseSpecial(header.type, shown)
        let stored = try StoredName(name)
        let isFolder = stored.isFolder || header.type == UInt8(ascii: "5")
        let path = stored.path
        let size = isFolder ? 0 : extra.size ?? header.size
        guard size <= Self.sizeMax else { throw BackupError(.refused, "claims to have \(size) bytes", at: shown) }
        return TarMember(
            info: EntryInfo(path: path, size: size, modified: extra.modified ?? header.modified), isFolder: isFolder,
            offset: start, dataOffset: position)
    }

    private func refuseSpecial(_ type: UInt8, _ name: String) throws {
        let what: String
        switch type {
        case 0, UInt8(ascii: "0"), UInt8(ascii: "5"), UInt8(ascii: "7"): return
        case UInt8(ascii: "1"): what = "is a hard link"
        case UInt8(ascii: "2"), UInt8(ascii: "K"): what = "is a symbolic link"
        case UInt8(ascii: "3"), UInt8(ascii: "4"): what = "is a device"
        case UInt8(ascii: "6"): what = "is a named pipe"
        case UInt8(ascii: "S"): what = "is a sparse file"
        case UInt8(ascii: "M"): what = "goes on in another volume"
        default: what = "is of the unknown kind '\(Character(Unicode.Scalar(type)))'"
        }
        throw BackupError(
            .refused, "\(what), which a backup does not hold", at: name, remedy: ForeignArchive.remedy)
    }

    /// Skips what nobody asked for of a member, and the zeros that fill its last block.
    func leave(_ member: TarMember, unread: Int64) throws {
        try skip(unread)
        try skipPadding(after: member.info.size, of: member.info.path)
    }

    private func skipPadding(after size: Int64, of name: String) throws {
        var rest = (512 - size % 512) % 512
        while rest > 0 {
            let piece = try take(upTo: rest)
            if piece.isEmpty { throw truncated() }
            if !TarHeader.isZero(piece) {
                findings.append(
                    Finding(.archiveDamaged, .warning, name, "the unused bytes behind it are not zero"))
            }
            rest -= Int64(piece.count)
        }
    }

    /// After the first zero block: there must be a second one, and nothing but zeros up to the end.
    private func finish(isEmpty: Bool) throws {
        guard let second = try block() else { throw truncated() }
        var stray = TarHeader.isZero(second) ? nil : position - 512
        while true {
            let piece = try take(upTo: .max)
            if piece.isEmpty { break }
            if stray == nil, let index = TarHeader.firstNonZero(piece) {
                stray = position - Int64(piece.count) + Int64(index)
            }
        }
        // A disk image begins with zeros, too.
        if stray != nil && isEmpty { throw notAHeader(at: 0) }
        if let stray {
            findings.append(
                Finding(
                    .trailingData, .damage, archive,
                    "something follows the end of the tar archive, at byte \(stray) of it; it was not read",
                    remedy: "look whether two archives were joined"))
        }
        findings += try source.findingsAtEnd()
    }
}

/// The bytes of the member that a cursor stands at.
final class TarEntryBytes: EntryBytes {
    private let cursor: TarCursor
    private let member: TarMember
    private var unread: Int64

    init(_ cursor: TarCursor, _ member: TarMember) {
        self.cursor = cursor
        self.member = member
        unread = member.info.size
    }

    func forEachChunk(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        while unread > 0 {
            try Interrupt.check()
            if let failure = cursor.failure { throw failure }
            let piece = try cursor.take(upTo: unread)
            if piece.isEmpty { throw cursor.truncated() }
            unread -= Int64(piece.count)
            try body(piece)
        }
    }

    /// Skips what was not read.
    func leave() throws { try cursor.leave(member, unread: unread) }
}
