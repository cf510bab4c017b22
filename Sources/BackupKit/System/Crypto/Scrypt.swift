import CCrypto
import CSystem
import Glibc

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
        return nil
    }

    /// 64 bytes.
    public func derive(password: [UInt8], salt: [UInt8]) throws -> [UInt8] {
        if let refusal { throw BackupError(.refused, "the key is refused: \(refusal)") }
        #if DEBUG
            // Without the optimizer ours would take half a minute; the tests compare the two.
            return try deriveWithLibcrypto(password: password, salt: salt)
        #else
            return try Scrypt.derive(password: password, salt: salt, self, count: 64)
        #endif
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
/// Of our own, because libcrypto mixes one lane after the other: with one on each core a vault opens in a third of the
/// time, while whoever guesses passwords has all cores busy anyway.
enum Scrypt {
    /// The word of a block that each place holds: see `csystem_scrypt_mix`.
    private static let diagonals = [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11]

    static func derive(password: [UInt8], salt: [UInt8], _ cost: ScryptCost, count: Int) throws -> [UInt8] {
        let (r, p) = (Int(cost.r), Int(cost.p))
        let laneBytes = 128 * r
        let start = try pbkdf2(password, salt, laneBytes * p)
        // Two lanes at once need twice the memory, which is no matter for any cost that people use.
        let workers = laneBytes * Int(cost.n) > 64 << 20 ? 1 : Parallel.cores
        let lanes = try Parallel.map(
            p, workers: workers, state: { try Table(rowBytes: laneBytes, rows: Int(cost.n)) }
        ) { table, lane in
            try table.mix(start[lane * laneBytes..<(lane + 1) * laneBytes])
        }
        return try pbkdf2(password, lanes.flatMap { $0 }, count)
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

    /// What one core works with, lane after lane.
    private final class Table {
        private let rowBytes: Int
        private let rows: Int
        /// The rows, and two more for the state and the one after it. Not from the heap, which keeps what it has got.
        private let memory: UnsafeMutableRawPointer
        private let count: Int

        init(rowBytes: Int, rows: Int) throws {
            self.rowBytes = rowBytes
            self.rows = rows
            count = rowBytes * (rows + 2)
            guard let memory = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                memory != MAP_FAILED
            else { throw BackupError(.failed, "there is no memory to derive the key in") }
            self.memory = memory
            // Where the system has them, large pages: it is read all over the place. A wish, and nothing if it is not granted.
            madvise(memory, count, MADV_HUGEPAGE)
        }

        deinit { munmap(memory, count) }

        private func row(_ number: Int) -> UnsafeMutableRawPointer { memory + number * rowBytes }

        /// scryptROMix: fills a table with what follows from the lane, then goes through it in an order that only the
        /// lane knows.
        func mix(_ lane: ArraySlice<UInt8>) throws -> [UInt8] {
            let r = rowBytes / 128
            Scrypt.load(lane, memory)
            for step in 0..<rows {
                if step & 4095 == 0 { try Interrupt.check() }
                csystem_scrypt_mix(row(step), nil, row(step + 1), r)
            }
            // What follows the last row is the state. There is an even number of steps, so it ends where it began.
            let (state, next) = (row(rows), row(rows + 1))
            for step in 0..<rows {
                if step & 4095 == 0 { try Interrupt.check() }
                let (from, to) = step & 1 == 0 ? (state, next) : (next, state)
                // The first word of the last block tells where to look.
                let place = Int(from.load(fromByteOffset: rowBytes - 64, as: UInt32.self)) & (rows - 1)
                csystem_scrypt_mix(from, row(place), to, r)
            }
            return Scrypt.bytes(of: UnsafeRawBufferPointer(start: state, count: rowBytes))
        }
    }

    private static func load(_ lane: ArraySlice<UInt8>, _ row: UnsafeMutableRawPointer) {
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
