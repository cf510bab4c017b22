/// From the hub to the store.
extension Synchronizer {
    func pull() throws {
        while true {
            let page = try ask {
                try hub.changes(after: link.token, limit: identity.limits.recordsPerPage, for: link.user)
            }
            if page.records.isEmpty && page.defects.isEmpty && page.token == link.token { return }
            try makeWay(for: page.records)
            try askForOwnListings(before: page.records)
            try store.write {
                let before = store.changeCounter
                for defect in page.defects where try !sendAgain(defect) {
                    try hold(
                        defect.id, .damaged, "the hub's version \(defect.reason)", size: defect.isFoundByName ? 1 : 0)
                }
                for record in page.records { try keepTakenIn(by: record.record) }
                for record in page.records { try apply(record) }
                try buryListings(page.records)
                try notePublications(page.records)
                if link.pushedThrough == before, try store.pendingRecords(after: before) == 0 {
                    // Nothing waited, and nothing that came has to go back.
                    link.pushedThrough = try store.pendingAssets(after: before) == 0 ? store.changeCounter : before
                }
                link.token = page.token
                try store.setHubLink(link)
            }
            if !page.more { return }
        }
    }

    /// Sends this device's record again where it is the very version that is damaged on the hub. Must run inside `write`.
    private func sendAgain(_ defect: HubDefect) throws -> Bool {
        guard let version = defect.version, let sent = try willSend(defect.id, knownAs: version) else { return false }
        for id in [defect.id, sent] { try release(id) }
        result.findings.append(
            Finding(
                .recordDamaged, .warning, sent.description,
                "the hub's version \(defect.reason), so this device has sent its own again",
                remedy: "check the disk that the hub is on"))
        return true
    }

    /// Puts a record or a file on the way to the hub where the hub has this very version of it.
    private func willSend(_ id: RecordID, knownAs version: Int64) throws -> RecordID? {
        // Which record it was may be what is damaged: then the version tells.
        let named = try store.ifSound { try store.record(id) } ?? nil
        let isNamed = try named.map { try store.hubVersion($0.change) == version } ?? false
        if let stored = try isNamed ? named : store.record(ofHubVersion: version) {
            try store.rewrite(stored, as: stored.record)
            return stored.record.id
        }
        guard var asset = try store.hubAsset(ofVersion: version), !asset.isWanted, asset.base != nil else { return nil }
        asset.base = nil
        try store.setHubAsset(asset)
        _ = store.nextChange()
        return RecordID(zone: Store.assetZone, name: asset.path)
    }

    /// Another device has merged records into one of which this device keeps its own copy, so the merged version is not taken
    /// here. The merged records stay on this device, or they would vanish from it. Must run inside `write`.
    private func keepTakenIn(by record: Record) throws {
        guard !record.isDeleted, !record.takenIn.isEmpty, try store.hasLocalCopy(for: record.id) else { return }
        for (name, time) in record.takenIn.sorted(by: { $0.key < $1.key }) {
            let localID = String(name.dropFirst(Record.takenInMark.count))
            for stored in try store.soundRecords(localID: localID) {
                let other = stored.record
                guard other.type == record.type, other.id.zone == record.id.zone, other.id != record.id,
                    !other.isDeleted, !other.isLocalOnly, other.latestTime <= time
                else { continue }
                let kept = try store.keepHere(stored)
                result.findings.append(
                    Finding(
                        .protected, .warning, kept.description,
                        "stays on this device: another device merged it into \(record.id), "
                            + "of which this device keeps its own copy",
                        remedy: TypedCommand.quoted("store enable-cloud", [record.id.description])
                            + " takes the merged version; then "
                            + TypedCommand.quoted("store delete", [kept.description]) + " removes this one"))
            }
        }
    }

