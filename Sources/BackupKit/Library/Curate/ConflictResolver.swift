/// What a resolution did, or would do.
public struct ResolveResult: Sendable {
    public internal(set) var plan: [PlanItem] = []
    public internal(set) var findings: [Finding] = []
    /// How many conflicts went off the list, those that became pointless included.
    public internal(set) var settled = 0
    public internal(set) var batch: Int64?
}

/// Carries out what a person decided about conflicts: one batch, whatever it takes.
///
/// A decision names works: the one that stays and the one that goes. It is the same on every device, whichever of the two
/// was there first. The one that goes gets a tombstone, the one that stays is alive later than that (`Record.keptAlive`): of
/// two different decisions the later one counts, and no two decisions leave both works deleted. Fields keep the times at
/// which they were set. And a text that no publication has any more gets a tombstone under the id that its import would
/// make of it, so that importing the same file again does not begin the conflict anew.
public final class ConflictResolver {
    private let store: Store
    private var result = ResolveResult()
    private var wholeLibrary: LibraryIndex?

    private init(_ store: Store) { self.store = store }

    /// `newKey` is the cite key for a rename; one is chosen when it is nil.
    public static func resolve(
        _ ids: [Int64], with choice: ConflictChoice, newKey: String? = nil, in store: Store, dryRun: Bool = false
    ) throws -> ResolveResult {
        try store.checkTypeIndex()
        let resolver = ConflictResolver(store)
        let names = try ids.map { try ConflictDesk.conflict($0, in: store).subject }
        let (_, batch) = try store.batch(
            kind: Store.decisionBatch, source: "\(firstNames(names)) (\(choice.rawValue))",
            dryRun: dryRun
        ) {
            let waiting = Set(try store.conflicts().map(\.id))
            for (place, id) in ids.enumerated() {
                let view = try ConflictDesk.view(of: ConflictDesk.conflict(id, in: store), in: store, nil)
                // An earlier one of this very list may have settled it too.
                if place > 0, view.isMoot != nil, waiting.contains(id) { continue }
                try resolver.resolve(view, choice, newKey)
            }
            resolver.result.settled = try waiting.count - store.conflicts().count
            return ((), summary: resolver.summary(choice))
        }
        var result = resolver.result
        result.batch = batch?.id
        result.findings += store.fileFindings
        return result
    }

    private func index() throws -> LibraryIndex {
        let index = try wholeLibrary ?? LibraryIndex(store)
        wholeLibrary = index
        return index
    }

    private func summary(_ choice: ConflictChoice) -> String {
        JSON.object([
            JSON.Member("choice", .string(choice.rawValue)), JSON.Member("changed", JSON(result.plan.count)),
        ]).compact
    }

    private func resolve(_ view: ConflictView, _ choice: ConflictChoice, _ newKey: String?) throws {
        let conflict = view.conflict
        guard view.choices.contains(choice) else {
            let choices = view.choices.map(\.rawValue).joined(separator: ", ")
            throw BackupError(
                .usage, "'\(choice.rawValue)' is no way to decide about two files", at: "conflict \(conflict.id)",
                remedy: "choose one of: \(choices)")
        }
        if let moot = view.isMoot {
            throw BackupError(
                .failed, "there is nothing left to decide: \(moot)", at: "conflict \(conflict.id)",
                remedy: "'backup-tool conflicts list' shows those that wait, 'backup-tool undo --list' what was decided"
            )
        }
        if conflict.isAboutAssets {
            return try resolveAssets(conflict, choice)
        }
        guard let existing = try store.livePublication(conflict.existing),
            let incoming = try store.livePublication(conflict.incoming)
        else { throw BackupError(.failed, "is gone", at: conflict.subject) }
        switch choice {
        case .renameIncoming:
            try rekey(incoming, conflict, other: existing, newKey)
            try keepAlive(existing, incoming)
        case .renameExisting:
            try rekey(existing, conflict, other: incoming, newKey)
            try keepAlive(existing, incoming)
        case .merge:
            try isLater(existing.record, than: incoming.record)
                ? merge(incoming, into: existing) : merge(existing, into: incoming)
        case .keepExisting: try drop(incoming, for: existing)
        case .keepIncoming: try drop(existing, for: incoming)
        case .keepBoth:
            try store.keepBoth(conflict)
            try keepAlive(existing, incoming)
        }
    }

    /// Of which of two it was said last which work it is: all devices keep that one, whichever came first on them.
    private func isLater(_ one: Record, than other: Record) throws -> Bool {
        let (time, otherTime) = (try one.identityTime(), try other.identityTime())
        return time == otherTime ? precedesBytewise(one.localID, other.localID) : time > otherTime
    }

    /// Both stay, also where another device has decided otherwise before, and nobody here has heard of it yet.
    private func keepAlive(_ works: Store.StoredRecord...) throws {
        let time = works.reduce(Timestamp.distantPast) { max($0, store.timeAfter($1.record)) }
        for work in works {
            guard let now = try store.record(work.record.id), !now.record.isLocalOnly else { continue }
            try store.put(now.record.decided(at: time).keptAlive(at: time.next), replacing: now)
        }
    }
}

