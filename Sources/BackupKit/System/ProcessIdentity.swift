import Glibc

/// What tells a process from every other, also from later ones with its number.
struct ProcessIdentity: Sendable, Equatable {
    /// The kernel's name for the time since the machine was started.
    let boot: String
    /// The process namespace: in another, such as a container's, the same number is another process.
    let space: String
    /// When the process began, in ticks since the machine did.
    let startTicks: Int64
}

/// What this machine can say about processes. Tests bring their own.
struct HostView: Sendable {
    let name: String
    /// nil where there is no /proc to ask.
    let own: ProcessIdentity?
    /// When a process of this machine began, in ticks; nil when there is none of that number.
    let startTicks: @Sendable (Int64) -> Int64?
    /// The same as a time.
    let startTime: @Sendable (Int64) -> Timestamp?

    static let system: HostView = {
        var own: ProcessIdentity?
        if let boot = firstLine("/proc/sys/kernel/random/boot_id"), let space = linkTarget("/proc/self/ns/pid"),
            let start = ticks(Int64(getpid()))
        {
            own = ProcessIdentity(boot: boot, space: space, startTicks: start)
        }
        return HostView(name: hostName(), own: own, startTicks: ticks, startTime: startTime)
    }()

    /// The 22nd field of /proc/PID/stat. https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    private static func ticks(_ pid: Int64) -> Int64? {
        guard pid > 0, let line = firstLine("/proc/\(pid)/stat"),
            // The second field, a name in parentheses, may hold anything.
            let end = line.lastIndex(of: ")")
        else { return nil }
        let fields = line[line.index(after: end)...].split(separator: " ")
        // A zombie does nothing any more.
        guard fields.count > 19, fields[0] != "Z" else { return nil }
        return Int64(fields[19])
    }

    private static func startTime(_ pid: Int64) -> Timestamp? {
        guard let ticks = ticks(pid) else {
            // Without /proc we know whether there is one, and take it for old.
            let exists = pid > 0 && pid <= Int32.max && (kill(Int32(pid), 0) == 0 || errno == EPERM)
            return exists && firstLine("/proc/self/stat") == nil ? Timestamp(milliseconds: 0) : nil
        }
        var (real, sinceBoot) = (timespec(), timespec())
        clock_gettime(CLOCK_REALTIME, &real)
        clock_gettime(CLOCK_BOOTTIME, &sinceBoot)
        let rate = max(1, Int64(sysconf(Int32(_SC_CLK_TCK))))
        return Timestamp(milliseconds: (Int64(real.tv_sec) - Int64(sinceBoot.tv_sec) + ticks / rate) * 1000)
    }

    /// The process that holds a file or folder by `flock`; nil where the kernel does not tell.
    /// https://man7.org/linux/man-pages/man5/proc_locks.5.html
    static func holder(ofLockOn file: FileHandle) -> (pid: Int64, began: Timestamp)? {
        var bytes: [UInt8] = []
        guard let status = try? file.status(), let locks = try? FileHandle.openForReading("/proc/locks"),
            (try? locks.forEachChunk { bytes += $0 }) != nil
        else { return nil }
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            // "1: FLOCK  ADVISORY  WRITE 3568 fd:00:2531452 0 EOF"; who waits has "->" before it.
            let fields = line.split(separator: " ")
            guard fields.count > 5, fields[1] == "FLOCK", let pid = Int64(fields[4]) else { continue }
            let place = fields[5].split(separator: ":")
            guard place.count == 3, let major = UInt64(place[0], radix: 16), let minor = UInt64(place[1], radix: 16),
                // As glibc puts the two together.
                (major & 0xFFF) << 8 | (major & ~0xFFF) << 32 | minor & 0xFF | (minor & ~0xFF) << 12 == status.device,
                UInt64(place[2]) == status.inode,
                let began = startTime(pid)
            else { continue }
            return (pid, began)
        }
        return nil
    }

    private static func firstLine(_ path: String) -> String? {
        guard let file = try? FileHandle.openForReading(path) else { return nil }
        var buffer = [UInt8](repeating: 0, count: 4096)
        guard let count = try? buffer.withUnsafeMutableBytes({ try file.readNext(into: $0) }), count > 0 else {
            return nil
        }
        return String(decoding: buffer[..<count].prefix { $0 != 0x0A }, as: UTF8.self)
    }

    private static func linkTarget(_ path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: 256)
        let count = readlink(path, &buffer, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The account this process runs as, by its name or else its number.
    static var userName: String {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 4096)
        guard getpwuid_r(getuid(), &entry, &buffer, buffer.count, &found) == 0, found != nil, let name = entry.pw_name
        else { return String(getuid()) }
        return String(cString: name)
    }
}

/// SIGHUP is ignored while somebody asks for it: restic sends one to the process that a lock names, to see whether it
/// lives, and any other process would end.
enum HangUps {
    private struct State {
        var count = 0
        var before = sigaction()
    }

    private static let monitor = Monitor()
    // Only touched inside `monitor`.
    private nonisolated(unsafe) static var state = State()

    static func ignore() {
        monitor.locked {
            state.count += 1
            guard state.count == 1 else { return }
            var ignoring = sigaction()
            ignoring.__sigaction_handler.sa_handler = SIG_IGN
            sigaction(SIGHUP, &ignoring, &state.before)
        }
    }

    static func heed() {
        monitor.locked {
            state.count -= 1
            if state.count == 0 { sigaction(SIGHUP, &state.before, nil) }
        }
    }
}

/// What this machine is called; empty where it does not say.
public func hostName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
