extension Configuration {
    public static let keys: [Key] = general + forVaults + forRuns + forExports

    private static let general = [
        Key("store", .path, "the store to use when none is named"),
        Key("hub", .path, "the hub to sync with when none is named"),
        Key("user", .text, "the name that a hub knows you by"),
        Key("state", .path, "the folder for what runs note; usually that of this file"),
    ]

    private static let forVaults = [
        Key("vault", .path, "the vault to use when none is named"),
        Key("password-file", .path, "the file that holds the vault's password"),
        Key("password-command", .command, "the command that prints the vault's password"),
        Key("snapshot.host", .text, "the name of this machine in snapshots; usually its own"),
        Key("snapshot.tags", .tags, "tags for every snapshot that a run takes"),
    ]

    static let forRuns =
        RetentionPolicy.Bucket.allCases.map { Key("keep.\($0.rawValue)", .count, keepHelp($0.rawValue)) }
        + [Key("keep.within", .span, "keep every snapshot that is at most this much older than the newest")]
        + RetentionPolicy.Bucket.allCases.dropFirst().map {
            Key("keep.within-\($0.rawValue)", .span, "keep \($0.rawValue) snapshots for this long")
        } + [
            Key("keep.tag", .texts, "keep every snapshot with this tag"),
            Key("keep.group-by", .grouping, "what separates the snapshots that rules count: host, paths, tags"),
            Key(
                "check.parts", .integer(1...256),
                "in how many nights all of the vault is read and checked; default: 30"),
            Key("drill.every", .interval, "how often a restore is tried; default: 7d"),
            Key("prune.max-unused", .number(0...100), "how many percent of a vault may be unused; default: 5"),
            Key(
                "tripwire.percent", .integer(1...100),
                "a loss of more than this many percent is suspicious; default: 20"),
            Key("tripwire.at-least", .integer(1...1_000_000_000), "and of at least this many records; default: 10"),
        ]
        + LibraryCensus.Measure.allCases.map {
            Key("tripwire.\($0.rawValue)", .integer(1...100), "the same percentage for \($0.rawValue) alone")
        } + [
            Key("metrics.file", .path, "a file for Prometheus"),
            Key("ping.url", .url, "the address of a watchdog that is told how runs went"),
        ]

    private static func keepHelp(_ bucket: String) -> String {
        bucket == "last" ? "keep the newest N snapshots" : "keep the newest N \(bucket) snapshots"
    }

    private static let forExports = [
        Key(
            "export.format", .oneOf(["dir", "tar.zst", "tar.gz", "tar.xz", "tar", "zip", "imbib"]),
            "the format of an export whose name does not tell"),
        Key("export.level", .integer(1...19), "how hard to compress"),
        Key("export.oversize", .oneOf(["include", "skip", "fail"]), "what to do with assets too large to sync"),
        Key("export.verify", .boolean, "whether an export ends by reading back what it wrote"),
        Key("limits.max-entry-bytes", .integer(1...Int.max), "the largest single file accepted from a backup"),
        Key("limits.max-total-bytes", .integer(1...Int.max), "the most that a backup may unpack to"),
        Key("limits.max-entries", .integer(1...Int.max), "the most files accepted from a backup"),
        Key("limits.max-line-bytes", .integer(1...(1 << 30)), "the longest line accepted from an event log"),
        Key("limits.max-ratio", .number(1...1_000_000), "how many times its packed size a backup may unpack to"),
    ]
}

extension Configuration.Kind {
    /// "a whole number from 1 to 19".
    var sentence: String {
        switch self {
        case .path: "a path in quotes"
        case .text, .command: "text in quotes, and not empty"
        case .texts: "text in quotes, or a list of texts"
        case .tags: "a tag in quotes, or a list of tags, without commas, and neither suspect nor partial"
        case .oneOf(let allowed): "one of: \(allowed.map { "\"\($0)\"" }.joined(separator: ", "))"
        case .integer(let range) where range.upperBound == Int.max: "a whole number of at least \(range.lowerBound)"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .number(let range): "a number from \(Int(range.lowerBound)) to \(Int(range.upperBound))"
        case .boolean: "true or false"
        case .count: "a whole number, or \"unlimited\""
        case .span: "a span such as \"1y6m\", \"14d\" or \"36h\""
        case .interval: "a span such as \"7d\" or \"12h\", or \"never\""
        case .grouping: "words out of host, paths and tags, with commas between"
        case .url: "an address that begins with https:// or http://"
        }
    }

    /// Whether a value is of this kind, and in its range.
    func takes(_ content: TOMLValue.Content) -> Bool {
        switch (self, content) {
        case (.path, .string(let text)), (.text, .string(let text)), (.command, .string(let text)): !text.isEmpty
        case (.texts, .string), (.oneOf, .string), (.boolean, .boolean): true
        case (.tags, .string(let tag)): SnapshotTag.mayBeGiven(tag)
        case (.texts, .array(let list)), (.tags, .array(let list)):
            list.allSatisfy { if case .string = $0.content { takes($0.content) } else { false } }
        case (.integer(let range), .integer(let number)): range.contains(number)
        case (.number(let range), .float(let number)): range.contains(number)
        case (.number(let range), .integer(let number)): range.contains(Double(number))
        case (.count, .integer(let number)): number >= 0
        case (.count, .string(let text)): text == "unlimited"
        case (.span, .string(let text)): CalendarSpan(text) != nil
        case (.interval, .string(let text)): text == "never" || CalendarSpan(text) != nil
        case (.grouping, .string(let text)): (try? RetentionGrouping(text)) != nil
        case (.url, .string(let text)): Ping(text) != nil
        default: false
        }
    }
}