// MARK: - Publications

extension ConflictResolver {
    private func rekey(
        _ stored: Store.StoredRecord, _ conflict: Conflict, other: Store.StoredRecord, _ newKey: String?
    ) throws {
        let index = try index()
        let key = newKey ?? index.freeKey(like: conflict.subject)
        guard !key.isEmpty else { throw BackupError(.usage, "the new cite key is empty") }
        guard !index.isTaken(key) else {
            throw BackupError(
                .failed, "is the cite key of another publication", at: key, remedy: "choose another one with --key")
        }
        if newKey != nil,
            key.unicodeScalars.contains(where: { $0.value <= 0x20 || "\"#%\\~".unicodeScalars.contains($0) })
        {
            throw BackupError(
                .failed, "cannot be cited: blanks and \" # % \\ ~ are not allowed in a key", at: key,
                remedy: "choose another one with --key")
        }
        // Refuses a key that BibTeX could not hold.
        _ = try BibWriter.entry(type: "misc", key: key, fields: [])
        let before = try Fields.parse(stored.record.fields)
        let after = before.map { $0.name == Publication.citeKey ? Field($0.name, .string(key)) : $0 }
        try edit(stored, try Publication.derive(merged: after, local: before, other: before)) { record in
            if let old = Fields.string(Publication.citeKey, in: before) {
                record.noteRenamed(from: old, at: record.modifiedAt)
            }
        }
        index.take(key)
        try store.passOnConflicts(of: stored.record.localID, to: other.record.localID)
        // Who speaks of the old key cannot know that one of its two bearers has another name now.
        let mentions = index.mentions(of: conflict.subject)
        guard !mentions.isEmpty else { return }
        result.findings.append(
            Finding(
                .conflict, .warning, conflict.subject,
                "is still what \(mentions.joined(separator: ", ")) names; look whether '\(key)' is meant"))
    }

    private func merge(_ other: Store.StoredRecord, into kept: Store.StoredRecord) throws {
        guard kept.record.isLocalOnly == other.record.isLocalOnly else {
            let here = (kept.record.isLocalOnly ? kept : other).record.id.description
            throw BackupError(
                .refused, "is kept on this device only, and the other one is not: they cannot be merged", at: here,
                remedy: TypedCommand.quoted("store enable-cloud", [here])
                    + " gives it back first; or choose another way")
        }
        let time = store.timeAfter(kept.record, other.record)
        let (mine, theirs) = (try Fields.parse(kept.record.fields), try Fields.parse(other.record.fields))
        // It stays the work whose id it has: the title of one and the authors of another are no work.
        let names = WorkIdentity(mine).mayBeFilled(from: WorkIdentity(theirs)) ? mine : mine + theirs
        let told = Set(names.map(\.name).filter { WorkIdentity.isOfWork($0) })
        var union = try MergePolicy(now: time).union(
            other.record.without(told.union([RawText.plain, RawText.base64])), into: kept.record,
            derive: Publication.derive)
        union.noteTakenIn(other.record, at: time)
        let lost = try lost(theirs, in: Fields.parse(union.fields))
        try keep(kept, as: union, over: other, time, lost: lost)
    }

    /// What a merged publication said and the one that stays does not.
    private func lost(_ theirs: [Field], in merged: [Field]) throws -> [FieldChange] {
        let values = Fields.values(merged)
        return try theirs.filter { field in
            guard !RawText.holds(field.name) else { return false }
            guard let value = values[ByteName(field.name)] else { return true }
            // Of lists both are there.
            return try !MergePolicy.setFields.contains(field.name) && !Fields.same(value, field.value)
        }
        .map { FieldChange(name: $0.name, before: $0.value, after: nil) }
    }

    private func drop(_ other: Store.StoredRecord, for kept: Store.StoredRecord) throws {
        let time = store.timeAfter(kept.record, other.record)
        let links = Fields.strings(Publication.linkedFiles, in: try Fields.parse(other.record.fields))
        var fields = try Fields.parse(kept.record.fields)
        let present = Fields.strings(Publication.linkedFiles, in: fields)
        // A file that only the dropped one links would belong to nobody.
        let index = links.isEmpty ? nil : try index()
        let orphans = links.filter { (index?.owners(of: $0).count ?? 0) < 2 && !present.contains($0) }
        var new = kept.record
        if !orphans.isEmpty {
            let union = Field(Publication.linkedFiles, .array((present + orphans).sorted().map { .string($0) }))
            fields.removeAll { $0.name == union.name }
            fields.append(union)
            new = try new.edited(fields, at: time)
        }
        for path in orphans { index?.move(path, from: other.record.localID, to: kept.record.localID) }
        // Nobody else is to hear of what was kept on this device only.
        if !new.isLocalOnly, !other.record.isLocalOnly { new.noteKept(insteadOf: other.record, at: time) }
        try keep(kept, as: new, over: other, time)
    }

