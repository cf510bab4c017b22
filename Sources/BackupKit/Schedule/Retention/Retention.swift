/// One group of snapshots, and what becomes of each.
public struct RetentionGroup: Sendable {
    public struct Key: Sendable, Hashable {
        public let host: String?
        public let paths: [String]?
        public let tags: [String]?
    }

    public struct Kept: Sendable {
        public let item: RetentionItem
        /// In restic's words where it has some: "daily snapshot", "within 1m".
        public let reasons: [String]
        /// How many of each kind may still come, counted to the past.
        public let left: [RetentionPolicy.Bucket: Int]
    }

    public let key: Key
    /// Newest first.
    public var keep: [Kept]
    public var remove: [RetentionItem]
}

/// What a policy does to snapshots. Nothing is done yet.
public struct RetentionPlan: Sendable {
    public var groups: [RetentionGroup] = []
    public var findings: [Finding] = []

    public var removed: [String] { groups.flatMap { $0.remove.map(\.id) } }
}

/// Applies policies by restic's rules, but for what these do not say: a snapshot whose time cannot be trusted is kept and
/// counts for nothing, so that a wrong clock never has good snapshots removed in its place.
public struct Retention: Sendable {
    public var policy: RetentionPolicy
    public var grouping = RetentionGrouping()
    public var now: Timestamp
    /// Snapshots that are kept whatever the policy says, and why.
    public var protected: [String: String] = [:]
    /// Why nothing may be removed at all, if nothing may.
    public var frozen: String?
    /// Times are taken as they are written, as restic does.
    public var trustsTimes = false

    public init(_ policy: RetentionPolicy, now: Timestamp) {
        (self.policy, self.now) = (policy, now)
    }

    public func plan(_ items: [RetentionItem]) throws -> RetentionPlan {
        guard !policy.isEmpty else {
            throw BackupError(
                .usage, "the policy is empty: it says nothing about what to keep",
                remedy: "give at least one rule, such as --keep-daily 14")
        }
        let doubts = trustsTimes ? [:] : untrusted(items)
        var groups: [RetentionGroup.Key: [RetentionItem]] = [:]
        for item in items { groups[grouping.key(of: item), default: []].append(item) }
        var plan = RetentionPlan()
        for key in groups.keys.sorted(by: { $0.sortsBefore($1) }) {
            plan.groups.append(try split(groups[key] ?? [], key, doubts))
        }
        plan.findings = Self.findings(items, doubts)
        return plan
    }

    /// What is said of times that cannot be trusted, also where nothing is to be removed.
    public func findings(_ items: [RetentionItem]) -> [Finding] {
        Self.findings(items, trustsTimes ? [:] : untrusted(items))
    }

    private static func findings(_ items: [RetentionItem], _ doubts: [String: Doubt]) -> [Finding] {
        let ahead = items.filter { doubts[$0.id] == .future }.map { String($0.id.prefix(8)) }
        return items.compactMap { item in
            doubts[item.id].map { doubt in
                let ids = doubt == .future ? ahead : [String(item.id.prefix(8))]
                return doubt.finding(item, TypedCommand.quoted("vault forget", ids))
            }
        }
    }

    // MARK: Times that cannot be trusted

    private enum Doubt {
        case future
        case outOfOrder

        var reason: String {
            self == .future ? "is dated in the future, and not counted" : "is dated out of order, and not counted"
        }

        /// `command` removes it, and all others that are dated ahead.
        func finding(_ item: RetentionItem, _ command: String) -> Finding {
            switch self {
            case .future:
                Finding(
                    .futureSnapshot, .warning, item.id,
                    "is dated \(item.time.instant.iso8601), which is in the future: kept, and not counted",
                    remedy: "when the clock of \(item.host) is right, \(command) removes what is dated ahead")
            case .outOfOrder:
                Finding(
                    .snapshotOutOfOrder, .warning, item.id,
                    "has a time that contradicts another snapshot's: kept, and not counted",
                    remedy: "if its time is the wrong one, \(command) removes it")
            }
        }
    }

    /// A snapshot was taken after its parent. Where the times say otherwise one of the two is wrong, and nobody knows which.
    private func untrusted(_ items: [RetentionItem]) -> [String: Doubt] {
        var doubts: [String: Doubt] = [:]
        var byID: [String: RetentionItem] = [:]
        for item in items {
            byID[item.id] = item
            if item.time.instant > now { doubts[item.id] = .future }
        }
        for item in items where doubts[item.id] != .future {
            guard let parent = item.parent.flatMap({ byID[$0] }), parent.time >= item.time,
                doubts[parent.id] != .future
            else { continue }
            doubts[item.id] = .outOfOrder
            doubts[parent.id] = .outOfOrder
        }
        return doubts
    }

    // MARK: One group

