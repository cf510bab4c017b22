import BackupKit

/// How a run ends. The numbers are restic's where it has one; `docs/exit-codes.md` is the same table for people,
/// and a test compares the two.
struct ExitStatus: Sendable, Equatable {
    let code: Int32

    static let done = ExitStatus(code: 0)
    static let failed = ExitStatus(code: 1)
    static let incomplete = ExitStatus(code: 3)
    static let damaged = ExitStatus(code: 4)
    static let notFound = ExitStatus(code: 10)
    static let locked = ExitStatus(code: 11)
    static let wrongPassword = ExitStatus(code: 12)
    static let usage = ExitStatus(code: 64)
    static let temporary = ExitStatus(code: 75)
    static let interrupted = ExitStatus(code: 130)
    static let terminated = ExitStatus(code: 143)

    static let meanings: [(status: ExitStatus, meaning: String)] = [
        (.done, "Done, and nothing was left out"),
        (.failed, "Failed; the message says why"),
        (.incomplete, "Done, but something was left out or needs attention"),
        (.damaged, "Verification found damage"),
        (.notFound, "No such store, hub, archive or vault"),
        (.locked, "Another process holds the lock"),
        (.wrongPassword, "Wrong password or key"),
        (.usage, "The command line is wrong"),
        (.temporary, "A temporary failure; the same command may succeed later"),
        (.interrupted, "Interrupted (SIGINT); nothing is left half done"),
        (.terminated, "Terminated (SIGTERM); nothing is left half done"),
    ]

    /// `signal` is the one that was caught, or 0: a shell expects 128 and its number.
    init(_ code: ErrorCode, signal: Int32) {
        switch code {
        // A full destination, an existing target and a refusal need a person, like any failure;
        // "error" in the JSON form and the message tell them apart.
        case .failed, .destinationFull, .exists, .refused, .denied: self = .failed
        case .incomplete: self = .incomplete
        case .damaged: self = .damaged
        case .notFound: self = .notFound
        case .locked: self = .locked
        case .wrongPassword: self = .wrongPassword
        case .usage: self = .usage
        case .temporary: self = .temporary
        case .interrupted: self = signal > 0 ? ExitStatus(code: 128 + signal) : .interrupted
        }
    }

    /// How a monitoring plugin ends: 0 is fine, 1 a warning, 2 critical, 3 unknown.
    init(monitoring level: Int32) { self.init(code: level) }

    private init(code: Int32) {
        self.code = code
    }
}

/// The last words of a run that failed, always on standard error: two lines, or with `--json` one object.
///
///     backup-tool: library.tar.zst: already exists
///       choose another name, or replace it with --force
struct ExitError {
    let status: ExitStatus
    private let error: BackupError
    var subject: String? { error.subject }

    init(_ error: any Error, signal: Int32) {
        self.error =
            error as? BackupError ?? (error as? DamagedRow)?.problem ?? BackupError(.failed, String(describing: error))
        status = ExitStatus(self.error.code, signal: signal)
    }

    var json: JSONValue {
        [
            "message_type": "exit_error",
            "code": .int(Int(status.code)),
            "error": .string(error.code.rawValue),
            "message": .string(error.message),
            "subject": error.subject.map(JSONValue.string) ?? .null,
            "remedy": error.remedy.map(JSONValue.string) ?? .null,
        ]
    }

    func text(_ style: Style) -> String { error.text(after: style.error("backup-tool:")) }
}

extension BackupError {
    /// What happened to what, and below it what to do next.
    func text(after mark: String) -> String {
        let first = "\(mark) \(subject.map { printable($0) + ": " } ?? "")\(printable(message))"
        return remedy.map { "\(first)\n  \(printable($0))" } ?? first
    }
}
