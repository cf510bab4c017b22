import Glibc

/// Where the password of a vault comes from. It is never an argument: those are there for all to see.
public enum PasswordSource: Sendable, Equatable {
    case file(String)
    /// A command of the shell, which prints it; run in that folder, else where this program is.
    case command(String, folder: String? = nil)
    case text(String)

    /// What the command line says, else our own variables, else the configuration of the vault that is meant, else what restic's
    /// variables say, which may be there for another vault.
    public static func find(
        file: String?, command: String?, configured: @autoclosure () throws -> PasswordSource? = nil,
        variable: (String) -> String?
    ) throws -> PasswordSource? {
        if file != nil, command != nil {
            throw BackupError(.usage, "--password-file and --password-command exclude each other")
        }
        if let file { return .file(file) }
        if let command { return .command(command) }
        func inEnvironment(_ prefix: String) -> PasswordSource? {
            if let file = variable("\(prefix)_PASSWORD_FILE") { return .file(file) }
            if let command = variable("\(prefix)_PASSWORD_COMMAND") { return .command(command) }
            return variable("\(prefix)_PASSWORD").map { .text($0) }
        }
        return try inEnvironment("BACKUP_TOOL") ?? configured() ?? inEnvironment("RESTIC")
    }

    /// As restic takes it: without the white space around it when it comes from a file or a command, else as it is.
    public func read() throws -> [UInt8] {
        switch self {
        case .text(let text): return Array(text.utf8)
        case .file(let path): return Self.trimmed(try Self.readFile(path))
        case .command(let command, let folder): return Self.trimmed(try Self.output(of: command, in: folder))
        }
    }

    /// Says what keeps a file from being of use. It is not opened, for it may be a pipe, whose password would then be gone; and of
    /// what else a password may come from nothing is known before.
    public func check() throws {
        guard case .file(let path) = self else { return }
        guard let status = try FileStatus.ofTarget(path) else {
            throw BackupError(.notFound, "there is no such password file", at: path, remedy: Self.makeOne)
        }
        if status.isDirectory { throw BackupError(.failed, "is a folder", at: path, remedy: Self.makeOne) }
        if !status.isRegular, !FileHandle.isHandedOver(path) {
            throw BackupError(.failed, "is a pipe or a device, not a file", at: path, remedy: Self.makeOne)
        }
        try Self.mustBePrivate(status, path)
        if status.isRegular, status.size == 0 {
            throw BackupError(.failed, "this password file is empty", at: path, remedy: Self.makeOne)
        }
        try FileHandle.checkReadable(path)
    }

    /// A pipe that the shell made is as private as the shell.
    private static func mustBePrivate(_ status: FileStatus, _ path: String) throws {
        guard !status.isRegular || status.mode & 0o077 == 0 else {
            throw BackupError(
                .denied, "others can read this password file", at: path, remedy: "run 'chmod 600' on it")
        }
    }

    private static let limit = 64 << 10
    /// Of a command that nobody can answer.
    private static let patience = 120.0
    private static let makeOne = "write the password into a file there, and run 'chmod 600' on it"

    /// The place of a vault as a file holds it, which restic takes from one as it takes a password.
    public static func repository(in file: String) throws -> String {
        let place = String(decoding: trimmed(try readFile(file, isSecret: false)), as: UTF8.self)
        guard !place.isEmpty, !place.contains("\0") else {
            throw BackupError(.usage, "holds no path of a vault", at: file)
        }
        return place
    }

    private static func readFile(_ path: String, isSecret: Bool = true) throws -> [UInt8] {
        let file: FileHandle
        do { file = try FileHandle.openForReadingOnce(path) } catch let error as BackupError where error.isVerdict {
            let what = isSecret ? "password" : "repository"
            throw BackupError(
                .failed, "the \(what) file \(error.message)", at: path,
                remedy: isSecret && error.code == .notFound ? Self.makeOne : error.remedy)
        }
        if isSecret { try mustBePrivate(file.status(), path) }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = try bytes.withUnsafeMutableBytes { try file.readNext(into: $0) }
        return Array(bytes[..<count])
    }

    private static func output(of command: String, in folder: String?) throws -> [UInt8] {
        let way = folder.map { "cd -- \(Subprocess.quoted($0)) || exit\n" } ?? ""
        let remedy = "run it by hand to see why; it must print the password and end with 0"
        do {
            let result = try Subprocess.output(ofShell: way + command, limit: limit, seconds: patience)
            guard result.status == 0 else {
                throw BackupError(.failed, "ended with \(result.status)")
            }
            return result.output
        } catch let error as BackupError where error.code != .interrupted {
            // The command may hold a secret, and messages travel.
            throw BackupError(.failed, "the password command \(error.message)", remedy: remedy)
        }
    }

    /// Without the mark that editors of Windows begin a file with, which also tells in which encoding it is.
    private static func decoded(_ bytes: [UInt8]) -> [UInt8] {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return Array(bytes.dropFirst(3)) }
        let isLittle = bytes.starts(with: [0xFF, 0xFE])
        guard isLittle || bytes.starts(with: [0xFE, 0xFF]) else { return bytes }
        let units = stride(from: 2, to: bytes.count - 1, by: 2).map { place in
            let pair = (UInt16(bytes[place]), UInt16(bytes[place + 1]))
            return isLittle ? pair.0 | pair.1 << 8 : pair.0 << 8 | pair.1
        }
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }

    private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        let bytes = decoded(bytes)
        func isWhite(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0D ~= byte }
        let start = bytes.firstIndex { !isWhite($0) } ?? bytes.endIndex
        let end = bytes.lastIndex { !isWhite($0) }.map { $0 + 1 } ?? start
        return Array(bytes[start..<end])
    }
}
