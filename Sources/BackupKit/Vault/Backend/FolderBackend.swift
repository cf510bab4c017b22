/// A vault in a folder, laid out as restic lays out a local repository.
public final class FolderBackend: VaultBackend {
    private let folder: String
    public var location: String { folder }
    public let settling = 0.0

    /// The folder of a vault that exists.
    public init(_ folder: String) throws {
        try Self.mustBeNamed(folder)
        let status = try FileStatus.ofTarget(folder)
        guard let status else { throw BackupError.noVault(at: folder) }
        guard status.isDirectory else {
            throw BackupError(
                .notFound, "is a file, not a vault", at: folder,
                remedy: "name the folder of a vault; 'backup-tool vault init' makes one where nothing is yet")
        }
        self.folder = folder
    }

    /// Who deletes the other files would delete the vault as well. A new file system has the folder `lost+found`.
    private static func refuseOthersFiles(in folder: String) throws {
        guard try FileStatus.ofTarget(folder)?.isDirectory == true else { return }
        let names = try Directory.names(in: folder)
        let own = VaultFile.Kind.allCases.map(\.rawValue)
        guard !names.contains(where: own.contains), names.contains(where: { $0 != "lost+found" }) else { return }
        throw BackupError(
            .exists, "the folder holds other files", at: folder, remedy: "choose a new folder, such as \(folder)/vault")
    }

    /// What lies below no name lies in the root of the machine.
    private static func mustBeNamed(_ folder: String) throws {
        if folder.isEmpty {
            throw BackupError(
                .usage, "the path of the vault is empty", remedy: "give the vault's folder, such as vault:/backup/vault"
            )
        }
        try LocalPath.check(folder)
    }

    /// Makes the folders of a new vault, all 256 of the packs too, so that no later write needs to.
    public static func create(_ folder: String) throws -> FolderBackend {
        try mustBeNamed(folder)
        try refuseOthersFiles(in: folder)
        try Directory.createAll(folder)
        for kind in VaultFile.Kind.allCases where kind != .config {
            try Directory.createAll("\(folder)/\(kind.rawValue)")
        }
        for number in 0..<256 {
            let name = "\(folder)/data/\(number < 16 ? "0" : "")\(String(number, radix: 16))"
            if try FileStatus.ofTarget(name) == nil { try Directory.create(name) }
        }
        try Directory.sync("\(folder)/data")
        return try FolderBackend(folder)
    }

    public func list(_ kind: VaultFile.Kind) throws -> VaultListing {
        var listing = VaultListing()
        switch kind {
        case .config:
            if let size = try size(.config) { listing.items.append(.init(id: .zero, size: size)) }
            let own = Set(VaultFile.Kind.allCases.map(\.rawValue))
            for name in try names(in: ".") where !own.contains(name) {
                if SHA256Digest(hex: name) != nil { try add(stray: name, to: &listing) }
                try addStrays(below: name, to: &listing)
            }
        case .data:
            for name in try names(in: "data") {
                try Interrupt.check()
                guard try FileStatus.ofTarget("\(folder)/data/\(name)")?.isDirectory == true else {
                    if SHA256Digest(hex: name) != nil { try add(stray: "data/\(name)", to: &listing) }
                    continue
                }
                for other in try add("data/\(name)", kind, to: &listing) {
                    try addStrays(below: "data/\(name)/\(other)", to: &listing)
                }
            }
        case .key, .snapshot, .index, .lock:
            let others = try add(kind.rawValue, kind, to: &listing)
            if kind == .snapshot {
                try addRenamedSnapshots(among: others, to: &listing)
                if listing.items.isEmpty { try requireFolderOfSnapshots() }
            }
        }
        return listing
    }

    /// Returns the names that are none of a vault's.
    @discardableResult
    private func add(_ inner: String, _ kind: VaultFile.Kind, to listing: inout VaultListing) throws -> [String] {
        var others: [String] = []
        for name in try names(in: inner) {
            guard let id = SHA256Digest(hex: name) else {
                others.append(name)
                continue
            }
            // Upper case digits and foreign folders name files that nobody finds under their identifier.
            guard VaultFile(kind, id).path == "\(inner)/\(name)" else {
                try add(stray: "\(inner)/\(name)", to: &listing)
                continue
            }
            let path = "\(folder)/\(inner)/\(name)"
            guard let status = try FileStatus.ofTarget(path) else {
                // Gone between the two calls is gone; a link is there, wherever it leads to, and tells so when it is read.
                if try FileStatus.ofName(path) != nil { listing.items.append(.init(id: id, size: 0)) }
                continue
            }
            guard status.isRegular else {
                listing.misplaced.append(
                    .init(path: "\(inner)/\(name)", size: status.size, nonFile: status.kindName))
                continue
            }
            let modified = Timestamp(milliseconds: status.modifiedNanoseconds / 1_000_000)
            listing.items.append(.init(id: id, size: status.size, modified: modified))
        }
        return others
    }

    /// What somebody renamed ("ID.bak") or put into a folder of its own looks removed, and needs its data all the same.
    private func addRenamedSnapshots(among others: [String], to listing: inout VaultListing) throws {
        for name in others where !isLeftover(name) {
            let path = "\(VaultFile.Kind.snapshot.rawValue)/\(name)"
            if try !addStrays(below: path, to: &listing) { try add(unlessCopy: path, to: &listing) }
        }
    }

