/// What somebody decided about two versions of a file, with all that it takes to carry it out on a device where another
/// decision was carried out before: which bytes were under which of the two paths, and what linked which.
struct FileDecision: Equatable {
    enum Choice: String {
        case keepBoth = "keep-both"
        case keepExisting = "keep-existing"
        case keepIncoming = "keep-incoming"
    }

    /// A side of the conflict as it was when somebody decided.
    struct Version: Equatable {
        let size: Int64
        let digest: SHA256Digest
        let modifiedNanoseconds: Int64
        /// Local ids of the records that linked it.
        let owners: [String]

        /// Whether it was the file of that record, or of one that the record has taken in.
        func isOwned(by record: Record) -> Bool {
            let works = Set(([record.localID] + record.idsTakenIn).map { ByteName($0) })
            return owners.contains { works.contains(ByteName($0)) }
        }

        func asset(at path: String) -> Asset {
            Asset(path: path, size: size, digest: digest, modifiedNanoseconds: modifiedNanoseconds)
        }
    }

    let choice: Choice
    let existing: Version
    let incoming: Version

    /// The same files with the links that they had before anybody decided.
    var undecided: FileDecision { FileDecision(choice: .keepBoth, existing: existing, incoming: incoming) }

    /// Whether both leave the same files; who linked them may be known differently.
    func agrees(with other: FileDecision) -> Bool {
        choice == other.choice && existing.digest == other.existing.digest && incoming.digest == other.incoming.digest
    }

    /// Whether the file under the incoming one's path is one that the decision was about: the name that it frees may come to
    /// another file.
    func isAbout(_ file: SHA256Digest) -> Bool { file == existing.digest || file == incoming.digest }

    /// The files that the decision leaves under the paths of the existing and of the incoming one.
    func files(at paths: [String]) -> [(path: String, file: Asset?)] {
        guard paths.count == 2 else { return [] }
        return switch choice {
        case .keepBoth: [(paths[0], existing.asset(at: paths[0])), (paths[1], incoming.asset(at: paths[1]))]
        case .keepExisting: [(paths[0], existing.asset(at: paths[0])), (paths[1], nil)]
        case .keepIncoming: [(paths[0], incoming.asset(at: paths[0])), (paths[1], nil)]
        }
    }

    /// The fields of a record whose links are not those that the decision leaves, with these. `isTaken`: another decision
    /// has put the incoming file into the place of the existing one, so a link that came since means it there.
    func relinking(_ record: Record, at paths: [String], isTaken: Bool = false) throws -> [Field]? {
        let links = Set(try Store.links(of: record).map { ByteName($0) })
        let (first, second) = (ByteName(paths[0]), ByteName(paths[1]))
        let fields = try Fields.parse(record.fields)
        func moving(_ old: ByteName, to new: ByteName) -> [Field]? {
            RecordFiles.following([old: new.text], in: fields, type: record.type)
        }
        guard choice == .keepBoth else { return links.contains(second) ? moving(second, to: first) : nil }
        guard links.contains(first), !links.contains(second) else { return nil }
        switch (existing.isOwned(by: record), incoming.isOwned(by: record)) {
        case (true, false): return nil
        case (false, true): return moving(first, to: second)
        case (false, false): return isTaken ? moving(first, to: second) : nil
        case (true, true):
            // An event has one file of a kind.
            guard record.type == RecordType.publication else { return nil }
            return RecordFiles.linking(links.map(\.text) + [second.text], in: fields)
        }
    }
}

extension FileDecision {
    /// Nil for what is no decision about two files.
    init?(_ text: String) {
        guard let json = try? JSON(parsing: text), let choice = json["choice"]?.string.flatMap(Choice.init),
            let existing = json["existing"].flatMap(Version.init),
            let incoming = json["incoming"].flatMap(Version.init)
        else { return nil }
        (self.choice, self.existing, self.incoming) = (choice, existing, incoming)
    }

    var json: JSON {
        ["choice": .string(choice.rawValue), "existing": existing.json, "incoming": incoming.json]
    }
}

extension FileDecision.Version {
    init(_ asset: Asset, owners: [String]) {
        self.init(
            size: asset.size, digest: asset.digest, modifiedNanoseconds: asset.modifiedNanoseconds, owners: owners)
    }

    fileprivate init?(_ json: JSON) {
        guard let size = json["size"]?.integer, size >= 0,
            let digest = json["sha256"]?.string.flatMap({ SHA256Digest(hex: $0) }),
            let modified = json["modified_ns"]?.integer, let owners = json["owners"]?.array
        else { return nil }
        self.init(
            size: size, digest: digest, modifiedNanoseconds: modified, owners: owners.compactMap(\.string))
    }

    fileprivate var json: JSON {
        [
            "modified_ns": JSON(modifiedNanoseconds), "owners": .array(owners.map { .string($0) }),
            "sha256": .string(digest.hex), "size": JSON(size),
        ]
    }
}

extension Store {
    /// Whether a decision is about the files that are under these paths now.
    func counts(_ decision: FileDecision, at paths: [String]) throws -> Bool {
        guard paths.count == 2, let incoming = try ifSound({ try asset(paths[1]) }) ?? nil else { return true }
        return decision.isAbout(incoming.digest)
    }

    /// Another device's file may have the path by now.
    private func isAbout(_ decision: FileDecision, fileAt path: String) throws -> Bool {
        try (ifSound { try asset(path) } ?? nil).map { decision.isAbout($0.digest) } ?? true
    }

    /// Links follow a decision about their files. Nobody has written the records: no time changes, so no decision about a
    /// file brings back what was deleted, or gives others what is kept here. Returns what has changed. Must run inside
    /// `batch`.
    @discardableResult func relink(
        by decision: FileDecision, at paths: [String], isTaken: Bool = false
    ) throws -> [(before: Record, after: Record)] {
        // Who links another file of that name means that one.
        guard try counts(decision, at: paths) else { return [] }
        let isTaken = try isTaken && isAbout(decision, fileAt: paths[0])
        var changed: [(stored: StoredRecord, record: Record)] = []
        try forEachLinking { stored in
            guard let fields = try decision.relinking(stored.record, at: paths, isTaken: isTaken) else { return }
            var record = stored.record
            record.fields = Fields.text(fields)
            changed.append((stored, record))
        }
        // A sync is not undone, and what earlier batches brought stays theirs.
        let isSync = currentBatch?.kind == Self.syncBatch
        for (stored, record) in changed { try isSync ? rewrite(stored, as: record) : put(record, replacing: stored) }
        return changed.map { ($0.stored.record, $0.record) }
    }
}
