/// One difference between two libraries.
public struct Difference: Sendable, Equatable {
    public enum Change: String, Sendable { case added, removed, deleted, changed }

    public let change: Change
    public let kind: Kind
    /// The record's identity, the attachment's path, the setting's key.
    public let subject: String
    public let label: String
    /// Which fields differ, with both values.
    public let fields: [FieldChange]
}

/// Compares two libraries, each a store or anything that can be restored. What is no store is brought into a scratch
/// store first, so both sides are read in one way.
public enum Differ {
    public static func diff(
        _ one: String, _ other: String, limits: ReadLimits = ReadLimits(),
        _ body: (Difference) throws -> Void
    ) throws -> [Finding] {
        let sides = try (Side(one, limits), Side(other, limits))
        if let findings = try findingsOfEquals([sides.0, sides.1]) { return findings }
        var findings: [Finding] = []
        try withStore(sides.0, limits, &findings) { left, findings in
            try withStore(sides.1, limits, &findings) { right, findings in
                try left.read {
                    try right.read {
                        findings += try records(left, right, body)
                        var files = try (DifferFiles(left, of: one), DifferFiles(right, of: other))
                        try assets(&files.0, &files.1, body)
                        findings += files.0.findings + files.1.findings
                        try settings(left, right, body)
                    }
                }
            }
        }
        return findings
    }

    /// A store, or what a backup says of itself.
    private struct Side {
        let path: String
        /// Nil for a store.
        let backup: OpenedLayout?

        init(_ path: String, _ limits: ReadLimits) throws {
            self.path = path
            backup = try Store.isStore(path) ? nil : Restorer.open(path, limits: limits)
        }
    }

    /// What is wrong with two sides whose content digests are equal: nothing differs then, and of a backup only what it says
    /// of itself is read. Nil where the digests differ or are not known.
    private static func findingsOfEquals(_ sides: [Side]) throws -> [Finding]? {
        let digests = sides.compactMap(\.backup).map(\.contentDigest)
        guard let first = digests.first, let digest = first, digests.allSatisfy({ $0 == digest }) else { return nil }
        var findings: [Finding] = []
        for side in sides where side.backup == nil {
            let store = try Store(side.path, .read)
            let isEqual = try store.read { () -> Bool in
                guard try store.contentDigest() == digest else { return false }
                var files = try DifferFiles(store, of: side.path)
                var areAsRemembered = true
                try store.forEachAsset { asset in
                    if try files.digest(of: asset) != asset.digest { areAsRemembered = false }
                }
                findings += files.findings
                return areAsRemembered
            }
            guard isEqual else { return nil }
            findings += store.damage.tell()
        }
        return findings
    }

    private static func withStore(
        _ side: Side, _ limits: ReadLimits, _ findings: inout [Finding],
        _ body: (Store, inout [Finding]) throws -> Void
    ) throws {
        guard let backup = side.backup else {
            let store = try Store(side.path, .read)
            try body(store, &findings)
            findings += store.damage.tell()
            return
        }
        try ScratchStore.with { store in
            var options = RestoreOptions()
            options.kinds = Set(Kind.allCases)
            options.limits = limits
            // Conflicts of the scratch store are those of the backup.
            findings += try Restorer.restore(side.path, opened: backup, into: store, options).findings
                .filter { $0.severity != .note && $0.code != .conflict }
            try body(store, &findings)
        }
    }

    /// Returns the rows that are not what their stores have written: nothing is equal to them.
    private static func records(
        _ left: Store, _ right: Store, _ body: (Difference) throws -> Void
    ) throws -> [Finding] {
        var changed: [Finding] = []
        func next(_ cursor: RecordCursor, of store: Store) throws -> Record? {
            guard let stored = try cursor.next() else { return nil }
            if !stored.isAsWritten {
                changed.append(
                    Finding(
                        .recordChanged, .damage, "\(stored.record.id)", DamagedRow.changed,
                        remedy: store.hasher.isWithoutSeed ? StoreRemedy.exportIntoNewStore : StoreRemedy.repairFrom))
            }
            return stored.record
        }
        let lefts = try left.recordCursor()
        let rights = try right.recordCursor()
        var mine = try next(lefts, of: left)
        var theirs = try next(rights, of: right)
        while mine != nil || theirs != nil {
            try Interrupt.check()
            if let old = mine, theirs.map({ old.id < $0.id }) ?? true {
                if !old.isDeleted { try body(difference(.removed, old)) }
                mine = try next(lefts, of: left)
            } else if let new = theirs, mine.map({ new.id < $0.id }) ?? true {
                if !new.isDeleted { try body(difference(.added, new)) }
                theirs = try next(rights, of: right)
            } else if let old = mine, let new = theirs {
                if let found = try compare(old, new) { try body(found) }
                mine = try next(lefts, of: left)
                theirs = try next(rights, of: right)
            }
        }
        return changed
    }