    /// Files of a vault in folders that no vault has, as a repair of the disk or a careless hand puts them there. False
    /// where there is no folder.
    @discardableResult
    private func addStrays(below inner: String, depth: Int = 4, to listing: inout VaultListing) throws -> Bool {
        guard try FileStatus.ofName("\(folder)/\(inner)")?.isDirectory == true else { return false }
        for name in try names(in: inner) {
            let path = "\(inner)/\(name)"
            try add(unlessCopy: path, to: &listing)
            if depth > 0 { try addStrays(below: path, depth: depth - 1, to: &listing) }
        }
        return true
    }

    /// A copy of a file that is in its place needs nothing.
    private func add(unlessCopy path: String, to listing: inout VaultListing) throws {
        guard let id = SHA256Digest(hex: String(lastComponent(of: path).prefix(64))) else { return }
        let isCopy = try VaultFile.Kind.allCases.contains { kind in
            try kind != .config && FileStatus.ofTarget("\(folder)/\(VaultFile(kind, id).path)")?.isRegular == true
        }
        if !isCopy { try add(stray: path, to: &listing) }
    }

    private func add(stray path: String, to listing: inout VaultListing) throws {
        guard let status = try FileStatus.ofName("\(folder)/\(path)") else { return }
        listing.misplaced.append(.init(path: path, size: status.size))
    }

    /// Whoever has lost all snapshots must not be told that there were none: everything would be removed as needed by nobody.
    private func requireFolderOfSnapshots() throws {
        let path = "\(folder)/\(VaultFile.Kind.snapshot.rawValue)"
        guard try FileStatus.ofTarget(path) == nil, try !names(in: VaultFile.Kind.index.rawValue).isEmpty else {
            return
        }
        throw BackupError(
            .damaged, "the folder is missing, and the vault holds data", at: path,
            remedy: "bring it back from a copy; where no snapshot was left, make it again")
    }

    /// What is not there holds nothing: a copy made without empty folders is still a vault.
    private func names(in inner: String) throws -> [String] {
        do {
            return try Directory.names(in: "\(folder)/\(inner)", foreign: { _ in })
        } catch let error as BackupError where error.code == .notFound {
            return []
        }
    }

    public func size(_ file: VaultFile) throws -> Int64? {
        let path = "\(folder)/\(file.path)"
        if let status = try FileStatus.ofTarget(path) { return status.size }
        return try FileStatus.ofName(path) == nil ? nil : 0
    }

    public func hasPlace(for file: VaultFile) throws -> Bool {
        let place = parent(of: "\(folder)/\(file.path)")
        if let status = try FileStatus.ofTarget(place) { return status.isDirectory }
        // One folder of packs that is gone from among others is on no disk of its own: `write` makes it again.
        return try FileStatus.ofName(place) == nil && !names(in: file.kind.rawValue).isEmpty
    }

    public func read(_ file: VaultFile, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws {
        let handle = try open("\(folder)/\(file.path)")
        let count = try handle.read(into: buffer, at: offset)
        guard count == buffer.count else {
            throw BackupError(
                .damaged, "is too short: it ends at byte \(offset + Int64(count)) of \(offset + Int64(buffer.count))",
                at: handle.path)
        }
    }

    private func open(_ path: String) throws -> FileHandle {
        do { return try FileHandle.openForReading(path) } catch let error as BackupError where error.code == .notFound {
            if try FileStatus.ofName(path) == nil { throw error }
            throw BackupError(
                .failed, "is a link that leads nowhere", at: path,
                remedy: "connect the disk that it leads to; if the file is lost, remove the link")
        }
    }

    public func write(_ file: VaultFile, _ bytes: UnsafeRawBufferPointer) throws {
        let path = "\(folder)/\(file.path)"
        do {
            // Nobody changes a file of a vault, not even its owner.
            try AtomicFile.write(path, mode: 0o400) { try $0.write(bytes) }
        } catch let error as BackupError where error.code == .notFound {
            try Directory.createAll(parent(of: path))
            try AtomicFile.write(path, mode: 0o400) { try $0.write(bytes) }
        }
    }

    public func remove(_ files: [VaultFile]) throws {
        try AtomicFile.remove(files.map { "\(folder)/\($0.path)" })
    }

    public func sweep() throws -> Int {
        var leftovers: [String] = []
        for inner in try names(in: "data").map({ "data/\($0)" }) + VaultFile.Kind.allCases.map(\.rawValue) + ["."] {
            guard try FileStatus.ofTarget("\(folder)/\(inner)")?.isDirectory == true else { continue }
            leftovers += try names(in: inner).filter(isLeftover).map { "\(folder)/\(inner)/\($0)" }
        }
        try AtomicFile.remove(leftovers)
        return leftovers.count
    }

    /// On a full disk even the lock of who wants to remove something does not fit.
    private var reserve: String { "\(folder)/reserve" }

    public func setRoomAside() throws {
        let largest = try list(.index).items.reduce(0) { max($0, $1.size) }
        let wanted = (64 << 10) + 2 * Int(clamping: largest)
        if let size = try FileStatus.ofName(reserve)?.size, size >= wanted { return }
        // Neither a file system that compresses nor a copy that leaves holes must make it smaller.
        let noise = try SecureRandom.bytes(wanted)
        try AtomicFile.write(reserve, replace: true) { file in try noise.withUnsafeBytes { try file.write($0) } }
    }

    public func giveRoomUp() throws -> Bool {
        guard try FileStatus.ofName(reserve) != nil else { return false }
        try AtomicFile.remove([reserve])
        return true
    }

    /// Ours, and restic's: "ID-tmp-123".
    private func isLeftover(_ name: String) -> Bool {
        if AtomicFile.isTemporary(name) { return true }
        let id = name.prefix { $0 != "-" }
        return SHA256Digest(hex: id) != nil && name.dropFirst(id.count).hasPrefix("-tmp-")
    }
}
