/// Which snapshots to keep, in restic's words.
public struct RetentionPolicy: Sendable, Equatable {
    public enum Bucket: String, Sendable, CaseIterable {
        case last, hourly, daily, weekly, monthly, yearly
    }

    /// "All of them", in a count.
    public static let unlimited = Int.max

    /// How many snapshots to keep of each kind.
    public var counts: [Bucket: Int] = [:]
    /// Keep everything that is at most so much older than the newest.
    public var within: CalendarSpan?
    /// Keep one an hour, day, … of what is at most so much older than the newest.
    public var withinBuckets: [Bucket: CalendarSpan] = [:]
    /// Keep what has all tags of one of these lists; a list of one empty tag means what has none.
    public var tags: [[String]] = []

    public init() {}

    public var isEmpty: Bool {
        !counts.values.contains { $0 > 0 } && within == nil && withinBuckets.isEmpty && tags.isEmpty
    }

    /// A rule by its name in the configuration and on the command line: "daily", "within", "within-weekly", "tag".
    public mutating func set(_ name: String, _ text: String) throws(BackupError) {
        if name == "tag" {
            tags.append(text.split(separator: ",", omittingEmptySubsequences: false).map(trimmed))
        } else if name == "within" {
            within = try Self.span(name, text)
        } else if name.hasPrefix("within-"), let bucket = Bucket(rawValue: String(name.dropFirst(7))), bucket != .last {
            withinBuckets[bucket] = try Self.span(name, text)
        } else if let bucket = Bucket(rawValue: name) {
            counts[bucket] = try Self.count(name, text)
        } else {
            throw BackupError(
                .usage, "there is no rule 'keep-\(printable(name))'",
                remedy: didYouMean(name, among: Self.names) ?? "the rules are: \(Self.names.joined(separator: ", "))")
        }
    }

    /// Every name that `set` knows.
    public static let names: [String] =
        Bucket.allCases.map(\.rawValue) + ["within"]
        + Bucket.allCases.dropFirst().map { "within-\($0.rawValue)" } + ["tag"]

    private static func span(_ name: String, _ text: String) throws(BackupError) -> CalendarSpan {
        if let span = CalendarSpan(text) { return span }
        throw BackupError(
            .usage, "keep-\(name) cannot be '\(printable(text))'",
            remedy: "give years, months, days and hours, such as 1y6m, 14d or 36h")
    }

    private static func count(_ name: String, _ text: String) throws(BackupError) -> Int {
        if text == "unlimited" || text == "-1" { return unlimited }
        if let count = Int(text), count >= 0 { return count }
        throw BackupError(
            .usage, "keep-\(name) cannot be '\(printable(text))'", remedy: "give a number, or 'unlimited'")
    }
}

private func trimmed(_ text: Substring) -> String {
    var text = text.drop { $0 == " " }
    while text.last == " " { text.removeLast() }
    return String(text)
}

/// What retention has to know of a snapshot.
public struct RetentionItem: Sendable, Equatable {
    public let id: String
    public let time: SnapshotTime
    public let host: String
    public let paths: [String]
    public let tags: [String]
    /// The snapshot that it was compared with when it was taken, which therefore is older.
    public let parent: String?
    /// Something of the source could not be read when it was taken.
    public let isPartial: Bool
    public var isSuspect: Bool { tags.contains(SnapshotTag.suspect) }
    /// The id that it had before its tags were changed.
    public let original: String?

    public init(
        id: String, time: SnapshotTime, host: String = "", paths: [String] = [], tags: [String] = [],
        parent: String? = nil, isPartial: Bool = false, original: String? = nil
    ) {
        (self.id, self.time, self.host, self.paths, self.tags) = (id, time, host, paths, tags)
        (self.parent, self.isPartial, self.original) = (parent, isPartial, original)
    }

    /// The name that it first had: whatever is done to its tags, it keeps that.
    public var origin: String { original ?? id }

    public func isOrWas(_ id: String) -> Bool { self.id == id || original == id }

    /// A suspect snapshot is kept like a partial one: in its own right, and never instead of a sound one.
    public func uncountedWhenSuspect(except acknowledged: [String] = []) -> RetentionItem {
        guard isSuspect, !acknowledged.contains(where: isOrWas) else { return self }
        return RetentionItem(
            id: id, time: time, host: host, paths: paths, tags: tags, parent: parent, isPartial: true,
            original: original)
    }
}

/// How snapshots are put into groups, to each of which a policy is applied by itself.
public struct RetentionGrouping: Sendable, Equatable {
    public var byHost = true
    public var byPaths = true
    public var byTags = false

    public init() {}

    /// "host,paths", as restic has it; "" is one group for all.
    public init(_ text: String) throws(BackupError) {
        (byHost, byPaths) = (false, false)
        for word in text.split(separator: ",") {
            switch trimmed(word) {
            case "host", "hosts": byHost = true
            case "path", "paths": byPaths = true
            case "tag", "tags": byTags = true
            default:
                throw BackupError(
                    .usage, "snapshots cannot be grouped by '\(printable(String(word)))'",
                    remedy: "group by host, paths, tags, or several of them with commas between")
            }
        }
    }

    func key(of item: RetentionItem) -> RetentionGroup.Key {
        RetentionGroup.Key(
            host: byHost ? item.host : nil, paths: byPaths ? item.paths.sorted() : nil,
            tags: byTags ? item.tags.sorted() : nil)
    }
}