    /// Takes the hub's version of one record. Must run inside `write`.
    func apply(_ incoming: HubRecord) throws {
        try Interrupt.check()
        guard incoming.record.id.zone != Store.assetZone else {
            do { return try applyAsset(incoming) } catch let row as DamagedRow { return try hold(row) }
        }
        var bare = incoming.record.withoutRemains()
        bare.fields = Store.oneLine(bare.fields)
        // A delete is understood whatever its schema, and a store's row holds no such number.
        if bare.isDeleted, !(1...Int(Int32.max) ~= bare.schemaVersion) { bare.schemaVersion = SchemaVersion.current }
        if let (kind, reason) = Self.problem(with: bare) {
            return try hold(bare.id, kind, "the hub's version \(reason)", size: bare.schemaVersion)
        }
        store.see(bare)
        if bare.type == RecordType.event, bare.isDeleted {
            goneEvents.ids.insert(store.hasher.key(bare.localID))
            goneEvents.beside.formUnion(bare.idsTakenIn.map { store.hasher.key($0) })
        }
        do { try settle(bare, incoming) } catch let row as DamagedRow {
            try hold(row)
        }
    }

    private func settle(_ bare: Record, _ incoming: HubRecord) throws {
        var look = try store.lookUp(bare)
        if let row = look.row, !row.isSealed {
            try store.forgetHub(of: row.change)
            look = try store.lookUp(bare)
        }
        if let seen = look.row?.hubVersion, seen >= incoming.version { return }
        if try settleIdentity(of: bare, look.row) { look = try store.lookUp(bare) }
        let (record, skew) = clamped(bare)
        let isClamped = skew == .beyondReach
        guard let row = look.row else {
            if look.hasCopy, !record.isDeleted { return try protect(record) }
            return try add(record, incoming, isClamped)
        }
        if row.isLocal {
            return record.isDeleted ? () : try protect(record)
        }
        if !row.isSameType {
            try store.moveAside(row.change)
            return try add(record, incoming, isClamped)
        }
        if look.hasCopy, !record.isDeleted, row.isDeleted {
            let tombstone = try store.record(change: row.change)
            if row.isClean || tombstone.modifiedAt < record.latestTime || record.hasTakenIn(unknownTo: tombstone)
                || !record.keptInstead(unknownTo: tombstone).isEmpty
            {
                try store.markClean(row.change)
                try protect(record)
                // A later version is no surprise; one that is older than the delete is.
                if !row.isClean, tombstone.modifiedAt >= record.latestTime { nameKeptByOthers(record) }
                return
            }
        }
        if row.isClean {
            try replace(row, record, incoming, isClamped)
        } else {
            try merge(row, record, incoming, skew)
        }
    }

    /// Why the hub's version of a record cannot be taken, or nil. What is merged later must be readable later, so it is read
    /// once now.
    private static func problem(with record: Record) -> (Held.Kind, String)? {
        if let deletedAt = record.deletedAt {
            // A delete takes a work away everywhere, so one with an invalid time is not believed.
            return deletedAt == Timestamp(milliseconds: .max)
                ? (.damaged, "has an invalid time of deletion") : nil
        }
        switch SchemaVersion.check(record.schemaVersion) {
        case .current, .needsMigration: break
        case .newerThanApp(let version):
            return (.newer, "is of schema \(version), this backup-tool knows \(SchemaVersion.current): use a newer one")
        case .incompatible(let version): return (.damaged, "is of schema \(version), which was never one")
        }
        do { try Fields.check(record.fields) } catch {
            return (.damaged, (error as? BackupError)?.message ?? "cannot be read")
        }
        return nil
    }

    /// How an arriving record is dated, as far as this device's clock can tell.
    private enum Skew { case none, ahead, beyondReach }

    /// Nobody knows whose clock is wrong, and to set times back changes who wrote later. So a record that is ahead stays as
    /// it is, and what is written here follows it (`HybridClock`). Only what that clock does not follow is set to now.
    private func clamped(_ record: Record) -> (Record, Skew) {
        let now = store.clock.now()
        let latest = max(record.latestTime, record.createdAt, record.deletedAt ?? record.createdAt)
        guard latest.milliseconds > now.milliseconds + Self.clockTolerance else { return (record, .none) }
        guard !HybridClock.isInReach(latest, of: now) else {
            if latest > latestAhead { (latestAhead, latestAheadID) = (latest, record.id) }
            return (record, .ahead)
        }
        result.clamped += 1
        result.findings.append(
            Finding(.clockSkew, .warning, "\(record.id)", "was dated in the future; its time was set to now"))
        return (store.clamp(record, to: now).0, .beyondReach)
    }

    /// One line for all records that are ahead of this device's clock.
    func reportClock() {
        guard let latestAheadID else { return }
        let minutes = (latestAhead.milliseconds - store.clock.now().milliseconds) / 60_000
        result.findings.append(
            Finding(
                .clockSkew, .note, "\(latestAheadID)",
                "is dated \(minutes) minutes ahead of this device's clock; its time was kept",
                remedy: "check the clocks of this device and of the one that wrote it"))
    }

