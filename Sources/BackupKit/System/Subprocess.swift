import CSystem
// `environ` is a variable to the compiler. Nothing here changes the environment.
@preconcurrency import Glibc

/// Runs another program to its end.
public enum Subprocess {
    public struct Result: Sendable {
        /// The exit code, or 128 and the number of the signal that ended it.
        public let status: Int32
        public let output: [UInt8]
        public let errors: String

        public var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// A word as sh takes it, whatever is in it.
    public static func quoted(_ word: String) -> String { "'" + word.replacing("'", with: "'\\''") + "'" }

    /// `words` are the program, looked for on the PATH, and its arguments. Both of its streams are read while it runs.
    /// Throws `.notFound` when there is no such program. A program that says more than `limit` bytes is not read further.
    public static func run(_ words: [String], input: [UInt8] = [], limit: Int = 16 << 20) throws -> Result {
        let stdin = try Pipe()
        let stdout = try Pipe()
        let stderr = try Pipe()
        let child = try spawn(words, [(stdin.reading, 0), (stdout.writing, 1), (stderr.writing, 2)])
        stdin.closeReading()
        stdout.closeWriting()
        stderr.closeWriting()
        let said = exchange(input, stdin, stdout, stderr, limit)
        let errors = String(decoding: said.errors, as: UTF8.self)
        return Result(status: wait(for: child), output: said.output, errors: errors)
    }

    /// What a line of the shell prints. Its other streams are ours, so that it may ask whoever sits at the terminal; where there
    /// is none, it has so many seconds, and what it started ends with it.
    static func output(ofShell line: String, limit: Int, seconds: Double) throws -> Result {
        let isAttended = hasTerminal
        let stdout = try Pipe()
        let child = try spawn(["sh", "-c", line], [(stdout.writing, 1)], leadsGroup: !isAttended)
        stdout.closeWriting()
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        let end = monotonicSeconds() + seconds
        do {
            while true {
                try Interrupt.check()
                guard isAttended || monotonicSeconds() < end else {
                    throw BackupError(.failed, "did not end within \(Int(seconds)) seconds", at: line)
                }
                // It may have nothing more to say, and live on.
                if stdout.reading < 0 {
                    if let status = reap(child) { return Result(status: status, output: output, errors: "") }
                    pause(0.01)
                    continue
                }
                var waiting = pollfd(fd: stdout.reading, events: Int16(POLLIN), revents: 0)
                guard poll(&waiting, 1, 100) > 0 else { continue }
                let count = read(stdout.reading, &buffer, buffer.count)
                if count > 0, output.count + count <= limit {
                    output += buffer[..<count]
                } else if count >= 0 || errno != EINTR {
                    stdout.closeReading()
                }
            }
        } catch {
            stop(child, isAttended ? child : -child)
            throw error
        }
    }

    /// Whether somebody may sit there, wherever our own input comes from.
    private static var hasTerminal: Bool {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        if terminal >= 0 { close(terminal) }
        return terminal >= 0
    }

    /// Asks first, also one that was stopped, and does not ask for long.
    private static func stop(_ child: pid_t, _ all: pid_t) {
        kill(all, SIGTERM)
        kill(all, SIGCONT)
        let end = monotonicSeconds() + 2
        while monotonicSeconds() < end {
            if reap(child) != nil { return }
            pause(0.02)
        }
        kill(all, SIGKILL)
        _ = wait(for: child)
    }

    /// How a child has ended; nil while it lives.
    private static func reap(_ child: pid_t) -> Int32? {
        var status: Int32 = 0
        return waitpid(child, &status, WNOHANG) == 0 ? nil : exitCode(status)
    }

    private static func wait(for child: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        return exitCode(status)
    }

    /// The macros WIFEXITED, WEXITSTATUS and WTERMSIG do not come through to Swift.
    private static func exitCode(_ status: Int32) -> Int32 {
        status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    }

    private final class Pipe {
        private(set) var reading: Int32 = -1
        private(set) var writing: Int32 = -1

