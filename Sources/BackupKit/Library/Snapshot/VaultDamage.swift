/// Says whom damage of a vault hits: a path tells nobody which publication has lost its PDF, or which records are gone.
/// What can still be read is asked: the snapshot's own list of records, whatever pieces of it are left; then those of the
/// other snapshots, the nearest in time first; then the files for people: the bibliography, which does not know local ids,
/// notes, and events.
final class VaultDamage {
    private struct Known {
        var names: [String: AffectedRecord] = [:]
        /// Who links an attachment.
        var owners: [String: [String]] = [:]
        /// No piece was lost.
        var isWhole = true
    }

    private let vault: Vault
    private let index: BlobIndex
    private let reader: BlobReader
    private let snapshots: [Snapshot]
    /// By the pieces of the file: snapshots mostly share it.
    private var lists: [[SHA256Digest]: Known] = [:]

    private init(_ vault: Vault, _ snapshots: [Snapshot]) throws {
        self.vault = vault
        self.snapshots = snapshots
        index = try vault.loadIndex().blobs
        reader = try BlobReader(vault)
    }

    static func name(_ affected: inout [VaultCheckResult.Affected], in vault: Vault) throws {
        let damage = try VaultDamage(vault, try vault.snapshots().snapshots)
        for number in affected.indices {
            try Interrupt.check()
            affected[number].records = damage.records(hitBy: affected[number])
        }
    }

    private func records(hitBy affected: VaultCheckResult.Affected) -> [AffectedRecord] {
        guard affected.snapshot.file.isLibrary else { return [] }
        let root = "/\(VaultBackup.root)/"
        let isAll = affected.path == "/" || affected.path == root.dropLast()
        guard isAll || affected.path.hasPrefix(root) else { return [] }
        let path = isAll ? "" : String(affected.path.dropFirst(root.utf8.count))
        let own = known(affected.snapshot)
        if isAll || path == Layout.records {
            var lost = reference(for: affected.snapshot).names
            // What came later was not in it, unless some clock was wrong, and what the other pieces still have is not lost.
            let time = affected.snapshot.time.timestamp
            let before = lost.filter { ($0.value.created ?? time) <= time }
            if !before.isEmpty { lost = before }
            if !isAll { for id in own.names.keys { lost[id] = nil } }
            return lost.values.sorted()
        }
        let near = own.isWhole ? own : reference(for: affected.snapshot)
        var ids: Set<String> = []
        for known in [own, near] {
            for (file, owners) in known.owners where file == path || file.hasPrefix("\(path)/") {
                ids.formUnion(owners)
            }
        }
        return ids.compactMap { own.names[$0] ?? near.names[$0] }.sorted()
    }

    /// The nearest snapshot that has its whole list; else all that any has, and what the files for people say.
    private func reference(for snapshot: Snapshot) -> Known {
        let near = snapshots.filter {
            $0.id != snapshot.id && $0.file.isLibrary && $0.file.hostname == snapshot.file.hostname
        }.sorted {
            abs($0.time.seconds - snapshot.time.seconds) < abs($1.time.seconds - snapshot.time.seconds)
        }
        var all = Known()
        for other in [snapshot] + near {
            let known = known(other)
            all.names.merge(known.names) { first, _ in first }
            all.owners.merge(known.owners) { first, _ in first }
            if known.isWhole { return all }
        }
        let keys = Set(all.names.values.map(\.citeKey))
        for entry in entries(of: snapshot) where !keys.contains(entry.citeKey) {
            all.names["@\(entry.citeKey)"] = entry
        }
        for record in notes(of: snapshot) + events(of: snapshot) {
            all.names[record.localID] = all.names[record.localID] ?? record
        }
        return all
    }

    // MARK: Reading what is left

    private func known(_ snapshot: Snapshot) -> Known {
        guard let content = content(Layout.records, of: snapshot) else { return Known(isWhole: false) }
        if let known = lists[content] { return known }
        var known = Known()
        var rest: [UInt8] = []
        // A line that begins in a lost piece is none.
        var isTorn = false
        for id in content {
            do {
                try reader.read(BlobHandle(.data, id), in: index) { rest += $0 }
            } catch {
                (known.isWhole, isTorn) = (false, true)
                rest = []
                continue
            }
            var lines = rest.split(separator: 0x0A, omittingEmptySubsequences: false)
            rest = Array(lines.popLast() ?? [])
            if isTorn, !lines.isEmpty {
                lines.removeFirst()
                isTorn = false
            }
            for line in lines { note(line, &known) }
        }
        lists[content] = known
        return known
    }

