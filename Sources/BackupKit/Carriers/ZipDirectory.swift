import Glibc

/// The central directory of a zip file, read and checked by ourselves, because libarchive believes the header in front
/// of an entry where the two differ. https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
struct ZipDirectory: Sendable {
    struct Entry: Sendable {
        var info = EntryInfo(path: "", size: 0, modified: 0)
        var isFolder = false
        /// The name as it stands in the file.
        var name: [UInt8] = []
        var flags: UInt16 = 0
        var method: UInt16 = 0
        /// MS-DOS date and time.
        var time: UInt32 = 0
        var crc: UInt32 = 0
        var packedSize: Int64 = 0
        var offset: Int64 = 0

        /// Why nothing of it is believed, neither name nor bytes: the two headers of it contradict each other, or one is damaged.
        var damage: BackupError?

        var hasDescriptor: Bool { flags & 8 != 0 }

        /// A header as the directory has it, for whoever has to step over one that is damaged (section 4.3.7).
        var header: (offset: Int64, bytes: [UInt8]) {
            var bytes: [UInt8] = [0x50, 0x4B, 3, 4, 20, 0]
            func append(_ number: some FixedWidthInteger) {
                withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
            }
            append(flags)
            append(method)
            append(time)
            append(crc)
            append(UInt32(clamping: packedSize))
            append(UInt32(clamping: info.size))
            append(UInt16(clamping: name.count))
            append(UInt16(0))
            return (offset, bytes + name)
        }
    }

    /// In the order in which they lie in the file.
    let entries: [Entry]
    let shift: ZipShift?

    /// Throws `.damaged` when the file is torn, `.refused` when it is made to be read in two ways. Damage of one entry is
    /// that entry's.
    init(_ file: FileHandle, limits: ReadLimits) throws {
        let end = try ZipEnd(file)
        var fields = try ByteFields(file, at: end.directoryOffset, count: end.directorySize)
        var meter = LimitMeter(limits)
        var entries: [Entry] = []
        var shift = end.shift
        for _ in 0..<end.count {
            try Interrupt.check()
            let place = end.directoryOffset + Int64(fields.position)
            var entry = try ZipRecords.centralEntry(&fields, file)
            try shift?.settle(&entry, listedAt: place, file)
            if entry.info.path != "." { try meter.admit(entry.info, isFolder: entry.isFolder) }
            entries.append(entry)
        }
        guard fields.remaining == 0 else {
            throw BackupError(.refused, "the zip directory has more in it than its count says", at: file.path)
        }
        try limits.checkRatio(unpacked: meter.totalBytes, packed: file.status().size, at: file.path)
        entries.sort { $0.offset < $1.offset }
        try Self.checkLayout(&entries, file, directory: end.directoryOffset, isShifted: shift != nil)
        (self.entries, self.shift) = (entries, shift)
    }

    /// Entries must follow one another without overlap and without anything in between. One that is damaged has the room up
    /// to the next.
    private static func checkLayout(
        _ entries: inout [Entry], _ file: FileHandle, directory: Int64, isShifted: Bool
    ) throws {
        // Where bytes were put in or are missing, the entry in front has too much room, or too little.
        func misfit(_ error: BackupError, of number: Int) throws {
            guard isShifted, entries.indices.contains(number) else { throw error }
            entries[number].damage = ZipShift.damage(of: entries[number].info.path)
        }
        var expected: Int64 = 0
        for (number, entry) in entries.enumerated() {
            let overlap = BackupError(.refused, "lies over another entry of the zip", at: entry.info.path)
            if entry.offset < expected { try misfit(overlap, of: number - 1) }
            if entry.offset > expected {
                let gap = "\(entry.offset - expected) bytes before it belong to no entry of the zip"
                try misfit(BackupError(.refused, gap, at: entry.info.path), of: number - 1)
            }
            let limit = number + 1 < entries.count ? entries[number + 1].offset : directory
            expected = limit
            guard entry.offset + 30 + Int64(entry.name.count) + entry.packedSize <= limit else {
                try misfit(overlap, of: number)
                continue
            }
            do {
                let dataEnd = try ZipRecords.checkLocalHeader(of: entry, file) + entry.packedSize
                guard dataEnd <= limit else { throw ZipRecords.contradiction(about: entry) }
                expected =
                    try dataEnd + ZipRecords.descriptorLength(of: entry, file, at: dataEnd, room: limit - dataEnd)
            } catch let error as BackupError where error.code == .damaged {
                entries[number].damage = error
            }
        }
        if expected != directory {
            let gap = "\(directory - expected) bytes before the zip directory belong to no entry"
            try misfit(BackupError(.refused, gap, at: file.path), of: entries.count - 1)
        }
    }
}