        init() throws {
            var ends: [Int32] = [-1, -1]
            guard csystem_pipe(&ends) == 0 else { throw BackupError.fromErrno("cannot be made", at: "a pipe") }
            (reading, writing) = (ends[0], ends[1])
        }

        func closeReading() {
            if reading >= 0 { close(reading) }
            reading = -1
        }

        func closeWriting() {
            if writing >= 0 { close(writing) }
            writing = -1
        }

        deinit {
            closeReading()
            closeWriting()
        }
    }

    private static func spawn(
        _ words: [String], _ streams: [(end: Int32, stream: Int32)], leadsGroup: Bool = false
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (end, stream) in streams { posix_spawn_file_actions_adddup2(&actions, end, stream) }
        // What this program ignores, or this thread blocks, another program shall not find ignored or blocked.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var defaults = sigset_t()
        sigemptyset(&defaults)
        let hangup = csystem_hangup_is_ignored() == 0 ? [SIGHUP] : []
        for signal in [SIGPIPE, SIGXFSZ] + hangup { sigaddset(&defaults, signal) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        var blocked = sigset_t()
        sigemptyset(&blocked)
        posix_spawnattr_setsigmask(&attributes, &blocked)
        let group = leadsGroup ? POSIX_SPAWN_SETPGROUP : 0
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | group))
        var arguments = words.map { strdup($0) } + [nil]
        defer { for word in arguments { free(word) } }
        var child: pid_t = 0
        var environment = environmentWithoutPasswords() + [nil]
        let problem = posix_spawnp(&child, words.first ?? "", &actions, &attributes, &arguments, &environment)
        guard problem == 0 else {
            errno = problem
            throw BackupError.fromErrno("cannot be run", at: words.first ?? "")
        }
        return child
    }

    /// Whatever runs for us can be looked at by more people than we can, so it gets no password that it was not given.
    private static func environmentWithoutPasswords() -> [UnsafeMutablePointer<CChar>?] {
        let secrets = ["BACKUP_TOOL_PASSWORD=", "RESTIC_PASSWORD="]
        var kept: [UnsafeMutablePointer<CChar>?] = []
        var next = environ
        while let entry = next.pointee {
            next = next.advanced(by: 1)
            if !secrets.contains(where: { strncmp(entry, $0, $0.utf8.count) == 0 }) { kept.append(entry) }
        }
        return kept
    }

    private static func exchange(
        _ input: [UInt8], _ stdin: Pipe, _ stdout: Pipe, _ stderr: Pipe, _ limit: Int
    ) -> (output: [UInt8], errors: [UInt8]) {
        _ = fcntl(stdin.writing, F_SETFL, O_NONBLOCK)
        var collected: [[UInt8]] = [[], []]
        var buffer = [UInt8](repeating: 0, count: 65536)
        var sent = 0
        // poll(2) passes over negative descriptors.
        while stdout.reading >= 0 || stderr.reading >= 0 {
            if sent == input.count { stdin.closeWriting() }
            var waiting = [
                pollfd(fd: stdin.writing, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: stdout.reading, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stderr.reading, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&waiting, 3, -1) > 0 else { continue }
            if waiting[0].revents != 0, stdin.writing >= 0 {
                let count = input[sent...].withUnsafeBytes { write(stdin.writing, $0.baseAddress, $0.count) }
                // A program that does not want the rest has read enough.
                sent = count >= 0 ? sent + count : errno == EAGAIN || errno == EINTR ? sent : input.count
            }
            for (index, pipe) in [stdout, stderr].enumerated() where waiting[index + 1].revents != 0 {
                let count = read(pipe.reading, &buffer, buffer.count)
                if count > 0, collected[index].count + count <= limit {
                    collected[index] += buffer[..<count]
                } else if count >= 0 || errno != EINTR {
                    pipe.closeReading()
                }
            }
        }
        return (collected[0], collected[1])
    }
}
