import BackupKit
import Glibc
import Synchronization
import TestSupport
import Testing

/// What the carrier tests share.

/// A file for an archive.
struct Piece: Equatable {
    var path: String
    var bytes: [UInt8]
    var modified: Int64 = 1_700_000_000

    var info: EntryInfo { EntryInfo(path: path, size: Int64(bytes.count), modified: modified) }
}

extension SeededGenerator {
    mutating func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: (count + 7) / 8 * 8)
        bytes.withUnsafeMutableBytes { buffer in
            for offset in stride(from: 0, to: buffer.count, by: 8) {
                buffer.storeBytes(of: next(), toByteOffset: offset, as: UInt64.self)
            }
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }
}

/// Runs `body` with the path of a folder that is removed afterwards.
func withScratch<Result>(_ body: (String) throws -> Result) throws -> Result {
    var template = Array("/tmp/backupkit-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw BackupError(.failed, "no scratch folder") }
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    // A folder that stays behind fails no test.
    defer { try? Directory.removeTree(path) }
    return try body(path)
}

func writeFile(_ path: String, _ bytes: [UInt8]) throws {
    unlink(path)
    try bytes.withUnsafeBytes { try FileHandle.create(path).write($0) }
}

func readFile(_ path: String) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try FileHandle.openForReading(path).forEachChunk { bytes += $0 }
    return bytes
}

/// Writes pieces in the given form.
func writeCarrier(
    _ path: String, _ format: CarrierFormat, _ pieces: [Piece], level: Int? = nil, threads: Int = 2
) throws {
    if format == .directory {
        try Directory.create(path)
        return try add(pieces, to: DirectoryWriter(RootDirectory(path)))
    }
    unlink(path)
    let file = try FileHandle.create(path)
    try add(pieces, to: ArchiveWriter(format: format, to: file, level: level, threads: threads))
}

func add(_ pieces: [Piece], to writer: any CarrierWriter) throws {
    for piece in pieces {
        try writer.add(piece.info) { sink in try piece.bytes.withUnsafeBytes { try sink($0) } }
    }
    try writer.finish()
}

/// What a visit found.
struct Visited {
    var pieces: [String: [UInt8]] = [:]
    var times: [String: Int64] = [:]
    var damaged: [String: String] = [:]
    var findings: [Finding] = []

    /// Nobody said that anything is wrong.
    var isClean: Bool { damaged.isEmpty && findings.isEmpty }
}

/// Reads everything; damage of single entries is noted and stepped over. Names count byte by byte.
func visitAll(_ reader: any CarrierReader) throws -> Visited {
    let state = Mutex(Visited())
    let findings = try reader.visit { info, bytes in
        var content: [UInt8] = []
        do {
            try bytes.forEachChunk { content += $0 }
            state.withLock {
                $0.pieces[info.path] = content
                $0.times[info.path] = info.modified
            }
        } catch let error as BackupError where error.code == .damaged {
            state.withLock { $0.damaged[info.path] = error.message }
        }
    }
    return state.withLock {
        $0.findings = findings
        return $0
    }
}

func visitAll(_ path: String, _ limits: ReadLimits = ReadLimits()) throws -> Visited {
    try visitAll(CarrierOpener.open(path, limits: limits))
}

func code(_ body: () throws -> Void) -> ErrorCode? {
    do {
        try body()
        return nil
    } catch {
        return (error as? BackupError)?.code ?? .failed
    }
}

/// Runs a shell command; its output with that of stderr, and its exit status.
func shell(_ command: String) throws -> (status: Int32, output: [UInt8]) {
    guard let pipe = popen("LC_ALL=C.UTF-8; export LC_ALL; { \(command)\n} 2>&1", "r") else {
        throw BackupError(.failed, "no shell")
    }
    var output: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        let count = fread(&buffer, 1, buffer.count, pipe)
        if count == 0 { break }
        output += buffer[..<count]
    }
    return (pclose(pipe) >> 8, output)
}

func hasTool(_ name: String) -> Bool {
    (try? shell("command -v \(name) >/dev/null").status) == 0
}