/// The record that ends a zip file, or the two that do in its 64-bit form (sections 4.3.14 to 4.3.16).
private struct ZipEnd {
    let count: Int64
    let directoryOffset: Int64
    let directorySize: Int64
    let shift: ZipShift?

    private static let signature: UInt32 = 0x0605_4B50
    private static let size: Int64 = 22
    private static let directoryMax: Int64 = 192 << 20

    init(_ file: FileHandle) throws {
        let fileSize = try file.status().size
        let position = try Self.find(file, fileSize)
        var fields = try ByteFields(file, at: position + 4, count: Self.size - 4)
        guard let disk = fields.number(UInt16.self), let firstDisk = fields.number(UInt16.self),
            let countHere = fields.number(UInt16.self), let count = fields.number(UInt16.self),
            let size = fields.number(UInt32.self), let offset = fields.number(UInt32.self)
        else { throw Self.torn(file) }
        var end = (count: Int64(count), offset: Int64(offset), size: Int64(size), position: position)
        let wide = try Self.zip64(file, before: position)
        if let wide {
            let agrees =
                (count == .max || Int64(count) == wide.count) && (size == .max || Int64(size) == wide.size)
                && (offset == .max || Int64(offset) == wide.offset)
            guard agrees else { throw Self.refused("its two end records contradict each other", file) }
            end = wide
        } else {
            guard disk == 0, firstDisk == 0, countHere == count else {
                throw Self.refused("it is one of several volumes", file)
            }
        }
        let (directoryEnd, overflow) = end.offset.addingReportingOverflow(end.size)
        guard !overflow, directoryEnd == end.position || wide == nil, end.position >= end.size else {
            throw ZipShift.damage(of: file)
        }
        let start = end.position - end.size
        let distance = start - end.offset
        shift = distance == 0 ? nil : ZipShift(distance, directory: start, endRecord: end.position)
        // A directory entry is 46 bytes long at least.
        guard end.count <= end.size / 46, end.size <= Self.directoryMax else {
            throw Self.refused("its end record lists \(end.count) entries in \(end.size) bytes", file)
        }
        (self.count, directoryOffset, directorySize) = (end.count, start, end.size)
    }

    /// The end record must reach to the last byte of the file, and there must be one only.
    private static func find(_ file: FileHandle, _ fileSize: Int64) throws -> Int64 {
        let length = min(fileSize, size + 65535)
        var tail = try ByteFields(file, at: fileSize - length, count: length)
        guard let bytes = tail.slice(Int(length)), length >= size else { throw torn(file) }
        var found: [Int] = []
        for start in stride(from: Int(length) - Int(size), through: 0, by: -1)
        where bytes[start] == 0x50 && bytes[start + 1] == 0x4B && bytes[start + 2] == 5 && bytes[start + 3] == 6 {
            let comment = Int(bytes[start + 20]) | Int(bytes[start + 21]) << 8
            if start + Int(size) + comment == Int(length) { found.append(start) }
        }
        guard let start = found.first else { throw torn(file) }
        guard found.count == 1 else { throw refused("it has two end records", file) }
        return fileSize - length + Int64(start)
    }

    private static func zip64(_ file: FileHandle, before position: Int64) throws
        -> (count: Int64, offset: Int64, size: Int64, position: Int64)?
    {
        var locator = try ByteFields(file, at: position - 20, count: 20)
        guard locator.number(UInt32.self) == 0x0706_4B50 else { return nil }
        guard locator.number(UInt32.self) == 0, let offset = locator.number(Int64.self),
            locator.number(UInt32.self) == 1,
            offset >= 0, offset <= position - 20 - 56
        else { throw refused("its 64-bit end locator is wrong", file) }
        var fields = try ByteFields(file, at: offset, count: 56)
        guard fields.number(UInt32.self) == 0x0606_4B50, let size = fields.number(Int64.self), size >= 44,
            size == position - 20 - offset - 12, fields.number(UInt32.self) != nil, fields.number(UInt32.self) == 0,
            fields.number(UInt32.self) == 0, let here = fields.number(Int64.self),
            let count = fields.number(Int64.self),
            here == count, let directorySize = fields.number(Int64.self), let start = fields.number(Int64.self),
            count >= 0, directorySize >= 0, start >= 0
        else { throw refused("its 64-bit end record is wrong", file) }
        return (count, start, directorySize, offset)
    }

