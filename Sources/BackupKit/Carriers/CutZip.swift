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

    func visit(_ body: @Sendable (EntryInfo, any EntryBytes) throws -> Void) throws -> [Finding] {
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
            if !entry.isFolder { try body(entry.info, ZipEntryBytes(walk.unpacker, entry.info)) }
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
            unpacker = try ArchiveUnpacker(file, .cutZip)
            self.limits = limits
            fileSize = try file.status().size
            meter = LimitMeter(limits)
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
