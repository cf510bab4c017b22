/// Names that no export and not every file system can hold side by side: a file and a folder of one name, names that differ
/// only in case or Unicode form. Two devices can each have one of them, so they meet in a sync.
extension Store {
    /// A file that gets another name, and why.
    struct NameApart {
        let asset: Asset
        let path: String
        let reason: String
    }

    /// The asset's name. Where that would fall together with one of `names`: the name with a number under which the store has
    /// its bytes, else a free one, which `names` takes in. Nil when there is none.
    func nameApart(_ asset: Asset, from names: inout EntryNameSet) throws -> String? {
        if (try? names.insert(asset.path)) != nil { return asset.path }
        if let known = try knownApart(asset) { return known }
        for (head, tail) in Self.placesOfNumber(in: asset.path) {
            for number in 2..<Self.highestNumber {
                let name = "\(head)_\(number)\(tail)"
                // Links would take the hub's file of that name for this one.
                if try isAwaited(name, as: asset.digest) { continue }
                if (try? names.insert(name)) != nil { return name }
            }
        }
        return nil
    }

    /// The name with the lowest number under which the store has the asset's bytes.
    func knownApart(_ asset: Asset) throws -> String? {
        let query = try database.prepare("SELECT path FROM asset WHERE path > ?1 AND path < ?2 AND sha256 = ?3")
        for (head, tail) in Self.placesOfNumber(in: asset.path) {
            // The byte behind "_".
            query.bind(1, "\(head)_").bind(2, "\(head)`").bind(3, asset.digest.hex)
            defer { query.reset() }
            var lowest: Int?
            while try query.step() {
                let path = query.text(0)
                let digits = path.utf8.dropFirst(head.utf8.count + 1).dropLast(tail.utf8.count)
                guard let number = Int(String(decoding: digits, as: UTF8.self)), 2..<Self.highestNumber ~= number,
                    sameBytes(path, "\(head)_\(number)\(tail)")
                else { continue }
                lowest = min(lowest ?? number, number)
            }
            if let lowest { return "\(head)_\(lowest)\(tail)" }
        }
        return nil
    }

    private static let highestNumber = 1000

    /// Where a number may stand in a path: before the ending, else behind a folder. A file below a name that is a file's can
    /// only get another folder.
    private static func placesOfNumber(in path: String) -> [(head: Substring, tail: Substring)] {
        let dot =
            path.lastIndex(of: ".").map { path[$0...].utf8.contains(FilePath.slash) ? path.endIndex : $0 }
            ?? path.endIndex
        let folders = path.utf8.indices.filter { path.utf8[$0] == FilePath.slash }.reversed()
        return ([dot] + folders).map { (path[..<$0], path[$0...]) }
    }

    /// Whether a name is that of another file or of one that comes, also on a file system that folds case or Unicode forms.
    func isNameTaken(_ path: String) throws -> Bool {
        if comingNames.isTaken(path) { return true }
        var names = try takenNames.take() ?? namesApart().names
        defer { takenNames = names }
        return names.isTaken(path)
    }

    /// The names of all assets, and the assets that cannot keep theirs. Every device chooses the same.
    func namesApart() throws -> (names: EntryNameSet, moving: [NameApart]) {
        var assets: [(depth: Int, asset: Asset)] = []
        try forEachAsset(damaged: { _ in }) { asset in
            assets.append((asset.path.utf8.count { $0 == UInt8(ascii: "/") }, asset))
        }
        // A folder keeps its name: all that lies in it would have to move with it.
        assets.sort { $0.depth != $1.depth ? $0.depth > $1.depth : precedesBytewise($0.asset.path, $1.asset.path) }
        var names = EntryNameSet()
        var colliding: [(asset: Asset, reason: String)] = []
        for (_, asset) in assets {
            do { try names.insert(asset.path) } catch let error as BackupError {
                colliding.append((asset, error.message))
            }
        }
        let moving = try colliding.compactMap { asset, reason in
            try nameApart(asset, from: &names).map { NameApart(asset: asset, path: $0, reason: reason) }
        }
        return (names, moving)
    }

    /// Gives names to files that cannot keep theirs; all links follow. A file without its bytes stays where it is. Must run
    /// inside `batch`.
    @discardableResult
    func moveApart(_ files: [NameApart]) throws -> [NameApart] {
        let files = try files.filter { try hasBytes(of: $0.asset) }
        for file in files {
            try removeAsset(file.asset, for: file.asset.digest)
            guard try asset(file.path) == nil else { continue }
            try makeRoomInMemory(at: file.path)
            try insert(file.asset.renamed(file.path), from: nil)
        }
        let moved = Dictionary(uniqueKeysWithValues: files.map { (ByteName($0.asset.path), $0.path) })
        try relink(moved) { _, _ in .ours }
        try moveMemory(moved)
        fileFindings += files.map { file in
            Finding(.conflict, .warning, file.asset.path, "\(file.reason); it is called \(file.path) from now on")
        }
        return files
    }

    private func hasBytes(of asset: Asset) throws -> Bool {
        guard try isInPlace(asset) else { return false }
        if try rehearsal && pending(asset.path) != nil { return true }
        return try openPlace(of: asset).digest() == asset.digest
    }
}