    /// A later delete of the record covers this version, too, whether it is taken now or not.
    private func noteVersion(_ record: Record, mergedTo merged: Record? = nil) throws {
        guard !record.isDeleted, merged.map({ !sameBytes($0.fields, record.fields) }) ?? true else { return }
        try store.noteListing(of: record, as: record.id)
    }

    /// The copy on this device stands for the record.
    private func protect(_ record: Record) throws {
        try noteVersion(record)
        try hold(record.id, .local, "a copy of it is kept on this device only")
    }

    private func nameKeptByOthers(_ record: Record) {
        let id = record.id.description
        result.findings.append(
            Finding(
                .protected, .warning, id,
                "is kept on this device only, but stays on other devices, too: one of them had decided to keep it",
                remedy: "\(TypedCommand.quoted("store enable-cloud", [id])) and a sync take that version; then "
                    + "\(TypedCommand.quoted("store set-local", [id])) and a sync keep it on this device only"))
    }

    private func add(_ record: Record, _ incoming: HubRecord, _ isClamped: Bool) throws {
        try store.insert(record, version: incoming.version, isClean: !isClamped)
        if isClamped { try store.setAncestor(incoming.record) }
        if record.type == RecordType.conflict { newConflicts.insert(record.id) }
        if record.type == RecordType.event, !record.isDeleted { newEvents.insert(store.hasher.key(record.localID)) }
        try noteLinks(of: record) { nil }
        try arrived(record)
    }

    /// Counts the conflicts that are on the list since this sync, and names those that are not named yet.
    func reportConflicts(knownBefore: Set<RecordID>) throws {
        for conflict in try store.conflicts() where !knownBefore.contains(conflict.recordID) {
            result.conflicts += 1
            // What this sync has found itself is named already; one of before that waits again is not.
            let isNamed = result.findings.contains { $0.code == .conflict && $0.subject == conflict.subject }
            if isNamed, !newConflicts.contains(conflict.recordID) { continue }
            result.findings.append(
                Finding(
                    .conflict, .warning, conflict.subject,
                    conflict.isAboutAssets
                        ? "there are two versions of this file; both are kept"
                        : "two publications have this cite key; both are kept",
                    remedy: "'backup-tool conflicts list' lists the conflicts"))
        }
    }

    private func replace(
        _ row: Store.SyncRow, _ record: Record, _ incoming: HubRecord, _ isClamped: Bool
    ) throws {
        try noteLinks(of: record) { try store.record(change: row.change) }
        noteNewID(of: record, instead: row)
        if record.type == RecordType.event, !record.isDeleted {
            try store.noteReplaced(store.record(change: row.change), by: record)
        }
        try store.replace(
            row.change, knownAs: row.localID, with: record, version: incoming.version, isClean: !isClamped)
        if isClamped { try store.setAncestor(incoming.record) }
        try arrived(record)
    }

    private func arrived(_ record: Record) throws {
        result.pulled += 1
        try release(record.id)
        if Share.isShare(record) { try retryZone(record.id.zone) }
    }

