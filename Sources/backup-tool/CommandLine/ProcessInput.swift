import BackupKit
// `environ` is a variable to the compiler. Nothing here or below changes the environment.
@preconcurrency import Glibc

/// What the process was started with.
enum ProcessInput {
    /// The words after the tool's name. Swift's own list repairs what is not UTF-8, and a repaired path is
    /// another path, so such words are refused here. It is also empty where a preloaded library has called `setenv`
    /// before: Swift looks for the words in front of the environment. So the kernel is asked.
    static func arguments() throws -> [String] {
        try words().dropFirst().enumerated().map { index, word in
            if let text = String(validating: word, as: UTF8.self) { return text }
            throw BackupError(
                .usage, "argument \(index + 1) is not UTF-8: '\(printable(String(decoding: word, as: UTF8.self)))'",
                remedy: "rename it")
        }
    }

    private static func words() -> [[UInt8]] {
        if let file = try? FileHandle.openForReading("/proc/self/cmdline") {
            var bytes: [UInt8] = []
            if (try? file.forEachChunk(size: 1 << 16) { bytes += $0 }) != nil, !bytes.isEmpty {
                return bytes.dropLast().split(separator: 0, omittingEmptySubsequences: false).map(Array.init)
            }
        }
        return (0..<Int(CommandLine.argc)).compactMap { CommandLine.unsafeArgv[$0] }.map { word in
            Array(UnsafeRawBufferPointer(start: word, count: strlen(word)))
        }
    }

    static func environment() -> Environment {
        var variables: [String: String] = [:]
        var next = environ
        while let entry = next.pointee {
            next = next.advanced(by: 1)
            let text = String(cString: entry)
            guard let equals = text.firstIndex(of: "=") else { continue }
            let name = String(text[..<equals])
            // The first of two counts, as for getenv.
            if variables[name] == nil { variables[name] = String(text[text.index(after: equals)...]) }
        }
        return Environment(variables)
    }
}

/// The bytes of a file that is expected to be small, or nil when there is none.
func readSmallFile(_ path: String) throws -> [UInt8]? {
    let file: FileHandle
    do { file = try FileHandle.openForReadingOnce(path) } catch let error as BackupError where error.code == .notFound {
        return nil
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    // One byte over what TOML.read accepts is enough for it to refuse a file that does not end.
    while bytes.count <= TOML.maximumBytes {
        let count = try buffer.withUnsafeMutableBytes { try file.readNext(into: $0) }
        bytes += buffer[..<count]
        if count < buffer.count { break }
    }
    return bytes
}