    private func note(_ line: ArraySlice<UInt8>, _ known: inout Known) {
        guard let json = line.withUnsafeBytes({ try? JSON(parsing: $0) }), let id = json["localId"]?.string else {
            return
        }
        let fields = json["fields"]
        known.names[id] = AffectedRecord(
            localID: id, json["recordType"]?.string ?? "", fields,
            json["createdAt"]?.string.flatMap { Timestamp(iso8601: $0) })
        for file in fields?[Publication.linkedFiles]?.array ?? [] {
            if let path = file.string { known.owners[path, default: []].append(id) }
        }
    }

    /// The entries of the bibliography, in the pieces of it that are left.
    private func entries(of snapshot: Snapshot) -> [AffectedRecord] {
        var found: [AffectedRecord] = []
        var text: [UInt8] = []
        func take() {
            text.withUnsafeBytes { bytes in
                BibParser.parse(bytes) { block in
                    guard block.kind == .entry else { return }
                    let title = block.field(named: "title").map { block.value(of: $0) } ?? ""
                    found.append(AffectedRecord(localID: "", citeKey: block.key, title: title))
                }
            }
            text = []
        }
        for id in content(Layout.bibliography, of: snapshot) ?? [] {
            do { try reader.read(BlobHandle(.data, id), in: index) { text += $0 } } catch { take() }
        }
        take()
        return found
    }

    private func notes(of snapshot: Snapshot) -> [AffectedRecord] {
        let text = reader.text(of: content(Layout.notes, of: snapshot) ?? [], in: index)
        let notes = text?.withUnsafeBytes { try? NotesFile.read($0, time: snapshot.time.timestamp) { _ in } }
        return (notes ?? []).map { AffectedRecord($0.note) }
    }

    private func events(of snapshot: Snapshot) -> [AffectedRecord] {
        guard let library = library(of: snapshot),
            let folder = reader.node(String(Layout.eventFolder.dropLast()), of: library, in: index)?.subtree,
            let days = try? reader.nodes(of: folder, in: index)
        else { return [] }
        return days.flatMap { day -> [AffectedRecord] in
            var occurrences: [String: Int] = [:]
            return (reader.text(of: day.content ?? [], in: index) ?? []).split(separator: 0x0A).compactMap { line in
                let event = line.withUnsafeBytes { line in
                    try? EventLine.record(line) { text in
                        occurrences[text, default: 0] += 1
                        return occurrences[text] ?? 1
                    }
                }
                return event.map(AffectedRecord.init)
            }
        }
    }

    /// The pieces of a file of the layout; nil where the snapshot has none or its folder cannot be read.
    private func content(_ name: String, of snapshot: Snapshot) -> [SHA256Digest]? {
        library(of: snapshot).flatMap { reader.node(name, of: $0, in: index)?.content }
    }

    /// The folder's list; nil where it cannot be read, which is a finding already.
    private func library(of snapshot: Snapshot) -> SHA256Digest? {
        snapshot.file.tree.flatMap { reader.node(VaultBackup.root, of: $0, in: index)?.subtree }
    }
}

extension Vault {
    /// `check`, with the records that damage hits.
    public func checkLibraries(_ packs: CheckedPacks = .none, progress: Progress = .none) throws -> VaultCheckResult {
        try check(packs, progress: progress) { try VaultDamage.name(&$0, in: self) }
    }
}

extension AffectedRecord {
    fileprivate init(localID: String, _ type: String, _ fields: JSON?, _ created: Timestamp?) {
        self.init(
            localID: localID, citeKey: fields?[Publication.citeKey]?.string ?? "",
            title: fields?["title"]?.string ?? type)
        self.created = created
    }

    fileprivate init(_ record: Record) {
        self.init(localID: record.localID, record.type, try? JSON(parsing: record.fields), record.createdAt)
    }
}
