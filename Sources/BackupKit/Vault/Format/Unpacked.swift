/// How snapshots, indexes and locks are stored before they are sealed: `02 ‖ one zstd frame`, or bare JSON, as version 1
/// has it. https://restic.readthedocs.io/en/stable/100_references.html
public enum Unpacked {
    /// What a file may unpack to; more is refused.
    public enum Cap {
        public static let index = 256 << 20
        public static let snapshot = 8 << 20
        public static let lock = 64 << 10
    }

    private static let compressedMark: UInt8 = 2

    /// The JSON inside the bytes of an opened file.
    public static func decode(_ bytes: UnsafeRawBufferPointer, cap: Int) throws -> [UInt8] {
        switch bytes.first {
        case UInt8(ascii: "["), UInt8(ascii: "{"):
            guard bytes.count <= cap else { throw tooLarge(cap) }
            return [UInt8](bytes)
        case compressedMark: return try unpack(UnsafeRawBufferPointer(rebasing: bytes[1...]), cap: cap)
        case nil: throw BackupError(.damaged, "is empty")
        case let mark?: throw BackupError(.damaged, "is stored in an unknown way (\(mark))")
        }
    }

    private static func unpack(_ frame: UnsafeRawBufferPointer, cap: Int) throws -> [UInt8] {
        // The byte behind the magic tells in its two low bits whether a dictionary is needed.
        guard frame.count > 5, frame.starts(with: ZstandardStream.magic), frame[4] & 3 == 0 else {
            throw BackupError(.damaged, "does not hold a usable zstd frame")
        }
        let stream = try ZstandardStream()
        var out: [UInt8] = []
        var rest = frame
        while true {
            let room = min(max(64 << 10, out.count), cap - out.count) + 1
            var step = UnpackingStep(taken: 0, produced: 0)
            let start = out.count
            out.reserveCapacity(start + room)
            out += [UInt8](unsafeUninitializedCapacity: room) { buffer, used in
                step = stream.step(rest, into: UnsafeMutableRawBufferPointer(buffer))
                used = step.produced
            }
            if let failure = step.failure { throw BackupError(.damaged, "cannot be unpacked: \(failure)") }
            guard out.count <= cap else { throw tooLarge(cap) }
            rest = UnsafeRawBufferPointer(rebasing: rest[step.taken...])
            if stream.isAtEnd { break }
            guard step.produced > 0 || step.taken > 0, !(rest.isEmpty && step.produced < room) else {
                throw BackupError(.damaged, "cannot be unpacked: it ends early")
            }
        }
        guard rest.isEmpty else { throw BackupError(.damaged, "has bytes behind its zstd frame") }
        return out
    }

    private static func tooLarge(_ cap: Int) -> BackupError {
        BackupError(.refused, "unpacks to more than \(cap) bytes")
    }

    /// The bytes to be sealed. Version 1 of the format has no compression.
    public static func encode(_ json: [UInt8], version: Int = 2) throws -> [UInt8] {
        guard version >= 2 else { return json }
        let compressor = try ZstandardCompressor()
        var out: [UInt8] = [compressedMark]
        let frame = try [UInt8](unsafeUninitializedCapacity: ZstandardCompressor.bound(json.count)) { buffer, used in
            used = try json.withUnsafeBytes {
                try compressor.compress($0, into: UnsafeMutableRawBufferPointer(buffer), .level(3), checksum: false)
            }
        }
        out += frame
        return out
    }
}
