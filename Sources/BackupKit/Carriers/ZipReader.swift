/// A zip file: its directory as we read it, its data as libarchive unpacks them.
struct ZipReader: CarrierReader {
    private let file: FileHandle
    private let limits: ReadLimits
    private let directory: ZipDirectory

    init(_ file: FileHandle, limits: ReadLimits) throws {
        self.file = file
        self.limits = limits
        directory = try ZipDirectory(file, limits: limits)
    }

    func list() throws -> [EntryInfo] {
        if directory.shift != nil { throw ZipShift.damage(of: file) }
        return directory.entries.lazy.filter { !$0.isFolder }.map(\.info)
    }

    func read(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let number = directory.entries.firstIndex { !$0.isFolder && $0.info.path.utf8.elementsEqual(path.utf8) }
        guard let number else { throw BackupError(.notFound, "is not in \(file.path)", at: path) }
        if let damage = directory.entries[number].damage { throw damage }
        do {
            try ZipWalk(file, directory).entry(number).forEachChunk(body)
        } catch let lost as ZipWalk.Lost {
            throw lost.cause
        }
    }

    func visit(
        where isWanted: @Sendable (EntryInfo) -> Bool, _ body: @Sendable (EntryInfo, any EntryBytes) throws -> Void
    ) throws -> [Finding] {
        // Numbers are handed out upwards, so that every thread walks through the file once.
        try Parallel.forEach(directory.entries.count, state: { try ZipWalk(file, directory) }) { walk, number in
            try Interrupt.check()
            let entry = directory.entries[number]
            if entry.isFolder || !isWanted(entry.info) { return }
            if let damage = entry.damage { return try body(entry.info, LostZipBytes(cause: damage)) }
            do {
                try body(entry.info, walk.entry(number))
            } catch let lost as ZipWalk.Lost {
                try body(entry.info, LostZipBytes(cause: lost.cause))
            }
        }
        return directory.shift == nil ? [] : [ZipShift.damage(of: file).asFinding]
    }
}

/// One thread's way through a zip file, from front to back.
private final class ZipWalk {
    /// libarchive could not even get to the entry.
    struct Lost: Error {
        let cause: BackupError
    }

    private let file: FileHandle
    private let directory: ZipDirectory
    private var unpacker: ArchiveUnpacker
    private var next = 0

    init(_ file: FileHandle, _ directory: ZipDirectory) throws {
        self.file = file
        self.directory = directory
        unpacker = try Self.unpacker(file, directory)
    }

    /// Steps over what is damaged by the headers of the directory.
    private static func unpacker(_ file: FileHandle, _ directory: ZipDirectory) throws -> ArchiveUnpacker {
        let damaged = directory.entries.filter { $0.damage != nil }
        return try ArchiveUnpacker(file, .zip, patches: damaged.map(\.header) + (directory.shift?.patches ?? []))
    }

    func entry(_ number: Int) throws -> ZipEntryBytes {
        let entry = directory.entries[number]
        do {
            if number < next {
                unpacker = try Self.unpacker(file, directory)
                next = 0
            }
            while next <= number {
                guard try unpacker.next() else { throw BackupError(.damaged, "cannot be found in the zip") }
                next += 1
            }
        } catch let error as BackupError where error.code == .damaged {
            // Start again next time: this reader is of no more use.
            next = .max
            throw Lost(cause: BackupError(.damaged, error.message, at: entry.info.path))
        }
        guard unpacker.isNamed(entry.name) else {
            throw BackupError(.refused, "the zip says two different things about it", at: entry.info.path)
        }
        return ZipEntryBytes(unpacker, entry.info)
    }
}

private struct LostZipBytes: EntryBytes {
    let cause: BackupError
    func forEachChunk(_ body: (UnsafeRawBufferPointer) throws -> Void) throws { throw cause }
}

final class ZipEntryBytes: EntryBytes {
    private let unpacker: ArchiveUnpacker
    private let info: EntryInfo

    init(_ unpacker: ArchiveUnpacker, _ info: EntryInfo) {
        self.unpacker = unpacker
        self.info = info
    }

    func forEachChunk(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var rest = info.size
        while true {
            try Interrupt.check()
            let piece: UnsafeRawBufferPointer
            do {
                piece = try unpacker.data()
            } catch let error as BackupError where error.code == .damaged {
                throw BackupError(.damaged, error.message, at: info.path)
            }
            if piece.isEmpty { break }
            rest -= Int64(piece.count)
            guard rest >= 0 else { throw BackupError(.damaged, "is longer than the zip says", at: info.path) }
            try body(piece)
        }
        guard rest == 0 else { throw BackupError(.damaged, "is shorter than the zip says", at: info.path) }
    }
}
