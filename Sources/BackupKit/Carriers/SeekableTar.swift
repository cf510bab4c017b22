import Synchronization

/// Unpacks the frames of a `.tar.zst` as they are needed. Keeps the last one, so that going on inside it costs nothing.
private final class FrameSource: ByteSource {
    private let file: FileHandle
    private let table: FrameTable
    private let decompressor: ZstandardDecompressor
    private var packed = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var unpacked = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var loaded: Int?
    private var position: Int64 = 0
    private let damage: DamageList
    /// The frame that last failed to decode.
    var failure: BackupError?

    init(_ file: FileHandle, _ table: FrameTable, _ damage: DamageList) throws {
        self.file = file
        self.table = table
        self.damage = damage
        decompressor = try ZstandardDecompressor()
    }

    deinit {
        packed.deallocate()
        unpacked.deallocate()
    }

    func next() throws -> UnsafeRawBufferPointer {
        guard position < table.unpackedSize else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let frame = table.frame(at: position)
        try load(frame)
        let range = table.unpackedRange(frame)
        let bytes = unpacked[Int(position - range.lowerBound)..<range.count]
        position = range.upperBound
        return UnsafeRawBufferPointer(rebasing: bytes)
    }

    /// Unpacks a frame, which checks its checksum.
    func load(_ frame: Int) throws {
        if loaded == frame { return }
        loaded = nil
        let range = table.packedRange(frame)
        let size = table.unpackedRange(frame).count
        Self.grow(&packed, to: range.count)
        Self.grow(&unpacked, to: size)
        let source = UnsafeMutableRawBufferPointer(rebasing: packed[..<range.count])
        var reason = "the file ends before it"
        if try file.read(into: source, at: range.lowerBound) == range.count {
            let target = UnsafeMutableRawBufferPointer(rebasing: unpacked[..<size])
            let (count, failure) = decompressor.decompress(UnsafeRawBufferPointer(source), into: target)
            reason = failure.isEmpty ? "it has another length than the table says" : failure
            // Bit 2 of the descriptor is the content checksum, without which "it decodes" would prove little.
            if count == size && source[4] & 4 != 0 {
                loaded = frame
                return
            }
        }
        let error = damage.record(frame, range, reason, in: file.path)
        failure = error
        throw error
    }

    private static func grow(_ buffer: inout UnsafeMutableRawBufferPointer, to count: Int) {
        guard buffer.count < count else { return }
        buffer.deallocate()
        buffer = .allocate(byteCount: max(count, FrameWriter.frameSize), alignment: 16)
    }

    func seek(to offset: Int64) -> Bool {
        position = offset
        return true
    }

    // Checked once for all frames, from the table.
    var consumed: Int64 { .max }

    func findingsAtEnd() -> [Finding] { [] }
}

/// The frames that did not decode.
private final class DamageList: Sendable {
    private let frames = Mutex<[Int: Finding]>([:])

    func record(_ frame: Int, _ range: Range<Int64>, _ reason: String, in path: String) -> BackupError {
        let error = BackupError(
            .damaged,
            "zstd frame \(frame), at bytes \(range.lowerBound) to \(range.upperBound) of the archive, does not decode: \(reason)",
            at: path)
        frames.withLock { $0[frame] = error.asFinding }
        return error
    }

    var findings: [Finding] { frames.withLock { $0.sorted { $0.key < $1.key }.map(\.value) } }
}

/// The bytes of an entry that cannot be had.
private struct LostBytes: EntryBytes {
    let cause: BackupError
    func forEachChunk(_ body: (UnsafeRawBufferPointer) throws -> Void) throws { throw cause }
}

/// A `.tar.zst` of ours: frames that can be read one by one, and a list of its members.
struct SeekableTar: CarrierReader {
    private let file: FileHandle
    private let limits: ReadLimits
    private let table: FrameTable
    private let index: MemberIndex

    /// nil when the file has no seek table or no sound index: then it is read like anybody's.
    init?(_ file: FileHandle, limits: ReadLimits) throws {
        guard let table = try FrameTable(readingFrom: file), table.count >= 2,
            table.unpackedRange(table.count - 1).isEmpty,
            let index = try MemberIndex(file, at: table.packedRange(table.count - 1), tarSize: table.unpackedSize)
        else { return nil }
        self.file = file
        self.limits = limits
        self.table = table
        self.index = index
        guard (0..<(table.count - 1)).allSatisfy({ !table.unpackedRange($0).isEmpty }) else { return nil }
        try limits.checkRatio(unpacked: table.unpackedSize, packed: table.packed[table.count], at: file.path)
    }

    func list() throws -> [EntryInfo] {
        var meter = LimitMeter(limits)
        return try (0..<index.count).map { number in
            let info = try index.info(number)
            try meter.admit(info)
            return info
        }
    }

    private func checkNames() throws {
        var meter = LimitMeter(limits)
        for number in 0..<index.count { try meter.admit(index.info(number)) }
    }

