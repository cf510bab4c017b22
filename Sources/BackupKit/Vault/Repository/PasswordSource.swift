import Glibc

/// Where the password of a vault comes from. It is never an argument: those are there for all to see.
public enum PasswordSource: Sendable, Equatable {
    case file(String)
    /// A command of the shell, which prints it.
    case command(String)
    case text(String)

    /// What the command line says, else our own variables, else those of restic.
    public static func find(file: String?, command: String?, variable: (String) -> String?) throws -> PasswordSource? {
        if file != nil, command != nil {
            throw BackupError(.usage, "--password-file and --password-command exclude each other")
        }
        if let file { return .file(file) }
        if let command { return .command(command) }
        for prefix in ["BACKUP_TOOL", "RESTIC"] {
            if let file = variable("\(prefix)_PASSWORD_FILE") { return .file(file) }
            if let command = variable("\(prefix)_PASSWORD_COMMAND") { return .command(command) }
            if let text = variable("\(prefix)_PASSWORD") { return .text(text) }
        }
        return nil
    }

    /// As restic takes it: without the white space around it when it comes from a file or a command, else as it is.
    public func read() throws -> [UInt8] {
        let (password, place): ([UInt8], String?)
        switch self {
        case .text(let text): (password, place) = (Array(text.utf8), nil)
        case .file(let path): (password, place) = (Self.trimmed(try Self.readFile(path)), path)
        case .command(let command): (password, place) = (Self.trimmed(try Self.output(of: command)), command)
        }
        // restic opens nothing with it either.
        guard !password.isEmpty else { throw Self.isEmpty(at: place) }
        return password
    }

    static func isEmpty(at place: String? = nil) -> BackupError {
        BackupError(
            .usage, "the password is empty", at: place, remedy: "give one; nothing protects a vault but it")
    }

    /// Says what keeps a file from being read, without reading it; of what else a password may come from nothing is known
    /// before.
    public func check() throws {
        if case .file(let path) = self { _ = try Self.openFile(path) }
    }

    private static let limit = 64 << 10

    private static func readFile(_ path: String) throws -> [UInt8] {
        let file = try openFile(path)
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = try bytes.withUnsafeMutableBytes { try file.readNext(into: $0) }
        return Array(bytes[..<count])
    }

    private static func openFile(_ path: String) throws -> FileHandle {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else {
            let failure = BackupError.fromErrno("the password cannot be read", at: path)
            throw BackupError(.failed, failure.message, at: path)
        }
        let file = FileHandle(owning: descriptor, path: path)
        let status = try file.status()
        // A pipe that the shell made is as private as the shell.
        guard !status.isRegular || status.mode & 0o077 == 0 else {
            throw BackupError(
                .refused, "others can read this password file", at: path, remedy: "run 'chmod 600' on it")
        }
        return file
    }

    private static func output(of command: String) throws -> [UInt8] {
        guard let stream = popen(command, "re") else {
            throw BackupError.fromErrno("the password command cannot be run", at: command)
        }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = fread(&bytes, 1, bytes.count, stream)
        let status = pclose(stream)
        guard status == 0 else {
            throw BackupError(.failed, "the password command failed", at: command)
        }
        return Array(bytes[..<count])
    }

    private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        // What some editors of Windows begin a file with.
        let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        func isWhite(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0D ~= byte }
        let start = bytes.firstIndex { !isWhite($0) } ?? bytes.endIndex
        let end = bytes.lastIndex { !isWhite($0) }.map { $0 + 1 } ?? start
        return Array(bytes[start..<end])
    }
}
