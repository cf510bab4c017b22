import BackupKit

/// A real hub behind a bad line and with bad manners; all of it within the contract of `Hub`, and all of it replayable.
public final class HubSimulator: Hub {
    /// How often something goes wrong: once in so many times, 0 for never.
    public struct Manners: Sendable {
        /// The hub has forgotten the token.
        public var expires = 0
        /// A batch fails whole: nothing was done, and nobody says so.
        public var fails = 0
        /// All was done, and the answer is lost.
        public var losesAnswers = 0
        public var throttles = 0
        /// What was delivered long ago is delivered again, in the version of that time.
        public var repeats = 0
        public var reorders = 0
        /// Only a part of what is there is handed out, and it is said to be all.
        public var holdsBack = 0
        /// So many questions are answered, and then none.
        public var endsAfter: Int?

        public init() {}

        public static let all: Manners = {
            var manners = Manners()
            (manners.expires, manners.fails, manners.losesAnswers, manners.throttles) = (25, 6, 6, 8)
            (manners.repeats, manners.reorders, manners.holdsBack) = (3, 2, 4)
            return manners
        }()
    }

    public var real: any Hub
    public var manners: Manners
    private var random: SeededGenerator
    private var delivered: [HubRecord] = []
    private var answered = 0
    /// What went wrong so far, by name.
    public private(set) var mishaps: [String: Int] = [:]

    public init(_ real: any Hub, _ manners: Manners, seed: UInt64) {
        (self.real, self.manners) = (real, manners)
        random = SeededGenerator(seed: seed)
    }

    private func happens(_ once: Int, _ name: String) -> Bool {
        guard once > 0, random.chance(once) else { return false }
        mishaps[name, default: 0] += 1
        return true
    }

    private func answer<Result>(_ body: () throws -> Result) throws -> Result {
        answered += 1
        if let last = manners.endsAfter, answered > last { throw HubError.noAnswer("the line is dead") }
        if happens(manners.throttles, "throttled") { throw HubError.busy(retryAfter: 0.5) }
        if happens(manners.fails, "failed") { throw HubError.noAnswer("the line is dead") }
        let result = try body()
        if happens(manners.losesAnswers, "lost") { throw HubError.noAnswer("the answer is lost") }
        return result
    }

    public func identity() throws -> HubIdentity { try real.identity() }

    public func push(_ push: HubPush, by caller: String?) throws -> HubAnswer {
        if push.token != nil, happens(manners.expires, "expired") { throw HubError.tokenUnknown }
        return try answer { try real.push(push, by: caller) }
    }

    public func changes(after token: String?, limit: Int, for caller: String?) throws -> HubPage {
        if token != nil, happens(manners.expires, "expired") { throw HubError.tokenUnknown }
        let isHeldBack = happens(manners.holdsBack, "held back")
        var page = try answer {
            try real.changes(after: token, limit: isHeldBack ? 1 + random.below(3) : limit, for: caller)
        }
        if isHeldBack { page.more = false }
        let new = page.records
        if !delivered.isEmpty, happens(manners.repeats, "repeated") {
            for _ in 0...random.below(3) {
                page.records.insert(
                    delivered[random.below(delivered.count)], at: random.below(page.records.count + 1))
            }
        }
        if page.records.count > 1, happens(manners.reorders, "reordered") { page.records.shuffle(using: &random) }
        delivered += new
        return page
    }

    public func fetch(_ ids: [RecordID], for caller: String?) throws -> HubFetch {
        try answer { try real.fetch(ids, for: caller) }
    }

    public func missingAssets(of digests: [SHA256Digest]) throws -> Set<SHA256Digest> {
        try answer { try real.missingAssets(of: digests) }
    }

    public func forgetDamagedAsset(_ digest: SHA256Digest) throws {
        try answer { try real.forgetDamagedAsset(digest) }
    }

    public func putAsset(
        _ digest: SHA256Digest, size: Int64, _ write: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws { try answer { try real.putAsset(digest, size: size, write) } }

    public func getAsset(_ digest: SHA256Digest, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
        try answer { try real.getAsset(digest, body) }
    }

    /// Forgets what was delivered, as a hub does that is another one now.
    public func become(_ hub: any Hub) {
        real = hub
        delivered = []
    }
}
