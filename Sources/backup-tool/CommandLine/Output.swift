import BackupKit
import Glibc
import Synchronization

/// Everything a command says. Results go to standard output, all else to standard error.
///
/// Printing never throws: a reader that has gone away (`backup-tool list … | head`) only means that nobody listens,
/// and work in hand goes on to its end. Any other failure to write, such as a full disk, is kept and ends the run
/// as failed in `finish()`. A loop that only prints asks `isClosed` and stops.
///
/// Text is printed as given: put foreign text through `printable` first.
final class Output: Sendable {
    let isQuiet: Bool
    let isVerbose: Bool
    let isJSON: Bool
    let out: Stream
    let err: Stream

    private let state: Mutex<State>

    private struct State {
        var pending: [UInt8] = []
        var progressIsShown = false
        var outIsClosed = false
        var failure: BackupError?
        var advice: Advice
    }

    /// What completes the commands in messages.
    var advice: Advice {
        get { state.withLock { $0.advice } }
        set { state.withLock { $0.advice = newValue } }
    }

    init(line: ParsedLine, environment: Environment) {
        isQuiet = line.options["quiet"] != nil
        isVerbose = line.options["verbose"] != nil
        isJSON = line.options["json"] != nil
        state = Mutex(State(advice: Advice(line)))
        let color = line.options["no-color"] == nil
        out = Stream(STDOUT_FILENO, color: color, environment: environment)
        err = Stream(STDERR_FILENO, color: color, environment: environment)
    }

    // MARK: Standard output

    /// A line of the result.
    func print(_ line: String) {
        write(line, "\n")
    }

    /// Exactly these characters.
    func write(_ text: String, _ end: String = "") {
        state.withLock { state in
            guard !state.outIsClosed else { return }
            state.pending += text.utf8
            state.pending += end.utf8
            if out.isTerminal || state.pending.count >= 65536 { flush(&state) }
        }
    }

    /// One object on one line.
    func report(_ value: JSONValue) {
        print(advice.completed(value).text)
    }

    /// Nobody reads standard output any more, or it cannot be written.
    var isClosed: Bool { state.withLock { $0.outIsClosed } }

    // MARK: Standard error

    /// What was done, for somebody who watches: "412 records, 1.2 GB".
    func note(_ line: String) {
        if !isQuiet, !isJSON { say(line) }
    }

    /// What only `--verbose` tells.
    func detail(_ line: String) {
        if isVerbose, !isQuiet, !isJSON { say(err.style.dim(line)) }
    }

    /// Something that needs attention. Said even with `--quiet`; a command that reports as JSON has it in its report.
    func warn(_ message: String, at subject: String? = nil) {
        guard !isJSON else { return }
        let place = subject.map { printable($0) + ": " } ?? ""
        say(err.style.warning("warning:") + " " + place + printable(message))
    }

    /// A line to standard error in any case. The commands in it can be typed as they are printed.
    func say(_ line: String) {
        put(advice.completed(line))
    }

    /// An object on a line of standard error, where standard output holds something else.
    func say(_ value: JSONValue) {
        put(advice.completed(value).text)
    }

    private func put(_ line: String) {
        state.withLock { state in
            flush(&state)
            put(line + "\n", &state)
        }
    }

    // MARK: Progress

    /// A progress bar where somebody can see it, else nothing. It goes away when anything else is said.
    func progress() -> Progress {
        guard err.obeysControls, !isQuiet, !isJSON else { return .none }
        let bar = ProgressBar { [weak self] line in self?.show(progress: line) }
        return Progress { bar.report($0) }
    }

    var progressColumns: Int { err.columns ?? 80 }

    private func show(progress line: (Int) -> String) {
        state.withLock { state in
            // One column stays free: a full line makes some terminals scroll.
            put("\r\u{1B}[K" + line(progressColumns - 1), &state, clearing: false)
            state.progressIsShown = true
        }
    }

    // MARK: The end

    /// Writes what is pending. Throws when something that was printed did not arrive.
    func finish() throws {
        let failure = state.withLock { state in
            flush(&state)
            put("", &state)
            return state.failure
        }
        if let failure { throw failure }
    }

    private func flush(_ state: inout State) {
        guard !state.pending.isEmpty else { return }
        if out.isTerminal { put("", &state) }
        let problem = writeAll(state.pending, to: out.descriptor)
        state.pending.removeAll(keepingCapacity: true)
        guard problem != 0 else { return }
        state.outIsClosed = true
        if problem != EPIPE {
            let code: ErrorCode = problem == ENOSPC || problem == EDQUOT ? .destinationFull : .failed
            state.failure = BackupError(code, String(cString: strerror(problem)), at: "standard output")
        }
    }

    /// To standard error, after taking the progress bar away. Nothing can be said about an error here.
    private func put(_ text: String, _ state: inout State, clearing: Bool = true) {
        let clear = clearing && state.progressIsShown
        state.progressIsShown = state.progressIsShown && !clear
        guard clear || !text.isEmpty else { return }
        _ = writeAll(Array((clear ? "\r\u{1B}[K" : "").utf8) + text.utf8, to: err.descriptor)
    }
}

/// Writes all of it, and answers 0 or the error number.
private func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { buffer in
        var rest = buffer[...]
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&waiting, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }
}

extension Table {
    func print(to output: Output) {
        for line in lines(columns: output.out.columns, style: output.out.style) {
            if output.isClosed { return }
            output.print(line)
        }
    }
}
