/// Why a command could not do what it was asked. Every case maps to one exit code (`docs/exit-codes.md`).
public enum ErrorCode: String, Sendable, CaseIterable {
    case failed
    case incomplete
    case damaged
    case notFound
    case locked
    case wrongPassword
    case usage
    case temporary
    case destinationFull
    case interrupted
    case exists
    case refused
    /// This account has no permission. Of what it may not read nobody knows whether it is sound.
    case denied
}

/// An error as a person should read it: what happened, where, and what to do next.
public struct BackupError: Error, Sendable, Equatable {
    public let code: ErrorCode
    /// One sentence without a final full stop: "no such file", "line 12 is not JSON: unexpected ','".
    public let message: String
    /// The path, record or archive entry it is about.
    public let subject: String?
    /// What to do next: "choose another name, or replace it with --force".
    public let remedy: String?

    public init(_ code: ErrorCode, _ message: String, at subject: String? = nil, remedy: String? = nil) {
        self.code = code
        self.message = message
        self.subject = subject
        self.remedy = remedy
    }
}

extension BackupError {
    /// The system has no more memory, or whatever `ulimit` shows with that option. The bytes that were to be read may be sound.
    static func exhausted(_ message: String, ulimit option: String = "-v", at subject: String? = nil) -> BackupError {
        BackupError(
            .temporary, message, at: subject,
            remedy: "end other programs, or lift the limit ('ulimit \(option)' shows it), and run the command again")
    }

    /// Whether it says something of what was asked for. That somebody interrupted does not, and neither does a line that broke.
    var isVerdict: Bool { code != .interrupted && code != .temporary }
    /// Whether it says something of the bytes that were to be read. A missing permission does not.
    var isOfBytes: Bool { isVerdict && code != .denied }

    /// The same where the caller reads several backups, so that `BACKUP` in the remedy says nothing.
    func naming(backup path: String) -> BackupError {
        BackupError(
            code, message, at: subject, remedy: remedy.map { TypedCommand.naming(backup: path, in: $0) })
    }

    func advising(_ remedy: String) -> BackupError { BackupError(code, message, at: subject, remedy: remedy) }
}

extension BackupError: CustomStringConvertible {
    public var description: String {
        let place = subject.map { "\(printable($0)): " } ?? ""
        let next = remedy.map { "; \($0)" } ?? ""
        return place + printable(message) + next
    }
}

/// Foreign text made safe for a terminal: control characters, line separators and direction overrides are escaped.
public func printable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isUnprintable) else { return text }
    var safe = ""
    for scalar in text.unicodeScalars {
        if isUnprintable(scalar) {
            safe += "\\u{\(String(scalar.value, radix: 16))}"
        } else {
            safe.unicodeScalars.append(scalar)
        }
    }
    return safe
}

func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF, 0xFFFD: true
    default: false
    }
}

/// The first of many names, and how many more there are.
public func firstNames(_ names: [String], most: Int = 3) -> String {
    names.prefix(most).joined(separator: ", ") + (names.count > most ? " and \(names.count - most) more" : "")
}
