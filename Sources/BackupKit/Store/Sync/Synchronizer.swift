import Glibc

public struct SyncOptions: Sendable {
    /// Who asks; the hub's shares are about names. Nil: who the store synced as before. Empty: nobody.
    public var user: String?
    /// Whether `user` may be another one than before.
    public var changesUser = false
    public var dryRun = false
    /// How often a busy hub, or one that does not answer, is asked again.
    public var patience = 8
    /// Waits so many seconds; tests do not.
    public var sleep: @Sendable (Double) -> Void = { usleep(UInt32(max(0, min($0, 60)) * 1_000_000)) }
    public var elapsedSeconds: @Sendable () -> Double = { monotonicSeconds() }

    public init(user: String? = nil, dryRun: Bool = false) { (self.user, self.dryRun) = (user, dryRun) }
}

/// What a sync did, or would do.
public struct SyncResult: Sendable {
    /// Records and assets that came, and that went.
    public var pulled = 0
    public var pushed = 0
    /// Records that had changed on both sides.
    public var merged = 0
    /// Events of the hub and of this store that were the same event in two forms of its log.
    public var joined = 0
    /// Conflicts that are on the list since this sync.
    public var conflicts = 0
    /// Records that were dated more than seven days in the future, and set back.
    public var clamped = 0
    public var assetsFetched = 0
    public var assetsSent = 0
    /// Whether everything was compared because the hub's history is not the one this store knew.
    public var resynced = false
    public var held: [Held] = []
    public var findings: [Finding] = []
    /// Of a dry run: files that an earlier sync has left for this one.
    public var awaited: [String] = []

    var hasMoved: Bool { pulled + pushed + merged + joined > 0 }

    /// A hub's version of a record that is kept on this device only needs none: its user chose that.
    public var needsAttention: Bool {
        held.contains { $0.kind != .local } || conflicts > 0
            || findings.contains { $0.severity != .note }
    }
}

/// Brings a store and a hub together: pulls, merges, pushes, until nothing waits. Each page and each batch is one
/// transaction with the token or the mark that goes with it, so it may be killed anywhere and goes on the next time.
public final class Synchronizer {
    /// A record may be this much ahead of our clock: no two clocks agree.
    static let clockTolerance: Int64 = 60_000
    /// Rounds and batches in which somebody else was faster, before we give way.
    static let roundsMax = 100
    private static let fewChanges: Int64 = 100_000
    /// So often one sync begins from nothing: hubs are brought back from a backup once, and not all the time.
    private static let freshStartsMax = 10

    let store: Store
    let hub: CheckedHub
    let options: SyncOptions
    let derive: Store.Derivation
    /// Takes out of the store's records what no hub may hear.
    private let beforePush: (Store) throws -> Void
    var identity = HubIdentity(id: "", location: "", limits: HubLimits())
    var link = HubLink(hubID: "", location: "")
    var result = SyncResult()
    /// Names of what is held, so that most records need no look into that table.
    var heldIDs: Set<RecordID> = []
    /// Files that did not come while the hub had them, and whose rows this sync keeps.
    var keptAwaited: Set<ByteName> = []
    /// Read when the first publication comes.
    var citeKeys: CiteKeys?
    /// Publications that no hub has seen, by what their tombstones would be called; read when such a tombstone comes.
    var unseenListings: [String: [RecordID]]?
    /// Publications that no hub has seen from here, and that the hub has under their ids; and all that it was asked for.
    var ownListings: Set<RecordID> = []
    /// Those of them that the hub has as deleted.
    var deletedListings: Set<RecordID> = []
    var listingsAskedFor: Set<RecordID> = []
    /// Publications that no hub has seen, by the cite keys that decisions have taken from them; read when the first
    /// publication comes.
    var renamedWorks: [String: [RecordID]]?
    /// The record that is furthest ahead of this device's clock, of those whose times are kept.
    var latestAhead = Timestamp.distantPast
    var latestAheadID: RecordID?
    /// Events that came from the hub and were not here, by the keys of their local ids.
    var newEvents: Set<Int64> = []
    /// Events that moved to a record of their own in this sync.
    var eventsApart: Set<RecordID> = []
    /// Events of this store that link files of the hub since this sync has joined them with what came.
    var linkedByJoin: Set<RecordID> = []
    /// Events that were deleted here before a hub saw them, by the keys of their local ids; read when the first event comes.
    var deletedUnseen: Set<Int64>?
    /// Local ids of events that were deleted in this sync, by their keys.
    var eventsGone: Set<Int64> = []
    /// Those that came as deleted in this sync.
    var goneEvents = GoneEvents()
    /// What is later than this came in this sync, or waits for the hub.
    var changesBefore: Int64 = 0
    /// Events that have an id here and none on the hub.
    var eventsWithIDHere: [RecordID] = []
    /// Once an event had other words than that of a line without an id.
    var eventsByTime: EventsByTime?
    /// Tombstones of names that other devices have folded into records, and that were edited here since.
    var foldedEdits: [HubRecord] = []
    /// Versions that meet this store's when everything is here.
    var meetingsPutOff: [HubRecord] = []
    /// Works that are deleted then under another id of the same listing, unless they stay.
    var listingsPutOff: [(id: RecordID, deletes: [Record], reason: Overruled.Reason)] = []
    var isDecidingPutOff = false
    /// Records whose state on the hub was damaged, and which this sync has compared with the hub's.
    var unknownStates: Set<RecordID> = []
    /// Publications that two devices have deleted, each without the other: the earlier delete and the later one.
    var deletedTwice: [(first: Record, last: Record)] = []
    /// What this sync has put into quarantine.
    var overruled: [Overruled] = []
    /// What the undo history has, once somebody has asked.
    var replacedVersions: Set<UInt64>?
    /// Conflicts that arrived as records of others.
    var newConflicts: Set<RecordID> = []
    var unwritten: [Acknowledgement] = []
    var hasReturnedAssets = false
    /// Files that the hub would have by now, in a dry run that has no bytes to send.
    var playedSends: Set<SHA256Digest> = []
    /// Whether a decision has removed files here, and the hub has not heard of it.
    var removalsWait = false
    /// Whether files were not fetched, for the hub had not heard of a decision about them.
    var filesWait = false
    /// Attachments whose rows are not what the store has written: they neither go nor are replaced.
    var damagedAssets: [ByteName: DamagedRow] = [:]
    /// Read when the first new file comes.
    var assetNames: EntryNameSet?
    private var lastRequest: Double?

