/// Reads an archive of one of our forms. What it is, its first bytes tell, never its name; and it is unpacked in that
/// one way, never in several layers.
public struct ArchiveReader: CarrierReader {
    private let reader: any CarrierReader
    public let format: CarrierFormat

    public init(path: String, limits: ReadLimits = ReadLimits()) throws {
        try self.init(file: FileHandle.openForReading(path), limits: limits)
    }

    /// `file` MUST be a file that can be read at any place, not a pipe.
    public init(file: FileHandle, limits: ReadLimits = ReadLimits()) throws {
        format = try ArchiveMagic.format(of: file)
        switch format {
        case .tarZstandard:
            if let seekable = try SeekableTar(file, limits: limits) {
                reader = seekable
            } else {
                reader = TarSequence(file: file, limits: limits) { try ZstandardSource($0) }
            }
        case .tarGzip: reader = TarSequence(file: file, limits: limits) { try PartsSource($0, GzipStream()) }
        case .tarXZ: reader = TarSequence(file: file, limits: limits) { try PartsSource($0, XZStream()) }
        case .zip:
            do {
                reader = try ZipReader(file, limits: limits)
            } catch let error as BackupError where error.code == .damaged {
                reader = CutZip(file: file, limits: limits, cause: error)
            }
        case .tar, .directory: reader = TarSequence(file: file, limits: limits) { try PlainSource($0) }
        }
    }

    public func list() throws -> [EntryInfo] { try reader.list() }

    public func visit(
        where isWanted: @Sendable (EntryInfo) -> Bool, _ body: @Sendable (EntryInfo, any EntryBytes) throws -> Void
    ) throws -> [Finding] {
        try reader.visit(where: isWanted, body)
    }

    public func read(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        try reader.read(path, body)
    }

    /// Whether single entries are found without reading the rest: so it is for zip and for our own `.tar.zst`.
    public var findsEntriesQuickly: Bool { !(reader is TarSequence || reader is CutZip) }

    /// The quick proof after writing: for our own `.tar.zst`, every frame decodes with its checksum and every header is
    /// sound, on all cores; for the others, everything is unpacked once.
    public func checkStructure() throws -> [Finding] {
        if let seekable = reader as? SeekableTar { return try seekable.checkFrames() }
        return try reader.visit { info, bytes in
            var size: Int64 = 0
            try bytes.forEachChunk { size += Int64($0.count) }
            guard size == info.size else {
                throw BackupError(.damaged, "has \(size) of \(info.size) bytes", at: info.path)
            }
        }
    }
}

/// What a file is, by its first bytes.
enum ArchiveMagic {
    static func format(of file: FileHandle) throws -> CarrierFormat {
        try withUnsafeTemporaryAllocation(byteCount: TarHeader.blockSize, alignment: 8) { buffer in
            let count = try file.read(into: buffer, at: 0)
            let head = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            if head.isEmpty {
                throw BackupError(.damaged, "is empty", at: file.path, remedy: "it was cut off, or never written")
            }
            if let format = try format(head) ?? (FrameTable.ends(file) ? .tarZstandard : nil) { return format }
            // A file that is named like an archive, or has an unknown beginning, may be a damaged archive.
            let mayBeOne = CarrierFormat(fileName: file.path) != nil
            if isText(head) {
                throw BackupError(
                    mayBeOne ? .refused : .notFound, "is a text file, not an archive", at: file.path,
                    remedy: howToImport(file.path))
            }
            throw BackupError(
                mayBeOne || knownKind(of: head) == nil ? .refused : .notFound,
                "not a recognised archive\(guess(head).map { ": \($0)" } ?? "")", at: file.path,
                remedy: head.starts(with: Array("%PDF".utf8))
                    ? "'backup-tool import --attachments FOLDER' imports the files of a folder"
                    : "archives are tar.zst, tar.gz, tar.xz, tar or zip")
        }
    }

