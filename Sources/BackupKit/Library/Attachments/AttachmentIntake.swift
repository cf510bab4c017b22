/// Takes attachments into a store.
extension Intake {
    /// Takes an attachment that waits, durable, in the incoming folder; nil in a dry run. Returns the path that it has in
    /// the store. `isMeantElsewhere`: records that it does not come for name its path, and wait for a file of theirs.
    @discardableResult
    func take(_ asset: Asset, from staged: String?, isMeantElsewhere: Bool = false) throws -> String? {
        do { return try takeSound(asset, from: staged, isMeantElsewhere) } catch let row as DamagedRow {
            result.rejected += 1
            note(row.inTheWay)
            return nil
        }
    }

    private func takeSound(_ asset: Asset, from staged: String?, _ isMeantElsewhere: Bool) throws -> String? {
        var asset = asset
        if policy == .quarantine {
            guard let aside = try aside(asset) else {
                result.attachmentsUnchanged += 1
                return asset.path
            }
            asset = aside
        }
        if asset.size > CloudLimits.assetBytes {
            note(.oversize(asset.path))
        }
        if overwrite, let existing = try store.asset(asset.path), !stays(existing, beside: asset) {
            if try store.isAsIt(existing, asset, looksInside: looksInside) {
                result.attachmentsUnchanged += 1
                return asset.path
            }
            return try replace(existing, by: asset, from: staged)
        }
        let isMeantElsewhere = try isMeantElsewhere || isOfOthers(asset)
        guard let place = try place(of: asset, isMeantElsewhere) else { return nil }
        if try isMeantElsewhere || store.belongsToAnother(asset.path, asset.digest) {
            return try takeBesideAnother(asset, as: place, from: staged, isMeantElsewhere)
        }
        if !sameBytes(place, asset.path), try store.asset(place) == nil {
            note(
                Finding(
                    .conflict, .warning, asset.path,
                    "another file or folder has that name, or one that differs only in case or Unicode form; "
                        + "kept as \(place)"))
        }
        asset = asset.renamed(place)
        if let (known, change) = try harm(to: asset) {
            guard let change, !isAskedFor else { return try replace(known, by: asset, from: staged) }
            note(change)
            result.attachmentsUnchanged += 1
            return asset.path
        }
        // The store remembers it, so when it is added its file was lost.
        let isKnown = try store.asset(asset.path)?.digest == asset.digest
        // In a dry run the rows are written, too, and rolled back: what comes later depends on them.
        let isPlaced = staged != nil || store.rehearsal
        switch try isPlaced ? store.placeAsset(asset, from: staged) : store.planAsset(asset) {
        case .added where isKnown:
            result.attachmentsMended += 1
            plan(.update, asset.path, reason: "its file was lost")
        case .added:
            result.attachmentsAdded += 1
            plan(.add, asset.path)
        case .unchanged, .conflict, .known: result.attachmentsUnchanged += 1
        }
        return asset.path
    }

    /// Takes a file that has the name of another one.
    private func takeBesideAnother(
        _ asset: Asset, as place: String, from staged: String?, _ isMeantElsewhere: Bool
    ) throws -> String? {
        // The store has it under this name already.
        if try store.asset(place) != nil { return try takeSound(asset.renamed(place), from: staged, false) }
        if staged != nil || store.rehearsal { try store.placeAsset(asset, from: staged, as: place) }
        result.attachmentsAdded += 1
        plan(.add, asset.renamed(place).path)
        note(
            Finding(
                .conflict, .warning, asset.path,
                isMeantElsewhere
                    ? "has the name of a file that another record names and that is not here; kept as \(place)"
                    : "differs from the file of that name in the store; kept as \(place)"))
        return place
    }