    public init(
        _ store: Store, _ hub: any Hub, _ options: SyncOptions = SyncOptions(),
        derive: @escaping Store.Derivation = { _, merged, _, _ in merged },
        beforePush: @escaping (Store) throws -> Void = { _ in }
    ) {
        (self.store, self.hub, self.options, self.derive) = (store, CheckedHub(hub), options, derive)
        self.beforePush = beforePush
    }

    public func run() throws -> SyncResult {
        var listed: Set<RecordID> = []
        do {
            (identity, result.findings) = try ask { try hub.identity() }
            try store.forgetBatches(of: Store.syncBatch)
            listed = Set(try store.conflicts().map(\.recordID))
            try meet()
            try holdUnreachable()
            for row in try store.changedSmallRows(of: "asset") {
                damagedAssets[ByteName(row.key)] = DamagedRow(changed: row)
            }
            try mendMemory()
            changesBefore = min(link.pushedThrough, store.changeCounter)
            try store.write { try store.shareConflicts() }
            try converse()
            // Counting the rows of a large store takes longer than a sync that moves nothing.
            if result.hasMoved || store.changeCounter < Self.fewChanges {
                // What came from the hub is not gone any more.
                store.damage.noteGone(try store.countedGoneRecords().count, from: store.path)
            }
            try store.write {
                link.syncedAt = store.clock.now()
                try store.setHubLink(link)
            }
            try forgetSyncedAssets()
        } catch let error as HubError { throw describe(error) }
        try reportConflicts(knownBefore: listed)
        try reportMissingFiles()
        reportClock()
        reportUnknownStates()
        reportOverruled()
        try reportHeirs()
        result.held = try store.held()
        try store.forgetAwaitedFiles()
        return result
    }

    /// The sync is done, whatever happens here; the next one tries again.
    private func forgetSyncedAssets() throws {
        guard !store.isPlaying else { return }
        do { try store.forgetSyncedAssets() } catch let error as BackupError where error.code != .interrupted {
            result.findings.append(
                Finding(
                    .skipped, .warning, store.path,
                    "free pages may still hold names of purged files: \(error.message)",
                    remedy: "'backup-tool store purge --confirm' finishes it"))
        }
    }

    private func converse() throws {
        var unknownTokens = 0
        var hasWaited = false
        for _ in 0..<Self.roundsMax {
            do {
                try confirmHistory()
                try pull()
                try fetchWhatWaited()
                try carryEdits()
                try settlePutOff()
                try joinEvents()
                try carryOverruled()
                try settleContested()
                try fetchAssets()
                try beforePush(store)
                let alone = try pushShares()
                // No record goes before the files that it links: that tells other devices which file a link means.
                guard try pushAssets() else { continue }
                guard try push() && alone else { continue }
                guard try pushRemovals() else { continue }
                if !filesWait || hasWaited { return }
                (filesWait, hasWaited) = (false, true)
            } catch HubError.tokenUnknown {
                unknownTokens += 1
                // After a fresh start the hub has itself given every token that it is asked about.
                guard unknownTokens < Self.freshStartsMax else { throw hub.forgetsItsTokens }
                result.resynced = true
                try startAgain()
            }
        }
        throw BackupError(
            .temporary, "others keep writing faster than this store can merge", at: identity.location,
            remedy: "try again")
    }

    // MARK: Whom we speak with

