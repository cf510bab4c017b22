/// What cron or systemd is to run, and when.
public struct ScheduledJob: Sendable, Equatable {
    /// Absolute paths: neither of the two has our folder or our PATH.
    public let tool: String
    public let configuration: String
    public let profile: String?
    public let time: TimeOfDay
    public let home: String
    /// What the run writes to, besides scratch files.
    public let writes: [String]

    public init(
        tool: String, configuration: String, profile: String?, time: TimeOfDay, home: String, writes: [String] = []
    ) throws {
        for text in [tool, configuration, home] + writes {
            guard text.hasPrefix("/"), !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
            else {
                throw BackupError(
                    .refused, "is no path that a schedule can hold: it must be absolute, without control characters",
                    at: text)
            }
        }
        if let profile, !Configuration.isProfileName(profile) {
            throw BackupError(.usage, "'\(printable(profile))' is no name of a profile")
        }
        (self.tool, self.configuration, self.profile) = (tool, configuration, profile)
        (self.time, self.home, self.writes) = (time, home, writes)
    }

    /// `backup-tool` or `backup-tool-PROFILE`: the name of the units.
    public var name: String { Self.name(profile) }

    static func name(_ profile: String?) -> String { profile.map { "backup-tool-\($0)" } ?? "backup-tool" }

    /// For when a job of this name is there, of another configuration: it would end without anybody noticing.
    func isTaken(by place: String) -> BackupError {
        BackupError(
            .refused, "runs '\(name)' with another configuration already", at: place,
            remedy: "'backup-tool schedule remove' takes that out; configurations side by side are profiles of one file"
        )
    }

    /// Profiles that share a vault begin at the same minute, and one waits for the other.
    var words: [String] {
        [tool, "--quiet", "run", "--config", configuration] + (profile.map { ["--profile", $0] } ?? [])
            + ["--lock-wait", "7200"]
    }
}

/// `03:00`
public struct TimeOfDay: Sendable, Equatable {
    public let hour: Int
    public let minute: Int

    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ 1...2 ~= $0.utf8.count && $0.utf8.allSatisfy { 48...57 ~= $0 } }),
            let hour = Int(parts[0]), let minute = Int(parts[1]), 0...23 ~= hour, 0...59 ~= minute,
            parts[1].utf8.count == 2
        else { return nil }
        (self.hour, self.minute) = (hour, minute)
    }

    public var text: String { "\(hour < 10 ? "0" : "")\(hour):\(minute < 10 ? "0" : "")\(minute)" }
}