    private static func torn(_ file: FileHandle) -> BackupError {
        BackupError(
            .damaged, "does not end as a zip file does: it was cut off, or something was appended", at: file.path)
    }

    private static func refused(_ what: String, _ file: FileHandle) -> BackupError {
        BackupError(.refused, "is not a zip file that can be trusted: \(what)", at: file.path)
    }
}

/// The records of single entries (sections 4.3.7, 4.3.9 and 4.3.12).
private enum ZipRecords {
    static func centralEntry(_ fields: inout ByteFields, _ file: FileHandle) throws -> ZipDirectory.Entry {
        let torn = BackupError(.damaged, "the zip directory is damaged", at: file.path)
        guard fields.number(UInt32.self) == 0x0201_4B50, let madeBy = fields.number(UInt16.self),
            fields.number(UInt16.self) != nil, let flags = fields.number(UInt16.self),
            let method = fields.number(UInt16.self), let time = fields.number(UInt16.self),
            let date = fields.number(UInt16.self), let crc = fields.number(UInt32.self),
            let packed = fields.number(UInt32.self), let size = fields.number(UInt32.self),
            let nameLength = fields.number(UInt16.self), let extraLength = fields.number(UInt16.self),
            let commentLength = fields.number(UInt16.self), let disk = fields.number(UInt16.self),
            fields.number(UInt16.self) != nil, let attributes = fields.number(UInt32.self),
            let offset = fields.number(UInt32.self), let name = fields.slice(Int(nameLength)),
            let extra = fields.slice(Int(extraLength)), fields.slice(Int(commentLength)) != nil
        else { throw torn }
        let extras = try ZipExtras(
            extra, size: size, packed: packed, offset: offset, damaged: torn)
        guard disk == 0 else { throw BackupError(.refused, "the zip is one of several volumes", at: file.path) }
        var entry = ZipDirectory.Entry()
        entry.name = Array(name)
        let stored = try StoredName(name)
        entry.isFolder = stored.isFolder
        entry.time = UInt32(date) << 16 | UInt32(time)
        (entry.flags, entry.method, entry.crc) = (flags, method, crc)
        (entry.packedSize, entry.offset) = (extras.packed, extras.offset)
        entry.info = EntryInfo(
            path: stored.path, size: extras.size, modified: extras.modified ?? Self.seconds(date: date, time: time))
        try refuseSpecial(entry, madeBy: madeBy, attributes: attributes)
        return entry
    }

    private static func refuseSpecial(_ entry: ZipDirectory.Entry, madeBy: UInt16, attributes: UInt32) throws {
        let path = entry.info.path
        // Bits 0, 6 and 13: encryption, strong encryption, hidden headers.
        if entry.flags & 0x2041 != 0 {
            throw BackupError(.refused, "is encrypted inside the zip", at: path, remedy: ForeignArchive.remedy)
        }
        guard entry.method == 0 || entry.method == 8 else {
            throw BackupError(
                .refused, "is compressed by method \(entry.method), which is not supported", at: path,
                remedy: ForeignArchive.remedy)
        }
        let type = attributes >> 16 & UInt32(S_IFMT)
        let hasUnixMode = [3, 19].contains(madeBy >> 8) && type != 0
        if hasUnixMode && type != UInt32(Glibc.S_IFREG) && type != UInt32(Glibc.S_IFDIR) {
            throw BackupError(
                .refused, "is a link or a device, which a backup does not hold", at: path,
                remedy: ForeignArchive.remedy)
        }
        if entry.method == 0 && entry.packedSize != entry.info.size || entry.isFolder && entry.info.size != 0 {
            throw BackupError(.refused, "its sizes contradict each other", at: path)
        }
    }

    static func contradiction(about entry: ZipDirectory.Entry) -> BackupError {
        BackupError(.damaged, "the zip says two different things about it", at: entry.info.path)
    }

