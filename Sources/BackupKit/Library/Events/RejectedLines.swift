/// The lines that an import rejected, byte for byte.
final class RejectedLines {
    static let remedy =
        "correct these lines, and import the file again; 'backup-tool events import PATH --rejected FILE' writes them to FILE"

    private let file: FileHandle

    init(_ file: FileHandle) { self.file = file }

    /// `line` is nil when it is longer than a line may be.
    func append(_ line: UnsafeRawBufferPointer?, at offset: Int64, of log: LineWindows) throws {
        if let line {
            try file.write(line)
        } else {
            try log.forEachPiece(ofLineAt: offset) { try file.write($0) }
        }
        try [UInt8(ascii: "\n")].withUnsafeBytes { try file.write($0) }
    }
}