    private static func format(_ head: UnsafeRawBufferPointer) -> CarrierFormat? {
        if head.starts(with: ZstandardStream.magic) { return .tarZstandard }
        // pzstd begins with a frame to be skipped: 184D2A50 to 184D2A5F.
        if head.count >= 4, head[0] & 0xF0 == 0x50, head[1...3].elementsEqual([0x2A, 0x4D, 0x18]) {
            return .tarZstandard
        }
        if head.starts(with: GzipStream.magic) { return .tarGzip }
        if head.starts(with: XZStream.magic) { return .tarXZ }
        if head.starts(with: [0x50, 0x4B, 3, 4]) || head.starts(with: [0x50, 0x4B, 5, 6]) { return .zip }
        if head.count == TarHeader.blockSize, TarHeader(head) != nil || TarHeader.isZero(head) { return .tar }
        // A tar whose first header was hit: better "damaged" than "no archive".
        if head.count > 262, head[257..<262].elementsEqual("ustar".utf8) { return .tar }
        return nil
    }

    /// An import tells text files apart by their names.
    private static func howToImport(_ path: String) -> String {
        let name = lastComponent(of: path)
        if name.hasSuffix(".bib") || name.hasSuffix(".jsonl") {
            return "\(TypedCommand.quoted("import", [path])) takes it into a store"
        }
        let stem = String(path.dropLast(name.count)) + (name.split(separator: ".").first.map(String.init) ?? "library")
        let commands = ["bib", "jsonl"].map { TypedCommand.quoted("import", ["\(stem).\($0)"]) }
        return "BibTeX: rename it to end in .bib, then \(commands[0]); "
            + "an event log: rename it to end in .jsonl, then \(commands[1])"
    }

    /// Whether it is text that nothing is known of.
    private static func isText(_ head: UnsafeRawBufferPointer) -> Bool {
        head.allSatisfy { $0 >= 0x20 && $0 != 0x7F || (0x09...0x0D).contains($0) }
            && knownKind(of: head) == nil && !head.starts(with: "-----BEGIN".utf8)
    }

    private static func guess(_ head: UnsafeRawBufferPointer) -> String? {
        knownKind(of: head) ?? (head.count < TarHeader.blockSize ? "the file is too short" : nil)
    }

    private static func knownKind(of head: UnsafeRawBufferPointer) -> String? {
        let cpio = "it is a cpio archive, which is not supported"
        let known: [([UInt8], String)] = [
            (Array("%PDF".utf8), "it is a PDF"),
            (Array("age-encryption.org/".utf8), "it is encrypted with age"),
            (Array("-----BEGIN AGE".utf8), "it is encrypted with age"),
            (Array("-----BEGIN PGP".utf8), "it is encrypted with PGP"),
            (Array("Salted__".utf8), "it is encrypted with openssl"),
            (Array("SQLite format 3".utf8), "it is an SQLite database"),
            (Array("7z".utf8) + [0xBC, 0xAF], "it is a 7z archive, which is not supported"),
            (Array("Rar!".utf8), "it is a RAR archive, which is not supported"),
            (Array("BZh".utf8), "it is compressed with bzip2, which is not supported"),
            (Array("070701".utf8), cpio), (Array("070707".utf8), cpio), ([0xC7, 0x71], cpio),
            (Array("!<arch>".utf8), "it is an ar archive, which is not supported"),
        ]
        return known.first { head.starts(with: $0.0) }?.1
    }
}

/// Opens whatever a layout can be read from.
public enum CarrierOpener {
    public static func open(_ path: String, limits: ReadLimits = ReadLimits()) throws -> any CarrierReader {
        if let address = VaultAddress(path) { return try VaultReader.open(address, limits: limits) }
        guard let status = try FileStatus.ofTarget(path) else {
            throw BackupError.missing(path)
        }
        return status.isDirectory
            ? try DirectoryReader(path, limits: limits) : try ArchiveReader(path: path, limits: limits)
    }
}
