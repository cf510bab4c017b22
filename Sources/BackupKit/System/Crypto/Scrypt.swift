import CCrypto
import CSystem
import Glibc
import Synchronization

/// What it costs to make a key of a password.
public struct ScryptCost: Sendable, Equatable {
    public let n: UInt64
    public let r: UInt64
    public let p: UInt64

    /// What new keys get, as restic's own: half a second and 32 MiB for somebody who tries passwords one by one.
    public static let usual = ScryptCost(n: 1 << 15, r: 8, p: 5)

    public init(n: UInt64, r: UInt64, p: UInt64) {
        self.n = n
        self.r = r
        self.p = p
    }

    /// The cost stands in a file that anybody may have written, and is paid before its authentication code can be
    /// looked at: what asks for more memory or time than any honest key is refused. Nil if it is fine.
    public var refusal: String? {
        guard n > 1, n & (n - 1) == 0 else { return "N is no power of two" }
        guard r > 0, r <= 1 << 16, p > 0, p <= 64, n <= 1 << 26 else { return "its cost is out of all bounds" }
        guard 128 * n * r <= 512 << 20 else { return "it asks for more than 512 MiB of memory" }
        guard work <= Self.mostWork else {
            return "it asks for more than \(Self.mostWork / Self.usual.work) times the usual work"
        }
        return nil
    }

    /// What time goes by; what `refusal` refused before is the most there is.
    var work: UInt64 { n.times(clamped: r).times(clamped: p) }

    /// Of one key: some seconds.
    private static let mostWork: UInt64 = 1 << 25

    /// What may be spent on all keys that are tried for one password: twenty of twice the usual cost. Whoever can write to
    /// the vault can add keys that cost much.
    struct Budget {
        private var left: UInt64 = 1 << 26

        /// Why a key is not tried, or nil when its cost was taken off.
        mutating func refusal(of cost: ScryptCost) -> String? {
            if let refusal = cost.refusal { return refusal }
            guard cost.work <= left else { return "it and the keys before it ask for too much work" }
            left -= cost.work
            return nil
        }
    }

    /// 64 bytes.
    public func derive(password: [UInt8], salt: [UInt8]) throws -> [UInt8] {
        if let refusal { throw BackupError(.refused, "the key is refused: \(refusal)") }
        // Without the optimizer ours would take half a minute; the tests compare the two.
        guard isOptimized else { return try deriveWithLibcrypto(password: password, salt: salt) }
        return try Scrypt.derive(password: password, salt: salt, self, count: 64)
    }

    func deriveWithLibcrypto(password: [UInt8], salt: [UInt8]) throws -> [UInt8] {
        var key = [UInt8](repeating: 0, count: 64)
        let status = password.withUnsafeBytes { password in
            EVP_PBE_scrypt(
                password.baseAddress?.assumingMemoryBound(to: CChar.self), password.count, salt, salt.count,
                n, r, p, 1 << 30, &key, key.count)
        }
        guard status == 1 else { throw BackupError(.failed, "the key cannot be derived: libcrypto refuses") }
        return key
    }
}

/// scrypt, which makes a key of a password slowly. https://www.rfc-editor.org/rfc/rfc7914
///
/// Of our own, because libcrypto mixes one lane after the other: with all cores, and two lanes on one of them, a vault
/// opens in a quarter of the time, while whoever guesses passwords has all cores busy anyway.
enum Scrypt {
    /// The word of a block that each place holds: see `csystem_scrypt.h`.
    private static let diagonals = [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11]

    /// Whether this processor has instructions that save a tenth of the time.
    static let canTurn = csystem_scrypt_can_turn() != 0

    static func derive(
        password: [UInt8], salt: [UInt8], _ cost: ScryptCost, count: Int, cores: Int = Parallel.cores,
        turning: Bool = canTurn
    ) throws -> [UInt8] {
        let (r, p) = (Int(cost.r), Int(cost.p))
        let laneBytes = 128 * r
        let start = try pbkdf2(password, salt, laneBytes * p)
        // Each lane at once needs memory of its own, which is no matter for any cost that people use.
        let isDear = laneBytes * Int(cost.n) > 64 << 20
        let lanes = Mutex(LaneQueue(count: p))
        try Parallel.forEach(
            p, workers: isDear ? 1 : cores,
            state: {
                // Two on one core take a sixth longer than one. Not on every core: memory is for others, too.
                let isFirst = lanes.withLock { $0.isFirstWorker() }
                return try Tables(
                    isFirst && !isDear && p > cores ? 2 : 1, rowBytes: laneBytes, rows: Int(cost.n))
            }
        ) { tables, _ in
            let taken = lanes.withLock { $0.take(atMost: tables.capacity) }
            if taken.isEmpty { return }
            let mixed = try tables.mix(taken.map { start[$0 * laneBytes..<($0 + 1) * laneBytes] }, turning)
            lanes.withLock { $0.put(mixed, at: taken) }
        }
        return try pbkdf2(password, lanes.withLock { $0.mixed.flatMap { $0 } }, count)
    }