    /// Both sides have changed the record.
    private func merge(
        _ row: Store.SyncRow, _ record: Record, _ incoming: HubRecord, _ skew: Skew
    ) throws {
        let local = try store.record(change: row.change)
        if try keepEdit(of: local, row, incoming) || putOff(incoming, meeting: local) { return }
        if local.isDeleted, record.isDeleted, record.type == RecordType.publication,
            local.modifiedAt != record.modifiedAt
        {
            deletedTwice.append(
                local.modifiedAt < record.modifiedAt ? (first: local, last: record) : (first: record, last: local))
        }
        let base = try store.ancestor(record.id)
        let row = row.without(base)
        // A purge also removes what the store knew of the hub's version.
        if row.isUnknown, try !store.isPurged(record.id) { unknownStates.insert(record.id) }
        let areTwo = try areTwoEvents(local, record, base: base)
        let sides = (try separated(local, from: record), try separated(record, from: local))
        var merged = try areTwo ? record : self.merged(sides.0, sides.1, base: base)
        if merged.type == RecordType.event, !merged.isDeleted, isKnown(merged, ratherBy: local.localID) {
            // The other side has not heard of the id yet.
            merged.localID = local.localID
            eventsWithIDHere.append(local.id)
        }
        let isLast = try keepLast(local, record, &merged)
        // Two clocks disagree, so their times do not tell whether somebody deleted it before or after it was brought back
        // here. What was asked for on purpose stays, and can be deleted again. Whoever knew that it was back deleted it later.
        let isLater = skew == .ahead && record.hadHeard(of: local)
        if skew != .none, merged.isDeleted, !local.isDeleted, !isLater, try local.isKeptAlive() {
            merged = try local.keptAlive(at: store.now(), known: record.modifiedAt)
        }
        // An undo takes back what was brought here, and nothing that another device has brought or written since. A tombstone
        // that is older than the undo came back with it.
        if let deletedAt = local.deletedAt, !record.isDeleted, row.hubVersion ?? 0 > 0,
            try store.isOfBatch(row.change, kind: Store.undoBatch, startedBy: deletedAt)
        {
            merged = record
        }
        if try Conflict.isContested(local, record, base: base) {
            merged = try Conflict.contested(merged, at: store.timeAfter(merged, local, record))
        }
        if try carryArrival(of: record, over: local, base: base) {
            merged = record.foldedTombstone(at: store.timeAfter(local, record))
        } else {
            try putAside(local, row, record, mergedTo: merged, base: base)
        }
        try noteVersion(record, mergedTo: merged)
        nameOutlived(local, record, mergedTo: merged, isLast: isLast)
        // Another device has brought this record, too, so neither device may undo it alone. The other one learns that from our
        // version, which is sent even where it says the same.
        let isOthersToo = row.hubVersion == nil && !merged.isDeleted
        let isKnown = merged.isSame(as: incoming.record.withoutRemains())
        let isClean = isKnown && !isOthersToo
        if merged.isSame(as: local), !isOthersToo {
            try store.noteVersion(row.change, incoming.version, isClean: isClean)
        } else {
            try store.replace(
                row.change, knownAs: row.localID, with: merged, version: incoming.version, isClean: isClean)
        }
        if isClean { try store.dropAncestor(record.id) } else { try store.setAncestor(incoming.record) }
        noteNewID(of: merged, instead: row)
        try store.noteReplaced(local, by: merged)
        if areTwo { try keepApart(local, from: merged, base: base) }
        if merged.isSame(as: local) {
            // What came is what we sent; or ours stands, and what holds it back still does.
            if isKnown { try release(record.id) }
        } else {
            result.merged += 1
            try arrived(merged)
        }
    }

    /// Versions that could not come in when the hub showed them, and whose reason is gone since, come in now: the token has
    /// moved on, and will not show them again.
    func fetchWhatWaited() throws {
        guard !heldIDs.isEmpty else { return }
        let waiting = try store.held().filter(mayComeIn)
        for start in stride(from: 0, to: waiting.count, by: identity.limits.recordsPerPush) {
            let group = waiting[start..<min(waiting.count, start + identity.limits.recordsPerPush)]
            let answer = try ask { try hub.fetch(group.map(\.id), for: link.user) }
            try makeWay(for: answer.records)
            try askForOwnListings(before: answer.records)
            let found = Set(answer.records.map(\.record.id) + answer.defects.map(\.id))
            try store.write {
                for held in group {
                    switch held.kind {
                    // What was passed over on the way to the hub has to go there now.
                    case .broken: try retry(held.id)
                    case .local: try release(held.id)
                    // It stays held as long as the hub has it like that.
                    case .damaged where held.size == 1 && !found.contains(held.id): try release(held.id)
                    default: break
                    }
                }
                for found in answer.records where Self.problem(with: found.record) == nil {
                    try release(found.record.id)
                    try apply(found)
                }
                try notePublications(answer.records)
                try hear(of: answer.head)
            }
        }
    }

    private func mayComeIn(_ held: Held) throws -> Bool {
        switch held.kind {
        case .local: try !store.hasLocalCopy(for: held.id)
        case .newer: SchemaVersion.refusal(of: Int(clamping: held.size), at: nil) == nil
        case .broken: try store.isAsWritten(held.id)
        case .damaged: !held.id.zone.isEmpty
        case .size, .permission, .missing: false
        }
    }
}
