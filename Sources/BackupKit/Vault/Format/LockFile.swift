/// A file of `locks/`: who works with the vault, and since when. The last three members are ours; restic passes over
/// them, and they tell a process from another that has its number.
struct LockFile: Equatable {
    var time: GoTime
    var isExclusive: Bool
    var hostName: String
    var userName: String
    var pid: Int64
    var uid: Int64 = 0
    var gid: Int64 = 0
    var process: ProcessIdentity?

    init(time: GoTime, isExclusive: Bool, hostName: String, userName: String, pid: Int64) {
        self.time = time
        self.isExclusive = isExclusive
        self.hostName = hostName
        self.userName = userName
        self.pid = pid
    }

    /// Reads any bytes.
    init(_ bytes: UnsafeRawBufferPointer) throws {
        let json = try JSON(parsing: bytes)
        guard let time = json["time"]?.string.flatMap(GoTime.init), let pid = json["pid"]?.integer else {
            throw BackupError(.damaged, "is no lock: it names no time and no process")
        }
        self.init(
            time: time, isExclusive: json["exclusive"]?.bool ?? false, hostName: json["hostname"]?.string ?? "",
            userName: json["username"]?.string ?? "", pid: pid)
        uid = json["uid"]?.integer ?? 0
        gid = json["gid"]?.integer ?? 0
        if let boot = json["boot_id"]?.string, let space = json["pid_namespace"]?.string,
            let start = json["start_ticks"]?.integer
        {
            process = ProcessIdentity(boot: boot, space: space, startTicks: start)
        }
    }

    /// The bytes of the file, before they are packed and sealed.
    var encoded: [UInt8] {
        var members: [JSON.Member] = [
            .init("time", .string(time.text)), .init("exclusive", .bool(isExclusive)),
            .init("hostname", .string(hostName)), .init("username", .string(userName)), .init("pid", JSON(pid)),
        ]
        if uid != 0 { members.append(.init("uid", JSON(uid))) }
        if gid != 0 { members.append(.init("gid", JSON(gid))) }
        if let process {
            members += [
                .init("boot_id", .string(process.boot)), .init("pid_namespace", .string(process.space)),
                .init("start_ticks", JSON(process.startTicks)),
            ]
        }
        var out: [UInt8] = []
        GoText.append(.object(members), to: &out)
        return out
    }
}

extension LockFile {
    var holder: String { "process \(pid) of \(userName) on \(hostName) since \(time.localText)" }

    /// A lock that was not refreshed for so long is nobody's: restic's rule, which refreshes every five minutes.
    static let lifetime: Int64 = 30 * 60

    enum Standing: Equatable {
        case held
        /// Whatever any clock says.
        case gone(String)
        /// By this machine's clock and the time that is written in the lock, either of which may be wrong.
        case old(String)
    }

    /// Whether the lock must be respected. `host` answers what this machine knows of a process of its own.
    func standing(now: Timestamp, host: HostView) -> Standing {
        if hostName == host.name {
            if let process, let own = host.own {
                if process.boot != own.boot { return .gone("its machine has restarted") }
                // Other numbers count in another container, and only its age tells.
                if process.space == own.space {
                    return host.startTicks(pid) == process.startTicks ? .held : .gone("its process is gone")
                }
            } else if let started = host.startTime(pid) {
                // Another's lock: a process that is younger than the lock has only got its number.
                if started.milliseconds > time.timestamp.milliseconds + 60_000 { return .gone("its process is gone") }
            } else {
                return .gone("its process is gone")
            }
        }
        let age = (now.milliseconds - time.timestamp.milliseconds) / 1000
        return age > Self.lifetime ? .old("it was not refreshed for \(age / 60) minutes") : .held
    }
}
