/// Our lines in somebody's crontab. Everything else in it stays as it is, to the byte, in whatever encoding it may be.
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
        let shell = isPlain && !word.isEmpty ? word : Subprocess.quoted(word)
        return shell.replacing("%", with: "\\%")
    }

    /// The table with the job in it: in its old place, else at the end.
    public static func installing(_ job: ScheduledJob, in table: [UInt8]) throws -> [UInt8] {
        let new = Array(lines(job).map { $0 + "\n" }.joined().utf8)
        var bytes = table
        if let old = try find(job.name, in: table) {
            guard names(job.configuration, table[old]) else { throw job.isTaken(by: "the crontab") }
            bytes.replaceSubrange(old, with: new)
        } else {
            if let last = bytes.last, last != 0x0A { bytes.append(0x0A) }
            bytes += new
        }
        return bytes
    }

    /// The table without the job; the same table when it is not in it.
    public static func removing(profile: String?, from table: [UInt8]) throws -> [UInt8] {
        var bytes = table
        if let old = try find(ScheduledJob.name(profile), in: table) { bytes.removeSubrange(old) }
        return bytes
    }

    private static func names(_ configuration: String, _ lines: ArraySlice<UInt8>) -> Bool {
        String(decoding: lines, as: UTF8.self).contains(" --config \(quoted(configuration)) ")
    }

    /// When the job runs with this configuration; nil when it is not in the table.
    public static func time(profile: String?, configuration: String, in table: [UInt8]) throws -> TimeOfDay? {
        guard let range = try find(ScheduledJob.name(profile), in: table), names(configuration, table[range]) else {
            return nil
        }
        for line in table[range].split(separator: 0x0A) where line.first != 0x23 && line.first != 0x40 {
            let parts = String(decoding: line, as: UTF8.self).split(separator: " ")
            guard parts.count > 5, let minute = Int(parts[0]), let hour = Int(parts[1]) else { continue }
            return TimeOfDay("\(hour):\(minute < 10 ? "0" : "")\(minute)")
        }
        return nil
    }

    /// From the beginning of the first mark to the end of the line of the second.
    private static func find(_ job: String, in table: [UInt8]) throws -> Range<Int>? {
        var start: Int?
        var place = 0
        while place < table.count {
            let lineEnd = table[place...].firstIndex(of: 0x0A) ?? table.count
            let next = min(lineEnd + 1, table.count)
            var line = table[place..<lineEnd]
            // Some editors end lines in their own way.
            if line.last == 0x0D { line.removeLast() }
            if line.elementsEqual(begin(job).utf8) {
                guard start == nil else { break }
                start = place
            } else if line.elementsEqual(end(job).utf8), let start {
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
