import Glibc

/// The states of profiles for Prometheus: a file for the textfile collector of its node exporter.
/// https://prometheus.io/docs/instrumenting/exposition_formats/
public enum Metrics {
    public static func text(_ states: [(profile: String?, state: RunState)]) -> String {
        var text = ""
        // All lines of a metric have to stand together, whatever profile they are of.
        func gauge(_ name: String, _ help: String, _ value: (RunState) -> String?) {
            let lines = states.compactMap { entry in
                value(entry.state).map {
                    "backup_tool_\(name){profile=\"\(escaped(entry.profile ?? "default"))\"} \($0)\n"
                }
            }
            guard !lines.isEmpty else { return }
            text += "# HELP backup_tool_\(name) \(help)\n# TYPE backup_tool_\(name) gauge\n" + lines.joined()
        }
        func seconds(_ time: Timestamp?) -> String? { time.map { "\($0.milliseconds / 1000)" } }
        gauge("last_run_timestamp_seconds", "When the last run began.") { seconds($0.lastRun?.started) }
        gauge("last_run_duration_seconds", "How long it took.") { $0.lastRun.map { "\($0.seconds)" } }
        gauge("last_run_exit_code", "How it ended; 0 is fine.") { $0.lastRun.map { "\($0.exitCode)" } }
        gauge("last_success_timestamp_seconds", "When the last run that was fine was over.") {
            seconds($0.lastSuccess?.ended)
        }
        gauge("last_drill_timestamp_seconds", "When a restore was last tried.") { seconds($0.lastDrill?.time) }
        gauge("last_drill_ok", "Whether it went well.") { $0.lastDrill.map { $0.isOK ? "1" : "0" } }
        gauge("last_drill_recovery_seconds", "How long the restore took.") { $0.lastDrill.map { "\($0.seconds)" } }
        gauge("retention_frozen", "Whether a suspicious loss keeps old snapshots from being removed.") {
            $0.suspect == nil ? "0" : "1"
        }
        gauge("snapshots", "How many snapshots there are.") { $0.snapshots.map { "\($0)" } }
        gauge("vault_bytes", "How large the vault is.") { $0.vaultBytes.map { "\($0)" } }
        return text
    }

    /// Throws where the file is something else, which must not be written over.
    public static func checkPlace(_ path: String) throws {
        guard let status = try FileStatus.ofTarget(path) else { return }
        func refuse() -> BackupError {
            BackupError(
                .refused, "is no file of metrics, so it was left as it is", at: path,
                remedy: "let 'metrics.file' name a file of its own, or one that is not there yet")
        }
        guard status.isRegular else { throw refuse() }
        let head = try FileHandle.openForReading(path).head(start.count)
        guard head.isEmpty || head == start else { throw refuse() }
    }

    /// How the text begins; one without any state is empty.
    private static let start = Array("# HELP backup_tool_".utf8)

    /// The collector may look at any moment, so the file is there whole or not at all, and for everybody to read.
    public static func write(_ states: [(profile: String?, state: RunState)], to path: String) throws {
        try checkPlace(path)
        try AtomicFile.write(OutputPlace.behindLinks(path), replace: true) { file in
            try file.write(text(states))
            // Whatever the umask: the collector is another account.
            guard fchmod(file.descriptor, 0o644) == 0 else {
                throw BackupError(.failed, "cannot be made readable for all", at: path)
            }
        }
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
