/// The one place where a hub's answers are looked at before a sync believes them: a hub is a stranger, whose numbers may be
/// of any size and whose texts may be any bytes.
///
/// What is wrong with the hub itself is an error that names it. What is wrong with one record is taken out of the answer
/// and named in `defects`, and the rest goes on.
final class CheckedHub {
    private let hub: any Hub
    private var limits = HubLimits()
    /// The tokens that this walk through the changes has gone on from.
    private var walked: Set<String> = []
    private var emptyPages = 0
    private var location = "the hub"

    /// So many pages with nothing in them are a hub that does not end.
    private static let emptyPagesMost = 10_000
    private static let tokenBytes = 1...4096

    init(_ hub: any Hub) { self.hub = hub }

    /// Who the hub is, with limits that a sync can work with, and what was wrong with those it gave.
    func identity() throws -> (identity: HubIdentity, problems: [Finding]) {
        var identity = try hub.identity()
        guard 1...256 ~= identity.id.utf8.count, !identity.id.utf8.contains(0) else {
            throw damaged("it has no id", at: identity.location)
        }
        let usable = identity.limits.usable()
        identity.limits = usable.limits
        (limits, location) = (usable.limits, identity.location)
        let problems = usable.problems.map {
            Finding(.malformed, .warning, identity.location, $0, remedy: "correct it in the hub's table 'meta'")
        }
        return (identity, problems)
    }

    func push(_ push: HubPush, by caller: String?) throws -> HubAnswer {
        switch try hub.push(push, by: caller) {
        case .accepted(let first, let before, let after):
            for token in [before, after] { try check(token) }
            guard HubRecord.versions.contains(first), HubRecord.versions.upperBound - first >= push.items.count else {
                throw damaged("it gave the version \(first)")
            }
            return .accepted(first: first, before: before, after: after)
        case .rejected(let conflicts, var refused, let head):
            try check(head)
            var defects: [HubDefect] = []
            let sound = sound(conflicts, &defects)
            let versions = Dictionary(sound.map { ($0.record.id, $0.version) }, uniquingKeysWith: max)
            // A hub's numbers grow: one that is behind what it gave out has another history.
            for item in push.items {
                guard let base = item.base, let version = versions[item.record.id] else { continue }
                if version < base { throw HubError.tokenUnknown }
            }
            for defect in defects {
                guard let index = push.items.firstIndex(where: { $0.record.id == defect.id }) else { continue }
                refused[index] = HubDefect.ofIt + defect.reason
            }
            return .rejected(conflicts: sound, refused: refused, head: head)
        }
    }

    func changes(after token: String?, limit: Int, for caller: String?) throws -> HubPage {
        if let token { walked.insert(token) } else { walked = [] }
        var page = try hub.changes(after: token, limit: limit, for: caller)
        try check(page.token)
        page.records = sound(page.records, &page.defects)
        emptyPages = page.records.isEmpty && page.defects.isEmpty ? emptyPages + 1 : 0
        guard page.more else { return page }
        guard !walked.contains(page.token), emptyPages < Self.emptyPagesMost else {
            throw damaged("it says that there are more changes and never gives them")
        }
        return page
    }

    func fetch(_ ids: [RecordID], for caller: String?) throws -> HubFetch {
        var answer = try hub.fetch(ids, for: caller)
        try check(answer.head)
        answer.records = sound(answer.records, &answer.defects)
        return answer
    }

    func missingAssets(of digests: [SHA256Digest]) throws -> Set<SHA256Digest> { try hub.missingAssets(of: digests) }

    func forgetDamagedAsset(_ digest: SHA256Digest) throws { try hub.forgetDamagedAsset(digest) }

    func putAsset(
        _ digest: SHA256Digest, size: Int64, _ write: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws { try hub.putAsset(digest, size: size, write) }

    func getAsset(_ digest: SHA256Digest, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
        try hub.getAsset(digest, body)
    }

    private func check(_ token: String) throws {
        guard Self.tokenBytes.contains(token.utf8.count), !token.utf8.contains(0) else {
            throw damaged("it gave a change token of \(token.utf8.count) bytes")
        }
    }

    private func sound(_ records: [HubRecord], _ defects: inout [HubDefect]) -> [HubRecord] {
        records.filter { record in
            guard let reason = record.problem(limits) else { return true }
            defects.append(HubDefect(id: record.record.id, reason: reason))
            return false
        }
    }

    var forgetsItsTokens: BackupError { damaged("it does not know the places in its history that it names itself") }

    private func damaged(_ what: String, at location: String? = nil) -> BackupError {
        FileHub.damaged(what, at: location ?? self.location)
    }
}

extension HubRecord {
    /// Versions that a hub can give. Sums of them and of change numbers do not overflow.
    static let versions: ClosedRange<Int64> = 1...(1 << 62)

    /// Why nobody should take this record, or nil.
    func problem(_ limits: HubLimits) -> String? {
        guard Self.versions.contains(version) else { return "has the version \(version), which no hub gives" }
        if let reason = record.nameProblem { return reason }
        if record.isLocalOnly { return "is marked as kept on one device only" }
        let most = max(limits.recordBytes, HubLimits.largestRecord)
        guard record.hubBytes <= most else { return "has \(record.hubBytes) bytes; \(most) are the most" }
        return record.id.zone == Store.assetZone ? Asset.problem(record) : nil
    }
}

extension Record {
    /// The longest name, type or id that a hub takes and a store takes from one.
    static let nameBytes = 4096

    /// What is wrong with the names of a record that goes to a hub or comes from one, or nil.
    var nameProblem: String? {
        for (what, text) in [("zone", id.zone), ("name", id.name), ("type", type), ("local id", localID)] {
            if text.isEmpty { return "has no \(what)" }
            if text.utf8.count > Self.nameBytes { return "has a \(what) of more than \(Self.nameBytes) bytes" }
            if text.utf8.contains(0) { return "has a \(what) with a zero byte in it" }
        }
        guard let deviceID, deviceID.utf8.count > Self.nameBytes else { return nil }
        return "has a device id of more than \(Self.nameBytes) bytes"
    }
}

extension HubLimits {
    /// The largest record that is taken from a hub, whatever it allows now: it may have allowed more before.
    static let largestRecord = 16 << 20
    private static let mostRecords = 10_000

    /// Limits that a sync can work with: one that is none is replaced by the usual one, and named.
    func usable() -> (limits: HubLimits, problems: [String]) {
        var (usable, problems) = (self, [String]())
        func mend<Number: BinaryInteger>(
            _ limit: WritableKeyPath<HubLimits, Number>, _ name: String, most: Number
        ) {
            let given = usable[keyPath: limit]
            usable[keyPath: limit] = min(given, most)
            guard given < 1 else { return }
            usable[keyPath: limit] = HubLimits.file[keyPath: limit]
            problems.append("its limit \(name) is \(given); \(usable[keyPath: limit]) is used instead")
        }
        mend(\.recordsPerPush, "records_per_push", most: Self.mostRecords)
        mend(\.recordsPerPage, "records_per_page", most: Self.mostRecords)
        mend(\.recordBytes, "record_bytes", most: Self.largestRecord)
        mend(\.assetBytes, "asset_bytes", most: .max)
        if let rate = requestsPerSecond, rate < 1 {
            usable.requestsPerSecond = nil
            problems.append("its limit requests_per_second is \(rate); it is not kept")
        }
        return (usable, problems)
    }
}
