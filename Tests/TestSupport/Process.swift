import Glibc
import Synchronization

/// What a process left behind.
public struct ProcessResult: Sendable {
    /// The exit code, or 128 and the signal's number, as a shell has it.
    public let status: Int32
    public let stdoutBytes: [UInt8]
    public let stderrBytes: [UInt8]

    public var stdout: String { String(decoding: stdoutBytes, as: UTF8.self) }
    public var stderr: String { String(decoding: stderrBytes, as: UTF8.self) }
    public var stdoutLines: [String] { stdout.split(separator: "\n").map(String.init) }
}

public struct ProcessFailure: Error, CustomStringConvertible {
    public let description: String
}

/// The environment of a test's process: nothing of the machine but its PATH, and no home that anything could be put in.
public func testEnvironment(_ more: [String: String] = [:]) -> [String: String] {
    var variables = ["LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": "/dev/null"]
    variables["PATH"] = getenv("PATH").map { String(cString: $0) }
    return variables.merging(more) { $1 }
}

/// Runs the `backup-tool` that was built together with these tests.
public func runTool(
    _ arguments: [String], environment: [String: String] = testEnvironment(), stdin: [UInt8] = [],
    in folder: String? = nil, timeout: Double = 60
) throws -> ProcessResult {
    try runProcess(
        [productsDirectory() + "/backup-tool"] + arguments, environment: environment, stdin: stdin, in: folder,
        timeout: timeout)
}

/// Runs a program found through PATH, such as tar or sqlite3. Both of its streams are read while it runs, so that it
/// never waits for us; after `timeout` seconds it is killed and that is an error.
public func runProcess(
    _ words: [String], environment: [String: String] = testEnvironment(), stdin: [UInt8] = [],
    in folder: String? = nil, timeout: Double = 60
) throws -> ProcessResult {
    // A child that does not read its input must not end the tests with SIGPIPE.
    signal(SIGPIPE, SIG_IGN)
    // posix_spawn(3) with a working folder has no wrapper here; env(1) does it.
    let words = (folder.map { ["/usr/bin/env", "-C", $0, "--"] } ?? []) + words
    // A child started by another test between pipe and fcntl would keep these ends open.
    let (input, output, errors, child) = try spawning.withLock { _ in
        let (input, output, errors) = (try Pipe(), try Pipe(), try Pipe())
        let child = try spawn(words, environment, input: input.read, output: output.write, errors: errors.write)
        return (input, output, errors, child)
    }
    for end in [input.read, output.write, errors.write] { close(end) }
    let (out, err) = exchange(stdin, input.write, output.read, errors.read, until: now() + timeout)
    for end in [output.read, errors.read] { close(end) }

    guard let out, let err else {
        kill(child, SIGKILL)
        waitpid(child, nil, 0)
        throw ProcessFailure(description: "\(words.joined(separator: " ")) was not done after \(timeout) s")
    }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    // The macros WIFEXITED, WEXITSTATUS and WTERMSIG do not come through to Swift.
    let code = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    return ProcessResult(status: code, stdoutBytes: out, stderrBytes: err)
}

/// Where the build put its products, which is where this test bundle is.
public func productsDirectory() throws -> String {
    // The test runner is the bundle itself, or a helper of the toolchain that was given the bundle's path.
    for word in CommandLine.arguments {
        guard word.hasSuffix(".xctest"), let path = realpath(word, nil) else { continue }
        defer { free(path) }
        let bundle = String(cString: path)
        let folder = String(bundle[..<(bundle.lastIndex(of: "/") ?? bundle.startIndex)])
        if access(folder + "/backup-tool", X_OK) == 0 { return folder }
    }
    throw ProcessFailure(description: "backup-tool was not built next to \(CommandLine.arguments)")
}

// MARK: - Pipes

private let spawning = Mutex(())

private struct Pipe {
    let read: Int32
    let write: Int32

    init() throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw ProcessFailure(description: "no pipe: errno \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (read, write) = (ends[0], ends[1])
    }
}

private func spawn(
    _ words: [String], _ environment: [String: String], input: Int32, output: Int32, errors: Int32
) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, 0)
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    posix_spawn_file_actions_adddup2(&actions, errors, 2)

    // What the tests ignore the child must not inherit as ignored.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var defaults = sigset_t()
    sigemptyset(&defaults)
    sigaddset(&defaults, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))

    var arguments = words.map { strdup($0) } + [nil]
    var variables = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var child: pid_t = 0
    let problem = posix_spawnp(&child, words.first ?? "", &actions, &attributes, &arguments, &variables)
    guard problem == 0 else {
        throw ProcessFailure(description: "\(words.first ?? "nothing"): \(String(cString: strerror(problem)))")
    }
    return child
}

/// Feeds the input and drains both outputs until their ends. Nil when the time is up first.
private func exchange(
    _ stdin: [UInt8], _ input: Int32, _ output: Int32, _ errors: Int32, until end: Double
) -> ([UInt8]?, [UInt8]?) {
    var collected: [[UInt8]] = [[], []]
    var buffer = [UInt8](repeating: 0, count: 65536)
    var sent = 0
    // poll(2) passes over negative descriptors.
    var waiting = [
        pollfd(fd: input, events: Int16(POLLOUT), revents: 0),
        pollfd(fd: output, events: Int16(POLLIN), revents: 0),
        pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
    ]
    _ = fcntl(input, F_SETFL, O_NONBLOCK)
    while waiting[1].fd >= 0 || waiting[2].fd >= 0 {
        if waiting[0].fd >= 0, sent == stdin.count {
            close(input)
            waiting[0].fd = -1
        }
        let left = end - now()
        guard left > 0 else {
            if waiting[0].fd >= 0 { close(input) }
            return (nil, nil)
        }
        guard poll(&waiting, 3, Int32(min(left * 1000 + 1, 60_000))) > 0 else { continue }
        if waiting[0].fd >= 0, waiting[0].revents != 0 {
            let count = stdin[sent...].withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
            // A child that does not want the rest has read enough.
            sent = count >= 0 ? sent + count : errno == EAGAIN ? sent : stdin.count
        }
        for index in 1...2 where waiting[index].fd >= 0 && waiting[index].revents != 0 {
            let count = read(waiting[index].fd, &buffer, buffer.count)
            if count > 0 { collected[index - 1] += buffer[..<count] } else { waiting[index].fd = -1 }
        }
    }
    if waiting[0].fd >= 0 { close(input) }
    return (collected[0], collected[1])
}

private func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