    /// Decides where the files of a backup will lie, so that its records link them there: a link means the backup's file.
    /// `areTaken` is false where the files stay in the backup; then only those that the store has count. `others` are those that
    /// the backup speaks of, and cannot give.
    func planPlaces(of files: [Asset], others: [Asset], areTaken: Bool, _ naming: NamingRecords) throws {
        moved = [:]
        let digests = (others + files).map { (ByteName($0.path), $0.digest) }
        backupLinks = try BackupLinks(
            store, digests: Dictionary(digests, uniquingKeysWith: { $1 }),
            coming: areTaken ? Set(files.map { ByteName($0.path) }) : [])
        guard policy != .quarantine else { return }
        if areTaken { backupLinks?.meantElsewhere = try pathsMeantElsewhere(of: files, naming) }
        store.comingNames = EntryNameSet()
        for file in files { _ = try? store.comingNames.insert(file.path) }
        for file in files {
            guard let known = try store.ifSound({ try place(of: file, isOfOthers(file)) }) ?? nil,
                !sameBytes(known, file.path)
            else {
                continue
            }
            if try areTaken || store.asset(known)?.digest == file.digest { moved[ByteName(file.path)] = known }
        }
        backupLinks?.coming.formUnion(moved.keys)
    }

    /// Whether a file of a backup is left out and counted: the store has it no more, and only deleted records name it.
    func staysDeleted(_ name: String) throws -> Bool {
        let path = moved[ByteName(name)] ?? name
        guard namedByDeleted.contains(ByteName(path)), try store.ifSound({ try store.asset(path) }) ?? nil == nil else {
            return false
        }
        guard try !isNamedByLiving(path) else { return false }
        result.attachmentsLeftDeleted += 1
        return true
    }

    /// Where a file will lie; nil when there is no place for it.
    private func place(of asset: Asset, _ isMeantElsewhere: Bool = false) throws -> String? {
        let version = AssetVersion(path: ByteName(asset.path), digest: asset.digest)
        if let known = places[version] { return known }
        let place: String?
        if let known = try store.asset(asset.path) {
            let isItsPlace =
                try overwrite && !stays(known, beside: asset) || !store.belongsToAnother(asset.path, asset.digest)
            place = isItsPlace ? asset.path : try nameBeside(asset)
        } else if try isMeantElsewhere || store.belongsToAnother(asset.path, asset.digest) {
            place = try nameBeside(asset)
        } else if isFromImbib, let known = try placeInOtherFolder(asset) {
            place = known
        } else {
            place = try separated(asset)
        }
        places.updateValue(place, forKey: version)
        return place
    }

    /// Where the store has the file of an imbib backup below the folder of attachments that imbib does not have.
    private func placeInOtherFolder(_ asset: Asset) throws -> String? {
        guard let folder = RecordFiles.folders.first(where: asset.path.hasPrefix) else { return nil }
        let name = asset.path.dropFirst(folder.count)
        return try RecordFiles.folders.map { $0 + name }.first { try store.asset($0)?.digest == asset.digest }
    }

    /// Whether records that stay mean another file by its path, which is on other devices only.
    private func isOfOthers(_ asset: Asset) throws -> Bool {
        if backupLinks?.meantElsewhere.contains(ByteName(asset.path)) == true { return true }
        guard try store.asset(asset.path) == nil, try store.isAwaited(asset.path, otherThan: asset.digest) else {
            return false
        }
        if overwrite, !remaining.own.contains(ByteName(asset.path)) { return false }
        return try isNamedByLiving(asset.path)
    }

    func isNamedByLiving(_ path: String) throws -> Bool {
        if namedByLiving == nil { namedByLiving = LivingLinks(store) }
        return try namedByLiving?.contains(path) ?? false
    }

    /// Where the store has a file of a folder under another path, and its own path says nothing here yet: then it is no new
    /// file. It came from a folder inside this one, a publication links a file of its name, or `linked` are the files of the
    /// publications that it is for. `own` are the paths of the folder's files: they stay files of their own.
    func knownPlace(
        of file: Asset, besides own: Set<ByteName>, linked: () throws -> [String] = { [] }
    ) throws -> String? {
        guard try !store.hasAsset(file.path) else { return nil }
        let known = try (linked() + otherPlaces(of: file.path)).first { path in
            try !own.contains(ByteName(path)) && store.ifSound { try store.asset(path) }??.digest == file.digest
        }
        guard let known, try store.awaitedFile(file.path) == nil, try !isNamedByLiving(file.path) else { return nil }
        return known
    }

    private func otherPlaces(of path: String) throws -> [String] {
        var names = linkedNames.take() ?? LinkedFileNames(store)
        defer { linkedNames = names }
        return try AttachmentFolder.innerPaths(of: path) + names.paths(named: lastComponent(of: path))
    }

