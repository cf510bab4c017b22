import Glibc

/// The lines of a large file in windows, so that several threads can read it at once. A line belongs to the window in
/// which it begins.
struct LineWindows: Sendable {
    static let usualBytes: Int64 = 2 << 20

    let windowBytes: Int64
    private let file: FileHandle
    private let limit: Int
    private let before: FileStatus
    var path: String { file.path }
    var bytes: Int64 { before.size }
    let count: Int

    /// Longer lines than `limit` are passed on as nil.
    init(_ path: String, limit: Int, windowBytes: Int64 = usualBytes) throws {
        self.windowBytes = windowBytes
        file = try FileHandle.openText(path)
        self.limit = limit
        before = try file.status()
        count = Int((before.size + windowBytes - 1) / windowBytes)
    }

    /// Throws when the file has changed since it was opened: what was found in it then may be elsewhere now.
    func checkUnchanged() throws {
        let now = try file.status()
        guard now.size == before.size, now.modifiedNanoseconds == before.modifiedNanoseconds else {
            throw BackupError(.temporary, "changed while it was being read", at: path, remedy: "run the command again")
        }
    }

    /// Calls `body` with each line of a window, without its end and without a byte order mark, and with where it begins;
    /// `LineParser.padding` bytes behind it can be read. `buffer` serves one thread.
    func forEachLine(
        of window: Int, in buffer: inout [UInt8], _ body: (UnsafeRawBufferPointer?, _ offset: Int64) throws -> Void
    ) throws {
        // The byte before tells whether a line begins where the window does.
        let start = Int64(window) * windowBytes
        let end = min(start + windowBytes, before.size)
        let from = max(0, start - 1)
        var filled = try fill(&buffer, 0, from: from, count: Int(end - from))
        var line = 0
        if start > 0 {
            guard let newline = Self.newline(in: buffer, 0..<filled) else { return }
            line = newline + 1
        } else if buffer.starts(with: [0xEF, 0xBB, 0xBF]) {
            line = 3
        }
        while from + Int64(line) < end {
            var newline = Self.newline(in: buffer, line..<filled)
            while newline == nil, filled - line <= limit, from + Int64(filled) < before.size {
                let more = try fill(&buffer, filled, from: from + Int64(filled), count: max(1 << 16, filled - line))
                newline = Self.newline(in: buffer, filled..<filled + more)
                filled += more
            }
            let stop = newline ?? filled
            if stop - line > limit {
                try body(nil, from + Int64(line))
                // A line that long ends in another window, which begins by looking for its end.
                guard let newline else { return }
                line = newline + 1
                continue
            }
            try buffer.withUnsafeBytes { bytes in
                var text = UnsafeRawBufferPointer(rebasing: bytes[line..<stop])
                if text.last == 0x0D { text = UnsafeRawBufferPointer(rebasing: text.dropLast()) }
                try body(text, from + Int64(line))
            }
            line = stop + 1
        }
    }

    /// Hands over, piece by piece, the line that begins there, without its end: also one that is too long for a buffer.
    func forEachPiece(ofLineAt offset: Int64, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var buffer: [UInt8] = []
        var offset = offset
        while offset < before.size {
            try Interrupt.check()
            let count = try fill(&buffer, 0, from: offset, count: 1 << 18)
            let newline = Self.newline(in: buffer, 0..<count)
            try buffer.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<(newline ?? count)])) }
            if newline != nil { return }
            offset += Int64(count)
        }
    }

    /// Reads to `place` of the buffer and returns how much there was.
    private func fill(_ buffer: inout [UInt8], _ place: Int, from offset: Int64, count: Int) throws -> Int {
        let count = Int(min(Int64(count), before.size - offset))
        let needed = place + count + LineParser.padding
        if buffer.count < needed { buffer += [UInt8](repeating: 0, count: needed - buffer.count) }
        let read = try buffer.withUnsafeMutableBytes {
            try file.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[place..<place + count]), at: offset)
        }
        guard read == count else {
            throw BackupError(.temporary, "became shorter while it was being read", at: path)
        }
        return count
    }

    private static func newline(in buffer: [UInt8], _ range: Range<Int>) -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, !range.isEmpty else { return nil }
            return memchr(base + range.lowerBound, 0x0A, range.count).map { base.distance(to: $0) }
        }
    }
}