    private static func difference(_ change: Difference.Change, _ record: Record) -> Difference {
        Difference(
            change: change, kind: Kind(recordType: record.type), subject: record.id.description,
            label: RecordLabel.text(of: record), fields: [])
    }

    private static func compare(_ old: Record, _ new: Record) throws -> Difference? {
        if old.isDeleted || new.isDeleted {
            if old.isDeleted == new.isDeleted { return nil }
            return new.isDeleted ? difference(.deleted, old) : difference(.added, new)
        }
        if sameBytes(old.fields, new.fields) { return nil }
        let before = try Fields.parse(old.fields)
        let after = try Fields.parse(new.fields)
        var changes: [FieldChange] = []
        for field in before {
            let now = Fields.value(field.name, in: after)
            if let now, try Fields.same(now, field.value) { continue }
            changes.append(FieldChange(name: field.name, before: field.value, after: now))
        }
        for field in after where Fields.value(field.name, in: before) == nil {
            changes.append(FieldChange(name: field.name, before: nil, after: field.value))
        }
        guard !changes.isEmpty else { return nil }
        return Difference(
            change: .changed, kind: Kind(recordType: new.type), subject: new.id.description,
            label: RecordLabel.text(of: new), fields: changes)
    }

    private static func assets(
        _ left: inout DifferFiles, _ right: inout DifferFiles, _ body: (Difference) throws -> Void
    ) throws {
        func report(_ change: Difference.Change, _ path: String) throws {
            try body(Difference(change: change, kind: .attachments, subject: path, label: "", fields: []))
        }
        try left.store.forEachAsset { asset in
            guard let mine = try left.digest(of: asset) else { return }
            guard let theirs = try right.digest(of: asset.path) else { return try report(.removed, asset.path) }
            if theirs != mine { try report(.changed, asset.path) }
        }
        try right.store.forEachAsset { asset in
            guard try right.digest(of: asset) != nil else { return }
            if try left.digest(of: asset.path) == nil { try report(.added, asset.path) }
        }
    }

    private static func settings(_ left: Store, _ right: Store, _ body: (Difference) throws -> Void) throws {
        func values(_ store: Store) throws -> [ByteName: String] {
            Dictionary(try store.settings().map { (ByteName($0.name), $0.value) }, uniquingKeysWith: { $1 })
        }
        let (mine, theirs) = try (values(left), values(right))
        let keys = Set(mine.keys).union(theirs.keys).sorted { precedesBytewise($0.text, $1.text) }
        for key in keys {
            if let old = mine[key], let new = theirs[key], try Fields.same(old, new) { continue }
            let change: Difference.Change = mine[key] == nil ? .added : theirs[key] == nil ? .removed : .changed
            let fields = [FieldChange(name: key.text, before: mine[key], after: theirs[key])]
            try body(Difference(change: change, kind: .settings, subject: key.text, label: "", fields: fields))
        }
    }
}

extension OpenedLayout {
    /// The content digest of a whole library, as its manifest says it. Nil where it speaks of a part only, or something is wrong
    /// with the backup as far as it was opened.
    fileprivate var contentDigest: SHA256Digest? {
        guard case .own(let manifest) = manifest, findings.isEmpty, manifest.omitted.isEmpty,
            Set(manifest.kinds) == Set(Kind.allCases)
        else { return nil }
        let sizes = Dictionary(entries.map { (ByteName($0.path), $0.size) }, uniquingKeysWith: { $1 })
        let isWhole = expected.allSatisfy { sizes[ByteName($0.key)] == $0.value.size }
        return isWhole ? manifest.contentDigest : nil
    }
}