    /// Whether the store has a file that lies so below a folder, as far as an import of that folder would tell.
    func hasFile(_ relative: String, below root: String, besides own: Set<ByteName>) throws -> Bool {
        let path = AttachmentFolder.path(of: relative)
        let known = try store.ifSound { try store.asset(path) } ?? nil
        guard let status = try FileStatus.ofName("\(root)/\(relative)"),
            try known != nil || otherPlaces(of: path).contains(where: store.hasAsset)
        else { return false }
        // It came with this time: nothing has to be read.
        if let known, known.size == status.size, known.modifiedNanoseconds == status.modifiedNanoseconds { return true }
        let file: Asset
        do { file = try AttachmentFolder.asset(relative, below: root) } catch let error as BackupError
            where error.isVerdict
        { return false }
        if try knownPlace(of: file, besides: own) != nil { return true }
        switch try store.ifSound({ try store.planAsset(file) }) {
        case .unchanged, .known: return true
        case .added, .conflict, nil: return false
        }
    }

    /// Whether a file is not replaced: a record that stays as it is in the store names it.
    private func stays(_ known: Asset, beside asset: Asset) -> Bool {
        known.digest != asset.digest && remaining.own.contains(ByteName(known.path))
    }

    private func nameBeside(_ asset: Asset) throws -> String {
        switch try store.nameBesideAnother(asset) {
        case .conflict(let path):
            _ = try? store.comingNames.insert(path)
            _ = try? assetNames?.insert(path)
            return path
        case .known(let path): return path
        case .added, .unchanged: return asset.path
        }
    }

    /// The file of the backup takes the place of the store's. What an app wrote into that is kept beside it.
    private func replace(_ existing: Asset, by asset: Asset, from staged: String?) throws -> String {
        try store.removeAsset(existing, for: asset.digest)
        try store.placeAsset(asset, from: staged)
        result.attachmentsMended += 1
        plan(.update, asset.path, reason: "is the backup's version again")
        return asset.path
    }

    /// The asset's name, or another one when its own would fall together with one of the store's on a file system that folds
    /// case or Unicode forms: no export could hold both.
    private func separated(_ asset: Asset) throws -> String? {
        // Another file of that path was set aside before.
        if try store.awaitedFile(asset.path) != nil { return asset.path }
        // What collides already is the export's to report.
        var names = try assetNames.take() ?? namesInUse()
        defer { assetNames = names }
        if let path = try store.nameApart(asset, from: &names) { return path }
        note(Finding(.skipped, .warning, asset.path, "cannot lie beside the files that the store has"))
        return nil
    }

    /// Those of the store's files, and of those that its links mean and that are on other devices.
    private func namesInUse() throws -> EntryNameSet {
        var names = try store.namesApart().names
        for file in try store.awaitedFiles() { _ = try? names.insert(file.path) }
        return names
    }

    /// Where the store knows these bytes, and its file has others since: the store's attachment, and what to say of the change
    /// if an app made it, as readers do that keep their annotations in a PDF. Rot leaves size and time as they were.
    private func harm(to asset: Asset) throws -> (known: Asset, change: Finding?)? {
        guard !overwrite, let known = try store.asset(asset.path), known.digest == asset.digest,
            try store.pending(asset.path) == nil, let status = try store.assetStatus(asset.path), status.isRegular
        else { return nil }
        let isSuspect = looksInside || !Store.looksAsRemembered(status, known)
        guard !Store.isCut(status, known), isSuspect,
            try status.size != known.size || store.digest(at: asset.path) != known.digest
        else { return nil }
        if Store.looksAsRemembered(status, known) { return (known, nil) }
        let what =
            status.size != known.size
            ? "has \(status.size) bytes in the store's folder instead of \(known.size)"
            : "is not in the store's folder what the store remembers"
        return (
            known,
            Finding(
                .sizeMismatch, .warning, asset.path, "\(what); it was left as it is",
                remedy: """
                    'backup-tool store adopt' takes the change into the store; 'backup-tool restore BACKUP --match NAME' \
                    puts the backup's file in its place, and keeps the changed one beside it
                    """)
        )
    }
}
