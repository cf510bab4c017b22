/// A zip file whose directory is lost, as of a copy that was cut off: read along the headers in front of its entries, from
/// the beginning to where it breaks. Only for what `ZipDirectory` finds damaged; a whole zip is never read this way,
/// because then its directory decides.
struct CutZip: CarrierReader {
    let file: FileHandle
    let limits: ReadLimits
    /// What is wrong with the file.
    let cause: BackupError

    func list() throws -> [EntryInfo] { throw cause }

    func read(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var walk = try Walk(file, limits)
        while let entry = try walk.next() {
            if !entry.isFolder, entry.info.path.utf8.elementsEqual(path.utf8) {
                return try ZipEntryBytes(walk.unpacker, entry.info).forEachChunk(body)
            }
        }
        throw cause
    }

    func visit(
        where isWanted: @Sendable (EntryInfo) -> Bool, _ body: @Sendable (EntryInfo, any EntryBytes) throws -> Void
    ) throws -> [Finding] {
        var walk = try Walk(file, limits)
        while true {
            try Interrupt.check()
            let entry: Walk.Entry
            do {
                guard let next = try walk.next() else { break }
                entry = next
            } catch let error as BackupError where error.code == .damaged {
                // Here it breaks.
                break
            }
            if !entry.isFolder, isWanted(entry.info) { try body(entry.info, ZipEntryBytes(walk.unpacker, entry.info)) }
        }
        return [cause.asFinding]
    }

    private struct Walk {
        struct Entry {
            let info: EntryInfo
            let isFolder: Bool
        }

        let unpacker: ArchiveUnpacker
        private let limits: ReadLimits
        private let fileSize: Int64
        private var meter: LimitMeter

        init(_ file: FileHandle, _ limits: ReadLimits) throws {
            fileSize = try file.status().size
            unpacker = try ArchiveUnpacker(file, .cutZip, zerosAtEnd: Self.zerosWanted(file, size: fileSize))
            self.limits = limits
            meter = LimitMeter(limits)
        }

        /// libarchive reads 24 bytes to find the data descriptor of an entry (APPNOTE 4.3.9), which may have 16. Eight zeros
        /// fill the gap, and are too few to complete the header of another entry.
        private static func zerosWanted(_ file: FileHandle, size: Int64) throws -> Int {
            let end = try [UInt8](unsafeUninitializedCapacity: 24) { buffer, used in
                used = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: max(0, size - 24))
            }
            let signature = Array("PK".utf8) + [7, 8]
            let isThere = (0...8).contains { end.dropFirst($0).starts(with: signature) }
            return isThere ? 8 : 0
        }

        mutating func next() throws -> Entry? {
            guard try unpacker.next() else { return nil }
            let stored = try StoredName(unpacker.name)
            // The header of an empty file has no size. A longer file whose size is lost is reported when it is read.
            let size = stored.isFolder ? 0 : unpacker.size ?? 0
            let info = EntryInfo(path: stored.path, size: size, modified: unpacker.modified)
            if stored.path != "." { try meter.admit(info, isFolder: stored.isFolder) }
            try limits.checkRatio(unpacked: meter.totalBytes, packed: fileSize, at: stored.path)
            return Entry(info: info, isFolder: stored.isFolder)
        }
    }
}
