/// Where devices meet: the seam between the engine and whatever keeps everybody's records. `HubConformanceTests` checks
/// this contract against every hub there is.
///
/// **The hub serializes.** It keeps one current version of each record and of each tombstone, for ever. Versions are
/// numbers that grow over the whole hub. Whoever pushes says for each record on which version it is based; a base that is
/// not the current version is a conflict, and then the hub has done nothing. So whoever loses a race merges and pushes
/// again, and a device without changes of its own holds exactly what the hub holds. The hub never merges, and never looks
/// into fields, but for those of a `Share`.
///
/// **Every call may fail, time out, or have been done although its answer was lost**, and every call may be repeated.
/// A push that is repeated with its `id` is done once and answered alike. Errors are `HubError` for what the caller can
/// deal with, and `BackupError` for the rest.
///
/// **Tokens** are opaque text. A page's token goes on behind it. Changes come at least once, in any order within what
/// lies between two tokens: a version that the caller has seen already, or one older than that, means nothing new.
///
/// **Callers** have a name or none. In a zone with a live `Share`, its owner may read and write everything, a participant
/// what the permission says, nobody else anything; only the owner writes the share itself. Zones without a share are
/// everybody's. When somebody is let into a zone, its records come after the tokens that this caller has already.
public protocol Hub: AnyObject {
    /// Who the hub is and what it takes. The id changes when the hub is made anew.
    func identity() throws -> HubIdentity

    /// All of the records or none of them. `token` is the last one the caller got, or nil; one that the hub does not know
    /// any more refuses the push, because the bases are of another history then.
    func push(_ push: HubPush, by caller: String?) throws -> HubAnswer

    /// What changed after `token`, at most `limit` records; nil begins at the beginning.
    func changes(after token: String?, limit: Int, for caller: String?) throws -> HubPage

    /// The current versions of those of these records that the hub has and the caller may read, and a token of the place
    /// where the hub is now.
    func fetch(_ ids: [RecordID], for caller: String?) throws -> HubFetch

    /// Which of these assets the hub does not have the bytes of.
    func missingAssets(of digests: [SHA256Digest]) throws -> Set<SHA256Digest>

    /// Looks at the bytes kept under a digest, and forgets them if they are others.
    func forgetDamagedAsset(_ digest: SHA256Digest) throws

    /// Keeps an asset's bytes under their digest, durably and whole or not at all. `write` hands out the bytes in order.
    func putAsset(
        _ digest: SHA256Digest, size: Int64, _ write: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void)
        throws

    /// Hands out the bytes kept under a digest; false when there are none.
    func getAsset(_ digest: SHA256Digest, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool
}

public struct HubIdentity: Sendable, Equatable {
    public var id: String
    /// What people call it: a path, an address.
    public var location: String
    public var limits: HubLimits

    public init(id: String, location: String, limits: HubLimits) {
        (self.id, self.location, self.limits) = (id, location, limits)
    }
}

/// What a hub takes.
public struct HubLimits: Sendable, Equatable {
    public var recordsPerPush = 400
    public var recordsPerPage = 400
    public var recordBytes = CloudLimits.recordBytes
    public var assetBytes = CloudLimits.assetBytes
    /// Requests a second of one caller; nil: as fast as it goes.
    public var requestsPerSecond: Int?

    public init() {}
}

/// A record as the hub has it.
public struct HubRecord: Sendable, Equatable {
    public var record: Record
    public var version: Int64

    public init(_ record: Record, version: Int64) { (self.record, self.version) = (record, version) }
}

public struct HubPush: Sendable {
    public struct Item: Sendable {
        public var record: Record
        /// The version that this one takes the place of; nil: the caller knows of none.
        public var base: Int64?

        public init(_ record: Record, base: Int64?) { (self.record, self.base) = (record, base) }
    }

    /// Made by the caller, new for each push but the repeated one.
    public var id: String
    public var items: [Item]
    public var token: String?

    public init(id: String = RandomID.make(), items: [Item], after token: String?) {
        (self.id, self.items, self.token) = (id, items, token)
    }
}

public enum HubAnswer: Sendable, Equatable {
    /// The items have the versions `first`, `first + 1`, … in their order. When `before` is the caller's token, nobody else
    /// wrote meanwhile, and `after` is its new one.
    case accepted(first: Int64, before: String, after: String)
    /// Nothing was done. `conflicts` are the hub's versions of what is newer there; `refused` are positions in the push that
    /// the caller may not write, with the reason; `head` is a token of the place where the hub is now.
    case rejected(conflicts: [HubRecord], refused: [Int: String], head: String)
}

public struct HubPage: Sendable, Equatable {
    public var records: [HubRecord]
    /// What lies there too and cannot be handed out.
    public var defects: [HubDefect]
    public var token: String
    public var more: Bool

    public init(records: [HubRecord], defects: [HubDefect] = [], token: String, more: Bool) {
        (self.records, self.defects, self.token, self.more) = (records, defects, token, more)
    }
}

public struct HubFetch: Sendable, Equatable {
    public var records: [HubRecord]
    public var defects: [HubDefect]
    public var head: String

    public init(records: [HubRecord], defects: [HubDefect] = [], head: String) {
        (self.records, self.defects, self.head) = (records, defects, head)
    }
}

/// A record of a hub that nobody can take.
public struct HubDefect: Sendable, Equatable {
    /// A record whose name cannot be read goes by its row, in a zone without a name.
    public var id: RecordID
    /// What is wrong, as the end of a sentence: "is not UTF-8".
    public var reason: String
    /// The version that is damaged; nil where that is not known.
    public var version: Int64?

    public init(id: RecordID, reason: String, version: Int64? = nil) {
        (self.id, self.reason, self.version) = (id, reason, version)
    }

    /// How the reason begins why a record stays here whose version on the hub is damaged.
    static let ofIt = "the hub's version of it "

    /// Whether the hub itself has found it: then it knows the row by that name, also where the name is what is damaged.
    var isFoundByName: Bool { version != nil && ![id.zone, id.name].contains { $0.isEmpty || $0.utf8.contains(0) } }

    static func row(_ number: Int64) -> RecordID { RecordID(zone: "", name: "row \(number) of the hub") }
}

public enum HubError: Error, Sendable, Equatable {
    /// The hub was reset, or brought back from a backup, since the token was given out; or it is another hub.
    case tokenUnknown
    /// Asked too often or just now in use; ask again after so many seconds.
    case busy(retryAfter: Double)
    /// No answer. Whether the request was done is not known.
    case noAnswer(String)
}
