/// A service and a timer for systemd.
public struct SystemdUnits: Sendable, Equatable {
    public let name: String
    public let service: String
    public let timer: String
    /// As every service that runs the same configuration has it.
    let configuration: String

    static func words(ofConfiguration path: String) -> String {
        " \(inCommand("--config")) \(inCommand(path)) "
    }

    /// `isUser` is for the units of one account, which may use fewer of the walls.
    public init(_ job: ScheduledJob, isUser: Bool) {
        name = job.name
        configuration = Self.words(ofConfiguration: job.configuration)
        let what = job.profile.map { "Nightly backup, profile \($0)" } ?? "Nightly backup"
        var service = [
            "# Written by 'backup-tool schedule install --systemd'; 'backup-tool schedule remove' takes it away.",
            "[Unit]", "Description=\(what)", "", "[Service]", "Type=oneshot",
            "ExecStart=\(job.words.map(Self.inCommand).joined(separator: " "))",
            "Environment=\(Self.quoted("HOME=\(job.home)"))", "UMask=0077", "Nice=10", "IOSchedulingClass=idle", "",
            "# It reads what it backs up, and writes here and to a scratch folder of its own, and nowhere else.",
        ]
        service += isUser ? Self.wallsForAll : Self.wallsForAll + Self.wallsForTheSystem
        if !isUser {
            service += ["ProtectSystem=strict", "ProtectHome=read-only", "PrivateTmp=yes"]
            service += job.writes.sorted().map { "ReadWritePaths=\(Self.quoted("-\($0)"))" }
        }
        self.service = service.joined(separator: "\n") + "\n"
        timer =
            """
            # Written by 'backup-tool schedule install --systemd'; 'backup-tool schedule remove' takes it away.
            [Unit]
            Description=\(what), every day

            [Timer]
            OnCalendar=*-*-* \(job.time.text):00
            # Not all machines of a house at once.
            RandomizedDelaySec=15min
            # A night that the machine was off is caught up with.
            Persistent=true

            [Install]
            WantedBy=timers.target

            """
    }

    private static let wallsForAll = [
        "NoNewPrivileges=yes", "LockPersonality=yes", "RestrictRealtime=yes", "RestrictSUIDSGID=yes",
        "MemoryDenyWriteExecute=yes", "SystemCallArchitectures=native",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
    ]
    private static let wallsForTheSystem = [
        "ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectKernelLogs=yes", "ProtectControlGroups=yes",
        "ProtectClock=yes", "ProtectHostname=yes", "PrivateDevices=yes", "RestrictNamespaces=yes",
    ]

    /// A $ begins a variable in a command, and nowhere else.
    private static func inCommand(_ word: String) -> String { quoted(word.replacing("$", with: "$$")) }

    /// A % begins a specifier, and a backslash an escape.
    private static func quoted(_ word: String) -> String {
        var text = ""
        for scalar in word.unicodeScalars {
            switch scalar {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "%": text += "%%"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return "\"\(text)\""
    }

    /// When a timer of ours goes off.
    public static func time(in timer: String) -> TimeOfDay? {
        for line in timer.split(separator: "\n") where line.hasPrefix("OnCalendar=*-*-* ") {
            return TimeOfDay(line.dropFirst("OnCalendar=*-*-* ".count).prefix(5))
        }
        return nil
    }
}