    /// Lanes that wait, and what became of them.
    private struct LaneQueue {
        private var workers = 0
        private var next = 0
        private(set) var mixed: [[UInt8]]

        init(count: Int) { mixed = Array(repeating: [], count: count) }

        mutating func isFirstWorker() -> Bool {
            workers += 1
            return workers == 1
        }

        mutating func take(atMost count: Int) -> Range<Int> {
            defer { next = min(next + count, mixed.count) }
            return next..<min(next + count, mixed.count)
        }

        mutating func put(_ results: [[UInt8]], at lanes: Range<Int>) { mixed.replaceSubrange(lanes, with: results) }
    }

    private static func pbkdf2(_ password: [UInt8], _ salt: [UInt8], _ count: Int) throws -> [UInt8] {
        var key = [UInt8](repeating: 0, count: count)
        let status = password.withUnsafeBytes { password in
            PKCS5_PBKDF2_HMAC(
                password.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(password.count), salt,
                Int32(salt.count), 1, EVP_sha256(), Int32(count), &key)
        }
        guard status == 1 else { throw BackupError(.failed, "the key cannot be derived: libcrypto refuses") }
        return key
    }

    /// What one core works with: tables for so many lanes at once.
    private final class Tables {
        let capacity: Int
        private let rowBytes: Int
        private let rows: Int
        /// For each lane the rows, and two more for the state and the one after it.
        private let memory: RawMemory

        init(_ capacity: Int, rowBytes: Int, rows: Int) throws {
            self.capacity = capacity
            self.rowBytes = rowBytes
            self.rows = rows
            memory = try RawMemory(rowBytes * (rows + 2) * capacity)
        }

        private func row(_ number: Int, of lane: Int) -> UnsafeMutableRawBufferPointer {
            let start = (lane * (rows + 2) + number) * rowBytes
            return UnsafeMutableRawBufferPointer(rebasing: memory.bytes[start..<start + rowBytes])
        }

        /// scryptROMix: fills a table with what follows from the lane, then goes through it in an order that only the
        /// lane knows.
        func mix(_ lanes: [ArraySlice<UInt8>], _ turning: Bool) throws -> [[UInt8]] {
            let (count, r) = (Int32(lanes.count), rowBytes / 128)
            for (number, lane) in lanes.enumerated() { Scrypt.load(lane, row(0, of: number)) }
            for work in [csystem_scrypt_fill, csystem_scrypt_walk] {
                for step in stride(from: 0, to: rows, by: 4096) {
                    try Interrupt.check()
                    work(memory.start, count, turning ? 1 : 0, r, rows, step, min(step + 4096, rows))
                }
            }
            // What follows the last row is the state. There is an even number of steps, so it ends where it began.
            return lanes.indices.map { Scrypt.bytes(of: UnsafeRawBufferPointer(row(rows, of: $0))) }
        }
    }

    private static func load(_ lane: ArraySlice<UInt8>, _ row: UnsafeMutableRawBufferPointer) {
        lane.withUnsafeBytes { bytes in
            for place in 0..<bytes.count / 4 {
                let value = bytes.loadUnaligned(fromByteOffset: 4 * word(at: place), as: UInt32.self)
                row.storeBytes(of: UInt32(littleEndian: value), toByteOffset: 4 * place, as: UInt32.self)
            }
        }
    }

    private static func bytes(of row: UnsafeRawBufferPointer) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: row.count)
        bytes.withUnsafeMutableBytes { bytes in
            for place in 0..<row.count / 4 {
                let value = row.load(fromByteOffset: 4 * place, as: UInt32.self).littleEndian
                bytes.storeBytes(of: value, toByteOffset: 4 * word(at: place), as: UInt32.self)
            }
        }
        return bytes
    }

    /// The number of the word that stands at a place.
    private static func word(at place: Int) -> Int { place & ~15 | diagonals[place & 15] }
}
