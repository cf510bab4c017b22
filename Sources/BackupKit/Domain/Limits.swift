/// What CloudKit takes, and what we take from strangers.
public enum CloudLimits {
    /// "250 MB": 250,000,000 bytes; exactly that still passes.
    public static let assetBytes: Int64 = 250_000_000
    public static let recordBytes = 1_000_000
}

/// How much a foreign archive may ask of us before we stop: the guard against decompression bombs.
public struct ReadLimits: Sendable, Equatable {
    public var entryBytes: Int64 = 1 << 40
    public var totalBytes: Int64 = 1 << 42
    public var entries = 1_500_000
    /// Unpacked bytes per packed byte, asked once more than `ratioGrace` bytes have come out.
    public var ratio: Int64 = 250
    public var ratioGrace: Int64 = 1 << 30
    /// The longest line of a JSONL file, and the largest JSON document held in memory.
    public var lineBytes = 64 << 20
    /// Leave out what is no plain file in a folder, and name it, instead of refusing all of the folder.
    public var leavesOutOddFiles = false

    public init() {}

    /// Throws `.refused` when `unpacked` bytes are more than so many packed ones honestly become.
    func checkRatio(unpacked: Int64, packed: Int64, at path: String) throws {
        guard unpacked > ratioGrace, unpacked / ratio > packed else { return }
        throw BackupError(
            .refused, "unpacks to more than \(ratio) times its size", at: path,
            remedy: "an archive that does is most likely made to fill the disk")
    }
}