    func read(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let numbers = index.numbers(named: path)
        guard let number = numbers.first else { throw BackupError(.notFound, "is not in \(file.path)", at: path) }
        guard numbers.count == 1 else { throw BackupError(.refused, "is in the archive twice", at: path) }
        let reader = try FrameReader(self, DamageList())
        try TarEntryBytes(reader.cursor, try reader.member(number)).forEachChunk(body)
    }

    func visit(
        where isWanted: @Sendable (EntryInfo) -> Bool, _ body: @Sendable (EntryInfo, any EntryBytes) throws -> Void
    ) throws -> [Finding] {
        // Nothing is handed out of an archive that is refused.
        try checkNames()
        let damage = DamageList()
        let others = Mutex<[Finding]>([])
        let runs = runs
        try Parallel.forEach(runs.count, state: { try FrameReader(self, damage) }) { reader, run in
            for number in runs[run] where try isWanted(index.info(number)) {
                try Interrupt.check()
                try visit(number, reader, body)
            }
            others.withLock { $0 += reader.takeFindings() }
        }
        let end = try checkEnd(damage)
        return damage.findings + others.withLock { $0 } + end
    }

    private func visit(
        _ number: Int, _ reader: FrameReader, _ body: (EntryInfo, any EntryBytes) throws -> Void
    ) throws {
        let member: TarMember
        do {
            member = try reader.member(number)
        } catch let error as BackupError where error.code == .damaged {
            return try body(index.info(number), LostBytes(cause: error))
        }
        let bytes = TarEntryBytes(reader.cursor, member)
        try body(member.info, bytes)
        do {
            try bytes.leave()
        } catch let error as BackupError where error.code == .damaged {
            // In the list of damaged frames by now.
        }
    }

    /// Unpacks every frame once, which checks its checksum, and checks every header, on all cores: what proves soon
    /// after writing that the archive can be read. Digests are not looked at.
    func checkFrames() throws -> [Finding] {
        try checkNames()
        let damage = DamageList()
        try Parallel.forEach(table.count - 1, state: { try FrameReader(self, damage) }) { reader, frame in
            try Interrupt.check()
            do {
                try reader.source.load(frame)
                let range = table.unpackedRange(frame)
                for number in index.firstNumber(from: range.lowerBound)..<index.firstNumber(from: range.upperBound) {
                    _ = try reader.member(number)
                }
            } catch let error as BackupError where error.code == .damaged {
                // In the list of damaged frames by now.
            }
        }
        let end = try checkEnd(damage)
        return damage.findings + end
    }

    /// Members by the frames in which they begin: some frames make a run, so that few frames are unpacked twice.
    private var runs: [Range<Int>] {
        let runSize = Int64(8 * FrameWriter.frameSize)
        var runs: [Range<Int>] = []
        var start: Int64 = 0
        for frame in 0..<(table.count - 1) {
            let end = table.unpackedRange(frame).upperBound
            guard end - start >= runSize || frame == table.count - 2 else { continue }
            let members = index.firstNumber(from: start)..<index.firstNumber(from: end)
            if !members.isEmpty { runs.append(members) }
            start = end
        }
        return runs
    }

    /// Behind the last member there must be the end mark, and nothing else.
    private func checkEnd(_ damage: DamageList) throws -> [Finding] {
        let reader = try FrameReader(self, damage)
        do {
            try reader.cursor.restart(at: index.offset(index.count))
            guard try reader.cursor.next() == nil else { throw disagreement(file.path) }
        } catch let error as BackupError where error.code == .damaged {
            guard reader.source.failure != nil else { throw disagreement(file.path) }
        }
        return reader.takeFindings()
    }

    fileprivate func disagreement(_ path: String) -> BackupError {
        BackupError(
            .refused, "is not where the archive's list of members says it is", at: path,
            remedy: "unpack the archive with `tar` and look at it by hand")
    }

    /// One thread's way into the archive.
    private final class FrameReader {
        let archive: SeekableTar
        let source: FrameSource
        let cursor: TarCursor
        private var taken = 0

        init(_ archive: SeekableTar, _ damage: DamageList) throws {
            self.archive = archive
            source = try FrameSource(archive.file, archive.table, damage)
            cursor = TarCursor(source, archive: archive.file.path, limits: archive.limits)
        }

        /// Goes to a member and checks that the tar says of it what the index says, up to where the next one begins.
        func member(_ number: Int) throws -> TarMember {
            let expected = try archive.index.info(number)
            source.failure = nil
            do {
                try cursor.restart(at: archive.index.offset(number))
                if let member = try cursor.next(), member.info == expected, !member.isFolder,
                    member.info.path.utf8.elementsEqual(expected.path.utf8),
                    member.end == archive.index.offset(number + 1)
                {
                    return member
                }
            } catch let error as BackupError where error.code == .damaged {
                // A header that is wrong inside a sound frame was made so.
                if let failure = source.failure { throw failure }
            }
            throw archive.disagreement(expected.path)
        }

        func takeFindings() -> [Finding] {
            defer { taken = cursor.findings.count }
            return Array(cursor.findings[taken...])
        }
    }
}
