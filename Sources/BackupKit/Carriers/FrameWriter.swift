/// Packs a stream of bytes into zstd frames on all cores and writes them in order: the inside of a `.tar.zst`.
///
/// One thread fills buffers through `write`; the workers compress them; whoever finishes the frame that is next in line
/// writes it, and those behind it that are ready. What is in flight is bounded by the number of buffers.
final class FrameWriter {
    /// Large enough to compress well, small enough to read one file quickly and to spread over cores.
    static let frameSize = 4 << 20
    /// A member of this size has its frames for itself: a wrong bit costs it alone. Smaller ones compress better together.
    static let aloneSize: Int64 = 64 << 10
    private static let windowLog: Int32 = 22
    /// 12 buffers in and out are 100 MB.
    private static let buffersMax = 12
    /// A thread's stack and compressor.
    private static let threadMemory = 16 << 20
    /// For what fills the frames.
    private static let callerMemory = 32 << 20

    private let core: Core
    private var workers: [WorkerThread] = []
    private var current: Frame
    private(set) var position: Int64 = 0

    init(to file: FileHandle, level: Int, threads: Int) throws {
        let threads = max(1, min(threads, Self.buffersMax - 3))
        let frames = try (0..<(threads + 3)).map { _ in try Frame() }
        try RawMemory.mustHaveRoom(for: threads * Self.threadMemory + Self.callerMemory)
        core = Core(file: file, level: Int32(clamping: level), spare: Array(frames.dropFirst()))
        current = frames[0]
        let core = core
        workers = (0..<threads).compactMap { _ in WorkerThread { core.work() } }
        guard !workers.isEmpty else { throw BackupError(.failed, "no thread can be started for compression") }
    }

    deinit { stop() }

    private func stop() {
        core.close()
        for worker in workers { worker.join() }
        workers = []
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = min(rest.count, Self.frameSize - current.filled)
            UnsafeMutableRawBufferPointer(rebasing: current.input[current.filled...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            current.filled += count
            position += Int64(count)
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            if current.filled == Self.frameSize { current = try core.submit(current) }
        }
    }

    /// Ends the frame here, where the table has room for frames that are not full.
    func cut() throws {
        if current.filled > 0, core.hasRoomForShortFrames { current = try core.submit(current) }
    }

    /// Writes what is left, then the index (a frame that decoders skip) and the seek table.
    func finish(index: [UInt8]?) throws {
        if current.filled > 0 { current = try core.submit(current) }
        var table = try core.drain()
        stop()
        if let index {
            try index.withUnsafeBytes { try core.file.write($0) }
            table.append(packed: index.count, unpacked: 0)
        }
        try table.encoded().withUnsafeBytes { try core.file.write($0) }
    }

    /// One frame on its way.
    private final class Frame: @unchecked Sendable {
        private let memory: (input: RawMemory, output: RawMemory)
        var input: UnsafeMutableRawBufferPointer { memory.input.bytes }
        var output: UnsafeMutableRawBufferPointer { memory.output.bytes }
        var filled = 0
        var packed = 0

        init() throws {
            memory = (try RawMemory(frameSize), try RawMemory(ZstandardCompressor.bound(frameSize)))
        }
    }

    /// What the threads share; every property is guarded by `monitor`, and a frame belongs to who took it out.
    private final class Core: @unchecked Sendable {
        let file: FileHandle
        private let level: Int32
        private let monitor = Monitor()
        private var spare: [Frame]
        private var waiting: [(number: Int, frame: Frame)] = []
        private var ready: [Int: Frame] = [:]
        private var submitted = 0
        private var written = 0
        private var isWriting = false
        private var isClosed = false
        private var failure: (any Error)?
        private var table = FrameTable()

        init(file: FileHandle, level: Int32, spare: [Frame]) {
            self.file = file
            self.level = level
            self.spare = spare
        }

        var hasRoomForShortFrames: Bool { monitor.locked { submitted < FrameTable.countMax / 2 } }

        /// Hands a filled frame to the workers; returns an empty one.
        func submit(_ frame: Frame) throws -> Frame {
            try monitor.locked {
                waiting.append((submitted, frame))
                submitted += 1
                monitor.wakeAll()
                while spare.isEmpty && failure == nil { monitor.wait() }
                if let failure { throw failure }
                let next = spare.removeLast()
                next.filled = 0
                return next
            }
        }

        /// Waits until everything is written.
        func drain() throws -> FrameTable {
            try monitor.locked {
                while written < submitted && failure == nil { monitor.wait() }
                if let failure { throw failure }
                return table
            }
        }

        func close() {
            monitor.locked {
                isClosed = true
                monitor.wakeAll()
            }
        }

        func work() {
            do {
                let compressor = try ZstandardCompressor()
                while let (number, frame) = take() {
                    let source = UnsafeRawBufferPointer(rebasing: frame.input[..<frame.filled])
                    let effort = try effort(for: source, compressor, scratch: frame.output)
                    frame.packed = try compressor.compress(source, into: frame.output, effort)
                    try deliver(number, frame)
                }
            } catch {
                monitor.locked {
                    if failure == nil { failure = error }
                    monitor.wakeAll()
                }
            }
        }

        private func take() -> (Int, Frame)? {
            monitor.locked {
                while waiting.isEmpty && !isClosed && failure == nil { monitor.wait() }
                return isClosed || failure != nil ? nil : waiting.removeFirst()
            }
        }

        private func deliver(_ number: Int, _ frame: Frame) throws {
            let mayWrite = monitor.locked {
                ready[number] = frame
                if isWriting || ready[written] == nil { return false }
                isWriting = true
                return true
            }
            while mayWrite, let frame = nextToWrite() {
                try file.write(UnsafeRawBufferPointer(rebasing: frame.output[..<frame.packed]))
                monitor.locked {
                    table.append(packed: frame.packed, unpacked: frame.filled)
                    written += 1
                    spare.append(frame)
                    monitor.wakeAll()
                }
            }
        }

        private func nextToWrite() -> Frame? {
            monitor.locked {
                let frame = failure == nil ? ready.removeValue(forKey: written) : nil
                if frame == nil { isWriting = false }
                return frame
            }
        }

        /// Text deserves the level that was asked for; what hardly compresses is not worth its time. Eight samples, an
        /// eighth of the frame or less, tell which it is.
        private func effort(
            for source: UnsafeRawBufferPointer, _ compressor: ZstandardCompressor,
            scratch: UnsafeMutableRawBufferPointer
        ) throws -> ZstandardCompressor.Effort {
            guard level == 3, source.count >= FrameWriter.aloneSize else { return .level(level) }
            let sample = min(8 << 10, source.count / 64)
            let step = source.count / 8
            var packed = 0
            for number in 0..<8 {
                let piece = UnsafeRawBufferPointer(rebasing: source[(number * step)..<(number * step + sample)])
                packed += try compressor.compress(piece, into: scratch, .level(1), checksum: false)
            }
            return packed * 4 > 8 * sample * 3 ? .wideAndFast(windowLog: FrameWriter.windowLog) : .level(level)
        }
    }
}
