import BackupKit
// `environ` is a variable to the compiler. Nothing here or below changes the environment.
@preconcurrency import Glibc

/// What the process was started with.
enum ProcessInput {
    /// The words after the tool's name. Swift's own list repairs what is not UTF-8, and a repaired path is
    /// another path, so such words are refused here.
    static func arguments() throws -> [String] {
        try (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            guard let word = CommandLine.unsafeArgv[index] else { return nil }
            if let text = String(validatingCString: word) { return text }
            throw BackupError(
                .usage, "argument \(index) is not UTF-8: '\(printable(String(cString: word)))'",
                remedy: "name its folder instead, or rename it")
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
