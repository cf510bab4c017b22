/// From the hub to the store.
extension Synchronizer {
    func pull() throws {
        while true {
            let page = try ask {
                try hub.changes(after: link.token, limit: identity.limits.recordsPerPage, for: options.user)
            }
            if page.records.isEmpty && page.token == link.token { return }
            try store.write {
                let before = store.changeCounter
                for record in page.records { try apply(record) }
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

    /// Takes the hub's version of one record. Must run inside `write`.
    func apply(_ incoming: HubRecord) throws {
        try Interrupt.check()
        guard incoming.record.id.zone != Store.assetZone else {
            do { return try applyAsset(incoming) } catch let row as DamagedRow { return try hold(row) }
        }
        var bare = incoming.record.withoutRemains()
        bare.fields = Store.oneLine(bare.fields)
        if let finding = SchemaVersion.finding(about: bare) {
            return try hold(bare.id, .newer, finding.message, size: bare.schemaVersion)
        }
        // What is merged later must be readable later, so it is read once now. What is not blocks nobody else.
        do { if !bare.isDeleted { try Fields.check(bare.fields) } } catch let error as BackupError {
            return try hold(bare.id, .damaged, "the hub's version \(error.message)")
        }
        do { try settle(bare, incoming) } catch let row as DamagedRow {
            try hold(row)
        }
    }

    private func settle(_ bare: Record, _ incoming: HubRecord) throws {
        var look = try store.lookUp(bare)
        if let seen = look.row?.hubVersion, seen >= incoming.version { return }
        if try settleIdentity(of: bare, look.row) { look = try store.lookUp(bare) }
        let (record, isClamped) = clamped(bare)
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
            if try row.isClean || store.record(change: row.change).modifiedAt < record.latestTime {
                try store.markClean(row.change)
                return try protect(record)
            }
        }
        if row.isClean {
            try replace(row, record, incoming, isClamped)
        } else {
            try merge(row, record, incoming)
        }
    }

    private func clamped(_ record: Record) -> (Record, Bool) {
        let now = store.clock.now()
        let latest = max(record.latestTime, record.createdAt, record.deletedAt ?? record.createdAt)
        guard latest.milliseconds > now.milliseconds + Self.clockTolerance else { return (record, false) }
        result.clamped += 1
        result.findings.append(
            Finding(.clockSkew, .warning, "\(record.id)", "was dated in the future; its time was set to now"))
        return store.clamp(record, to: now)
    }

    /// The copy on this device stands for the record.
    private func protect(_ record: Record) throws {
        try hold(record.id, .local, "a copy of it is kept on this device only")
    }

    private func add(_ record: Record, _ incoming: HubRecord, _ isClamped: Bool) throws {
        try store.insert(record, version: incoming.version, isClean: !isClamped)
        if isClamped { try store.setAncestor(incoming.record) }
        try arrived(record)
    }

    private func replace(
        _ row: Store.SyncRow, _ record: Record, _ incoming: HubRecord, _ isClamped: Bool
    ) throws {
        try store.replace(row.change, with: record, version: incoming.version, isClean: !isClamped)
        if isClamped { try store.setAncestor(incoming.record) }
        try arrived(record)
    }

    private func arrived(_ record: Record) throws {
        result.pulled += 1
        try release(record.id)
        if Share.isShare(record) { try retryZone(record.id.zone) }
    }

    /// Both sides have changed the record.
    private func merge(_ row: Store.SyncRow, _ record: Record, _ incoming: HubRecord) throws {
        let local = try store.record(change: row.change)
        let merge = SyncMerge { [derive] in
            try derive(record.type, $0, $1, $2)
        }
        let merged = try merge.merge(local, record, base: try store.ancestor(record.id))
        let isClean = merged.isSame(as: incoming.record.withoutRemains())
        if merged.isSame(as: local) {
            try store.noteVersion(row.change, incoming.version, isClean: isClean)
        } else {
            try store.replace(row.change, with: merged, version: incoming.version, isClean: isClean)
        }
        if isClean { try store.dropAncestor(record.id) } else { try store.setAncestor(incoming.record) }
        if merged.isSame(as: local) {
            // What came is what we sent; or ours stands, and what holds it back still does.
            if isClean { try release(record.id) }
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
            let (found, head) = try ask { try hub.fetch(group.map(\.id), for: options.user) }
            try store.write {
                for held in group {
                    // What was passed over on the way to the hub has to go there now.
                    if held.kind == .broken { try retry(held.id) } else { try release(held.id) }
                }
                for record in found { try apply(record) }
                try notePublications(found)
                try hear(of: head)
            }
        }
    }

    private func mayComeIn(_ held: Held) throws -> Bool {
        switch held.kind {
        case .local: try !store.hasLocalCopy(for: held.id)
        case .newer: SchemaVersion.refusal(of: Int(clamping: held.size), at: nil) == nil
        case .broken: try store.isAsWritten(held.id)
        case .size, .permission, .damaged, .missing: false
        }
    }
}
