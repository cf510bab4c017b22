import CSystem
import Glibc

/// Cuts a stream of bytes into lines. Memory is bounded by the longest line that is allowed; a longer one is skipped and
/// reported.
public struct LineReader {
    static let tooLong = "is longer than a line may be; 'limits.max-line-bytes' in a configuration allows more"

    /// One line without its end, and without the mark before a file's text. `bytes` is nil when it was longer than the limit.
    public struct Line {
        public let number: Int
        public let bytes: UnsafeRawBufferPointer?
    }

    private let limit: Int
    private var rest: [UInt8] = []
    private var number = 0
    private var skipping = false

    public init(limit: Int) { self.limit = limit }

    public mutating func feed(_ chunk: UnsafeRawBufferPointer, _ body: (Line) throws -> Void) rethrows {
        var start = 0
        while let end = newline(in: chunk, from: start) {
            try take(UnsafeRawBufferPointer(rebasing: chunk[start..<end]), body)
            start = end + 1
        }
        guard start < chunk.count, !skipping else { return }
        if rest.count + chunk.count - start > limit {
            skipping = true
            rest = []
        } else {
            rest += chunk[start...]
        }
    }

    /// The last line may have no end.
    public mutating func finish(_ body: (Line) throws -> Void) rethrows {
        if !rest.isEmpty || skipping { try take(UnsafeRawBufferPointer(start: nil, count: 0), body) }
    }

    private func newline(in chunk: UnsafeRawBufferPointer, from start: Int) -> Int? {
        guard start < chunk.count, let base = chunk.baseAddress else { return nil }
        return memchr(base + start, 0x0A, chunk.count - start).map { base.distance(to: $0) }
    }

    private mutating func take(_ piece: UnsafeRawBufferPointer, _ body: (Line) throws -> Void) rethrows {
        number += 1
        defer {
            rest.removeAll(keepingCapacity: true)
            skipping = false
        }
        if skipping || rest.count + piece.count > limit { return try body(Line(number: number, bytes: nil)) }
        if rest.isEmpty { return try body(Line(number: number, bytes: bare(piece))) }
        rest += piece
        try rest.withUnsafeBytes { try body(Line(number: number, bytes: bare($0))) }
    }

    private func bare(_ line: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = number == 1 && line.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        return UnsafeRawBufferPointer(rebasing: line[start..<(line.last == 0x0D ? line.count - 1 : line.count)])
    }
}

/// Whether the text occurs in the bytes.
func contains(_ text: StaticString, in bytes: UnsafeRawBufferPointer) -> Bool {
    guard let base = bytes.baseAddress else { return false }
    return csystem_contains(base, bytes.count, text.utf8Start, text.utf8CodeUnitCount) != 0
}

extension FileHandle {
    /// Calls `body` with each line of the file.
    func forEachLine(limit: Int, _ body: (LineReader.Line) throws -> Void) throws {
        var reader = LineReader(limit: limit)
        try forEachChunk { try reader.feed($0, body) }
        try reader.finish(body)
    }
}