    /// The survivor is written first: a device that hears of half of this has both.
    private func keep(
        _ kept: Store.StoredRecord, as new: Record, over other: Store.StoredRecord, _ time: Timestamp,
        lost: [FieldChange] = []
    ) throws {
        try plan(new, from: kept.record)
        if !sameBytes(new.fields, kept.record.fields) { try buryText(of: kept.record) }
        let isForAll = !new.isLocalOnly
        if isForAll || new != kept.record {
            try store.put(isForAll ? new.decided(at: time).keptAlive(at: time.next) : new, replacing: kept)
        }
        try buryText(of: other.record)
        try store.bury(other, at: time)
        result.plan.append(
            PlanItem(
                action: .remove, subject: other.record.id.description, label: RecordLabel.text(of: other.record),
                changes: lost, reason: "\(kept.record.id) stays"))
        try store.passOnConflicts(of: other.record.localID, to: kept.record.localID)
    }

    private func edit(
        _ stored: Store.StoredRecord, _ fields: [Field], _ note: (inout Record) -> Void = { _ in }
    ) throws {
        let changes = FieldChange.list(from: try Fields.parse(stored.record.fields), to: fields)
        guard !changes.isEmpty else { return }
        if stored.record.type == RecordType.publication,
            changes.contains(where: { $0.name != Publication.linkedFiles })
        {
            try buryText(of: stored.record)
        }
        var record = try stored.record.edited(fields, at: store.timeAfter(stored.record))
        note(&record)
        try store.put(record, replacing: stored)
        try plan(record, from: stored.record)
    }

    private func plan(_ record: Record, from old: Record) throws {
        let changes = FieldChange.list(from: try Fields.parse(old.fields), to: try Fields.parse(record.fields))
        guard !changes.isEmpty else { return }
        result.plan.append(
            PlanItem(
                action: .update, subject: record.id.description, label: RecordLabel.text(of: record), changes: changes,
                reason: nil))
    }

    /// Leaves a tombstone where an import of a publication's text, as it is now, would add it once more.
    private func buryText(of record: Record) throws {
        guard !record.isLocalOnly else { return }
        // The id by which an import knows a text of its key, whatever else it says of its work.
        let id = try WorkID(record).twin()
        guard try store.records(localID: id).isEmpty else { return }
        var ghost = record
        ghost.localID = id
        ghost.id = try store.freeName(RecordID(zone: RecordType.libraryZone, name: id), type: record.type)
        try store.put(ghost.tombstone(at: store.timeAfter(record)), replacing: nil)
    }
}

// MARK: - Files

extension ConflictResolver {
    private func resolveAssets(_ conflict: Conflict, _ choice: ConflictChoice) throws {
        guard let existing = try store.asset(conflict.existing), let incoming = try store.asset(conflict.incoming),
            let word = FileDecision.Choice(rawValue: choice.rawValue)
        else { throw BackupError(.failed, "is gone", at: conflict.subject) }
        let versions = try versions(of: [existing, incoming])
        let decision = FileDecision(choice: word, existing: versions[0], incoming: versions[1])
        try store.note(decision, about: conflict)
        switch word {
        case .keepBoth: return
        case .keepExisting:
            try store.removeAsset(incoming)
            plan(.remove, incoming.path, reason: "\(existing.path) stays")
        case .keepIncoming: try replace(existing, by: incoming)
        }
        try relink(by: decision, from: incoming.path, to: existing.path)
    }

    private func versions(of files: [Asset]) throws -> [FileDecision.Version] {
        var owners: [ByteName: Set<String>] = [:]
        try store.forEachLinking { stored in
            for link in try Store.links(of: stored.record) {
                owners[ByteName(link), default: []].insert(stored.record.localID)
            }
        }
        return files.map { file in
            FileDecision.Version(file, owners: (owners[ByteName(file.path)] ?? []).sorted(by: precedesBytewise))
        }
    }

    /// The incoming file takes the place, and the name, of the existing one.
    private func replace(_ existing: Asset, by incoming: Asset) throws {
        let renamed = Asset(
            path: existing.path, size: incoming.size, digest: incoming.digest, isLocalOnly: incoming.isLocalOnly,
            modifiedNanoseconds: incoming.modifiedNanoseconds)
        try store.withIncomingFolder { folder in
            // A copy: the file itself waits for an undo, and readers write into the files they have open.
            let source = try store.openPlace(of: incoming)
            guard try store.rehearsal || RootDirectory(folder).copy(source, to: "file") == incoming.digest else {
                throw BackupError(
                    .failed, "is not what the store remembers; an app may have changed it", at: incoming.path,
                    remedy: "import it again, then decide")
            }
            try store.removeAsset(existing)
            try store.removeAsset(incoming)
            _ = try store.placeAsset(renamed, from: "\(folder)/file")
        }
        plan(.remove, incoming.path, reason: "takes the place of \(existing.path)")
    }

    private func plan(_ action: PlanItem.Action, _ path: String, reason: String) {
        result.plan.append(
            PlanItem(action: action, subject: path, label: lastComponent(of: path), changes: [], reason: reason))
    }

    private func relink(by decision: FileDecision, from old: String, to new: String) throws {
        let index = try index()
        for owner in index.owners(of: old) { index.move(new, from: owner, to: owner) }
        for (before, after) in try store.relink(by: decision, at: [new, old]) { try plan(after, from: before) }
    }
}