    /// Asks whether the hub still knows the newest place that this store has heard of. Where it does not, it has lost pushes
    /// of ours or gives their numbers out again, and we would not notice by `token`.
    private func confirmHistory() throws {
        guard let head = link.head, head != link.token else { return }
        _ = try ask { try hub.changes(after: head, limit: 1, for: link.user) }
    }

    /// Must run inside the `write` that takes in what the hub's answer showed.
    func hear(of head: String) throws {
        link.head = head
        try store.setHubLink(link)
    }

    private func meet() throws {
        heldIDs = Set(try store.held().map(\.id))
        guard let known = try store.hubLink() else {
            link.user = Self.name(options.user)
            return try startAgain(forgetting: false)
        }
        guard known.hubID == identity.id else {
            link.user = options.user == nil ? known.user : Self.name(options.user)
            result.resynced = true
            return try startAgain()
        }
        let otherUser = try recall(known)
        let limits = identity.limits
        try retry {
            switch $0.kind {
            case .permission: otherUser || $0.size == 0
            case .size: $0.size <= ($0.id.zone == Store.assetZone ? Int(limits.assetBytes) : limits.recordBytes)
            case .missing: try isBack($0.id)
            case .local, .damaged, .newer, .broken: false
            }
        }
    }

    /// Whether what is held is a file of this store that lies in its place again.
    private func isBack(_ id: RecordID) throws -> Bool {
        guard id.zone == Store.assetZone, let asset = try store.ifSound({ try store.asset(id.name) }) ?? nil else {
            return false
        }
        return try store.isInPlace(asset)
    }

    /// Goes on where this store and its hub were. A token passes over what its user could not read, so another user
    /// begins at the beginning. Returns whether the user is another one.
    private func recall(_ known: HubLink) throws -> Bool {
        link = known
        link.location = identity.location
        guard let named = options.user, Self.name(named) != known.user else { return false }
        if let before = known.user, !options.changesUser {
            throw BackupError(
                .refused, "this store syncs as '\(before)', not as '\(named)'", at: identity.location,
                remedy:
                    "leave out the user to sync as '\(before)', or add --change-user to sync as '\(named)' from now on")
        }
        (link.user, link.token, link.head) = (Self.name(named), nil, nil)
        return true
    }

    private static func name(_ user: String?) -> String? { user == "" ? nil : user }

    private func startAgain(forgetting: Bool = true) throws {
        try store.write {
            if forgetting { try store.forgetHub() }
            link = HubLink(hubID: identity.id, location: identity.location, user: link.user)
            try store.setHubLink(link)
        }
        heldIDs = []
        unwritten = []
    }

    /// Gives held records another try: they count as changed.
    func retry(where isWorthIt: (Held) throws -> Bool) throws {
        let again = heldIDs.isEmpty ? [] : try store.held().filter(isWorthIt)
        guard !again.isEmpty else { return }
        try store.write { for held in again { try retry(held.id) } }
    }

    /// Must run inside `write`.
    func retry(_ id: RecordID) throws {
        try release(id)
        // Assets are compared one by one whenever anything has changed.
        guard id.zone != Store.assetZone else { return _ = store.nextChange() }
        guard let stored = try store.ifSound({ try store.record(id) }) ?? nil else { return }
        try store.rewrite(stored, as: stored.record)
    }

    func release(_ id: RecordID) throws {
        if !heldIDs.isEmpty, heldIDs.remove(id) != nil { try store.release(id) }
    }

    func hold(_ id: RecordID, _ kind: Held.Kind, _ reason: String, size: Int = 0) throws {
        try store.hold(id, kind, reason, size: size)
        heldIDs.insert(id)
    }

    /// What cannot be read here neither goes nor is replaced.
    func hold(_ row: DamagedRow) throws {
        store.damage.note(row)
        try hold(row.id, .broken, "the store's own row is damaged: \(row.reason)")
    }

    /// Asks the hub, not faster than it allows, and again when it is busy or does not answer.
    func ask<Result>(_ question: () throws -> Result) throws -> Result {
        var attempt = 0
        while true {
            try Interrupt.check()
            keepPace()
            do { return try question() } catch let error as HubError where error != .tokenUnknown {
                attempt += 1
                guard attempt <= options.patience else { throw error }
                if case .busy(let seconds) = error {
                    options.sleep(seconds)
                } else {
                    options.sleep(0.1 * Double(1 << min(attempt, 8)))
                }
            }
        }
    }

    private func keepPace() {
        guard let rate = identity.limits.requestsPerSecond, rate > 0 else { return }
        let now = options.elapsedSeconds()
        let next = lastRequest.map { $0 + 1 / Double(rate) } ?? now
        if next > now { options.sleep(next - now) }
        lastRequest = max(now, next)
    }

    private func describe(_ error: HubError) -> BackupError {
        let what =
            switch error {
            case .tokenUnknown: "its history changes while we look at it"
            case .busy: "is busy"
            case .noAnswer(let reason): "does not answer: \(reason)"
            }
        return BackupError(
            .temporary, what, at: identity.location,
            remedy: "try again later; what was done is done, and the rest waits")
    }
}
