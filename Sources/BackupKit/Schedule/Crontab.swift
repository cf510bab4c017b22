/// Our lines in somebody's crontab. Everything else in it stays as it is, to the byte.
public enum Crontab {
    private static func begin(_ job: String) -> String { "# \(job): begin, written by 'backup-tool schedule install'" }
    private static func end(_ job: String) -> String { "# \(job): end" }

    /// The lines for a job, with their marks. cron itself never catches up; the second line does, after a start.
    public static func lines(_ job: ScheduledJob) -> [String] {
        let command = job.words.map(quoted).joined(separator: " ")
        return [
            begin(job.name), "\(job.time.minute) \(job.time.hour) * * * \(command)",
            "@reboot sleep 120 && \(command) --if-older 25h", end(job.name),
        ]
    }

    /// For sh, and then for cron, which takes an unquoted % for the end of the line.
    private static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            48...57 ~= byte || 65...90 ~= byte || 97...122 ~= byte || "/._-+=:,@".utf8.contains(byte)
        }
        let shell = isPlain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
        return shell.replacing("%", with: "\\%")
    }

    /// The table with the job in it: in its old place, else at the end.
    public static func installing(_ job: ScheduledJob, in table: String) throws -> String {
        let new = lines(job).map { $0 + "\n" }.joined()
        var text = table
        if let old = try find(job.name, in: table) {
            text.replaceSubrange(old, with: new)
        } else {
            if let last = text.utf8.last, last != 0x0A { text += "\n" }
            text += new
        }
        return text
    }

    /// The table without the job; the same table when it is not in it.
    public static func removing(profile: String?, from table: String) throws -> String {
        var text = table
        if let old = try find(ScheduledJob.name(profile), in: table) { text.removeSubrange(old) }
        return text
    }

    /// When the job runs; nil when it is not in the table.
    public static func time(profile: String?, in table: String) throws -> TimeOfDay? {
        guard let range = try find(ScheduledJob.name(profile), in: table) else { return nil }
        for line in table[range].split(separator: "\n") where !line.hasPrefix("#") && !line.hasPrefix("@") {
            let parts = line.split(separator: " ")
            guard parts.count > 5, let minute = Int(parts[0]), let hour = Int(parts[1]) else { continue }
            return TimeOfDay("\(hour):\(minute < 10 ? "0" : "")\(minute)")
        }
        return nil
    }

    /// From the beginning of the first mark to the end of the line of the second.
    private static func find(_ job: String, in table: String) throws -> Range<String.Index>? {
        var start: String.Index?
        var place = table.startIndex
        while place < table.endIndex {
            let lineEnd = table[place...].firstIndex(of: "\n") ?? table.endIndex
            let next = lineEnd < table.endIndex ? table.index(after: lineEnd) : lineEnd
            let line = table[place..<lineEnd]
            if line == begin(job) {
                guard start == nil else { break }
                start = place
            } else if line == end(job), let start {
                return start..<next
            }
            place = next
        }
        guard start == nil else {
            throw BackupError(
                .refused, "holds our first mark without the last one", at: "the crontab",
                remedy: "look at it with 'crontab -e' and remove what is left of '\(job)'")
        }
        return nil
    }
}