    /// Checks the header in front of the data against the directory; returns where the data begin.
    static func checkLocalHeader(of entry: ZipDirectory.Entry, _ file: FileHandle) throws -> Int64 {
        var fields = try ByteFields(file, at: entry.offset, count: 30 + Int64(entry.name.count) + 65535)
        let torn = BackupError(.damaged, "its header in the zip is damaged", at: entry.info.path)
        guard fields.number(UInt32.self) == 0x0403_4B50, fields.number(UInt16.self) != nil,
            let flags = fields.number(UInt16.self), let method = fields.number(UInt16.self),
            let time = fields.number(UInt32.self), let crc = fields.number(UInt32.self),
            let packed = fields.number(UInt32.self), let size = fields.number(UInt32.self),
            let nameLength = fields.number(UInt16.self), let extraLength = fields.number(UInt16.self),
            let name = fields.slice(Int(nameLength)), let extra = fields.slice(Int(extraLength))
        else { throw torn }
        let extras = try ZipExtras(extra, size: size, packed: packed, offset: 0, damaged: torn)
        // With a descriptor behind the data, the header may leave these three at zero.
        let numbersAgree =
            (crc, extras.packed, extras.size) == (entry.crc, entry.packedSize, entry.info.size)
            || entry.hasDescriptor && (crc == 0 || crc == entry.crc)
                && (extras.packed == 0 || extras.packed == entry.packedSize)
                && (extras.size == 0 || extras.size == entry.info.size)
        guard name.elementsEqual(entry.name), method == entry.method, flags == entry.flags, numbersAgree,
            time == entry.time, extras.modified == nil || extras.modified == entry.info.modified
        else {
            throw contradiction(about: entry)
        }
        return entry.offset + 30 + Int64(nameLength) + Int64(extraLength)
    }

    /// The record behind the data, with or without its signature, in 32 or 64 bits; what fills the room must be one.
    static func descriptorLength(
        of entry: ZipDirectory.Entry, _ file: FileHandle, at offset: Int64, room: Int64
    ) throws -> Int64 {
        guard entry.hasDescriptor else { return 0 }
        let mismatch = BackupError(.damaged, "the record behind its data in the zip is damaged", at: entry.info.path)
        var fields = try ByteFields(file, at: offset, count: min(room, 24))
        if room == 16 || room == 24 {
            guard fields.number(UInt32.self) == 0x0807_4B50 else { throw mismatch }
        }
        guard fields.number(UInt32.self) == entry.crc else { throw mismatch }
        let sizes: (Int64?, Int64?)
        switch room {
        case 12, 16: sizes = (fields.number(UInt32.self).map(Int64.init), fields.number(UInt32.self).map(Int64.init))
        case 20, 24: sizes = (fields.number(Int64.self), fields.number(Int64.self))
        default: throw mismatch
        }
        guard sizes.0 == entry.packedSize, sizes.1 == entry.info.size else { throw mismatch }
        return room
    }

    /// MS-DOS date and time, which are local time.
    private static func seconds(date: UInt16, time: UInt16) -> Int64 {
        var parts = tm()
        parts.tm_year = Int32(date >> 9) + 80
        parts.tm_mon = Int32(date >> 5 & 15) - 1
        parts.tm_mday = Int32(date & 31)
        parts.tm_hour = Int32(time >> 11)
        parts.tm_min = Int32(time >> 5 & 63)
        parts.tm_sec = Int32(time & 31) * 2
        parts.tm_isdst = -1
        return Int64(mktime(&parts))
    }
}

/// The extra fields that matter: 64-bit sizes (section 4.5.3) and Info-ZIP's modification time.
private struct ZipExtras {
    var size: Int64
    var packed: Int64
    var offset: Int64
    var modified: Int64?

    init(_ bytes: ArraySlice<UInt8>, size: UInt32, packed: UInt32, offset: UInt32, damaged: BackupError) throws {
        (self.size, self.packed, self.offset) = (Int64(size), Int64(packed), Int64(offset))
        var fields = ByteFields(Array(bytes))
        var isWide = false
        while fields.remaining >= 4, let tag = fields.number(UInt16.self), let length = fields.number(UInt16.self) {
            guard let content = fields.slice(Int(length)) else { throw damaged }
            var field = ByteFields(Array(content))
            if tag == 1 {
                guard !isWide else { throw damaged }
                isWide = true
                if size == .max { self.size = try Self.wide(&field, damaged) }
                if packed == .max { self.packed = try Self.wide(&field, damaged) }
                if offset == .max { self.offset = try Self.wide(&field, damaged) }
            } else if tag == 0x5455, let flags = field.number(UInt8.self), flags & 1 == 1 {
                modified = field.number(Int32.self).map(Int64.init)
            }
        }
        guard isWide || (size != .max && packed != .max && offset != .max) else { throw damaged }
    }

    /// At most 2^56, so that sums cannot overflow.
    private static func wide(_ field: inout ByteFields, _ damaged: BackupError) throws -> Int64 {
        guard let number = field.number(Int64.self), number >= 0, number <= 1 << 56 else { throw damaged }
        return number
    }
}