    private func split(
        _ items: [RetentionItem], _ key: RetentionGroup.Key, _ doubts: [String: Doubt]
    ) throws -> RetentionGroup {
        let sorted = items.enumerated().sorted { left, right in
            left.element.time == right.element.time
                ? left.offset < right.offset : left.element.time > right.element.time
        }.map(\.element)
        let sound = sorted.filter { doubts[$0.id] == nil }
        var verdicts = judge(sound.filter { !$0.isPartial })
        if sound.contains(where: \.isPartial) {
            // A partial one never takes the place of a whole one, and goes when its time is over.
            let all = judge(sound)
            for item in sound where item.isPartial { verdicts[item.id] = all[item.id] }
        }
        var group = RetentionGroup(key: key, keep: [], remove: [])
        for item in sorted {
            var reasons = verdicts[item.id]?.reasons ?? []
            if let doubt = doubts[item.id] { reasons.append(doubt.reason) }
            if let reason = protected[item.id] { reasons.append(reason) }
            if let frozen { reasons.append(frozen) }
            if reasons.isEmpty {
                group.remove.append(item)
            } else {
                group.keep.append(.init(item: item, reasons: reasons, left: verdicts[item.id]?.left ?? [:]))
            }
        }
        // What stays for other reasons does not make a rule right that keeps nothing, such as a tag with a typing error.
        guard group.remove.isEmpty || !verdicts.isEmpty else {
            throw BackupError(
                .refused, "the policy would remove every snapshot of \(key.text)",
                remedy: "keep at least one, such as with --keep-last 1, or 'keep.last = 1' in the configuration; "
                    + "or name those to remove by their ids, which 'backup-tool vault snapshots' lists")
        }
        return group
    }

    private struct Verdict {
        var reasons: [String] = []
        var left: [RetentionPolicy.Bucket: Int] = [:]
    }

    /// The rules of restic 0.16 and later, newest first: tags, the span, and each kind of which some are left or that has a
    /// span of its own: a snapshot is kept when it is the newest of its hour, day, …, or the oldest of all.
    private func judge(_ items: [RetentionItem]) -> [String: Verdict] {
        var verdicts: [String: Verdict] = [:]
        var left = policy.counts
        var lastKey: [RetentionPolicy.Bucket: BucketKey] = [:]
        var lastKeyWithin: [RetentionPolicy.Bucket: BucketKey] = [:]
        // "The newest" of the spans is never one of the future.
        let newest = items.first { $0.time.instant < now }?.time
        for (index, item) in items.enumerated() {
            let isOldest = index == items.count - 1
            var reasons = policy.tags.filter(item.hasTags).map { "has tags [\($0.joined(separator: ", "))]" }
            if let span = policy.within, item.isWithin(span, of: newest) { reasons.append("within \(span.text)") }
            for bucket in RetentionPolicy.Bucket.allCases {
                guard let count = left[bucket], count > 0 else { continue }
                let key = BucketKey(bucket, item.time, index)
                guard let reason = bucket.reason(key, lastKey[bucket], isOldest) else { continue }
                lastKey[bucket] = key
                if count != RetentionPolicy.unlimited { left[bucket] = count - 1 }
                reasons.append("\(reason) snapshot")
            }
            for bucket in RetentionPolicy.Bucket.allCases {
                guard let span = policy.withinBuckets[bucket], item.isWithin(span, of: newest) else { continue }
                let key = BucketKey(bucket, item.time, index)
                guard let reason = bucket.reason(key, lastKeyWithin[bucket], isOldest) else { continue }
                lastKeyWithin[bucket] = key
                reasons.append("\(reason) within \(span.text)")
            }
            if !reasons.isEmpty { verdicts[item.id] = Verdict(reasons: reasons, left: left.filter { $0.value > 0 }) }
        }
        return verdicts
    }
}

/// What two snapshots have in common that were taken in the same hour, day, … of their own wall clocks.
private struct BucketKey: Equatable {
    private let parts: [Int64]

    init(_ bucket: RetentionPolicy.Bucket, _ time: SnapshotTime, _ index: Int) {
        let day = time.day
        parts =
            switch bucket {
            case .last: [Int64(index)]
            case .hourly: [day.year, day.month, day.day, time.hour]
            case .daily: [day.year, day.month, day.day]
            case .weekly: [day.isoWeek.year, day.isoWeek.week]
            case .monthly: [day.year, day.month]
            case .yearly: [day.year]
            }
    }
}

extension RetentionPolicy.Bucket {
    fileprivate func reason(_ key: BucketKey, _ last: BucketKey?, _ isOldest: Bool) -> String? {
        key != last ? rawValue : isOldest ? "oldest \(rawValue)" : nil
    }
}

extension RetentionItem {
    func hasTags(_ wanted: [String]) -> Bool {
        wanted.allSatisfy { $0.isEmpty ? tags.isEmpty : tags.contains($0) }
    }

    /// Without a newest one everything is.
    fileprivate func isWithin(_ span: CalendarSpan, of newest: SnapshotTime?) -> Bool {
        newest.map { time > $0.less(span) } ?? true
    }
}

extension RetentionGroup.Key {
    /// "host 'desk', /home/ada/library".
    public var text: String {
        var parts: [String] = []
        if let host { parts.append("host '\(host)'") }
        if let paths { parts.append(paths.joined(separator: ", ")) }
        if let tags { parts.append("tags [\(tags.joined(separator: ", "))]") }
        return parts.isEmpty ? "the vault" : parts.joined(separator: ", ")
    }

    fileprivate func sortsBefore(_ other: Self) -> Bool {
        func row(_ key: Self) -> [String] { [key.host ?? ""] + (key.paths ?? []) + (key.tags ?? []) }
        return row(self).lexicographicallyPrecedes(row(other))
    }
}
