/// A restic repository that was opened with a password: versions 1, which has no compression, and 2, which is what we make.
/// https://restic.readthedocs.io/en/stable/100_references.html#design
public final class Vault: Sendable {
    public let backend: any VaultBackend
    /// The repository's identifier, which every copy of it shares.
    public var id: SHA256Digest { config.id }
    public var version: Int { config.version }
    public var polynomial: Polynomial { config.polynomial }
    /// The key file that the password opened.
    public let keyID: SHA256Digest
    /// What was found wrong on the way and did not keep the vault from opening.
    public let findings: [Finding]
    public let key: VaultKey

    let config: ConfigFile
    var keys: KeyRing { KeyRing(backend: backend) }

    /// The same vault through another backend.
    func with(_ backend: any VaultBackend) -> Vault {
        Vault(backend, config, KeyRing.Opened(id: keyID, key: key, findings: findings))
    }

    private init(_ backend: any VaultBackend, _ config: ConfigFile, _ opened: KeyRing.Opened) {
        self.backend = backend
        self.config = config
        key = opened.key
        keyID = opened.id
        findings = opened.findings
    }

    public static func open(_ backend: any VaultBackend, password: [UInt8]) throws -> Vault {
        try mustBeThere(backend)
        return try open(backend, with: KeyRing(backend: backend).open(password: password))
    }

    /// Throws where there is no vault, or one without its configuration.
    static func mustBeThere(_ backend: any VaultBackend) throws {
        guard try backend.size(.config) == nil else { return }
        guard try !holdsData(backend) else { throw try lostConfiguration(.damaged, backend) }
        guard try backend.list(.key).items.isEmpty else {
            throw BackupError(
                .notFound, "making this vault was interrupted: it has a key and no configuration",
                at: backend.location, remedy: "run 'backup-tool vault init --resume' with its password")
        }
        throw BackupError.noVault(at: backend.location)
    }

    private static func open(_ backend: any VaultBackend, with opened: KeyRing.Opened) throws -> Vault {
        let sealed = try backend.readAll(.config, limit: ConfigFile.limit)
        do {
            let plain = try VaultCipher(opened.key).open(sealed)
            return Vault(backend, try plain.withUnsafeBytes { try ConfigFile($0) }, opened)
        } catch let error as BackupError {
            throw BackupError(
                error.code, error.message, at: backend.place(.config),
                remedy: error.remedy
                    ?? "copy the file from any copy of this vault. Where there is none, move it out of the vault; then "
                    + "'backup-tool vault init --resume' with the vault's password makes it again")
        }
    }

    /// Makes a new vault: first its key, then, last, the configuration that says that there is a vault. With `resume`,
    /// a key that an interrupted run left is used if the password opens it.
    public static func create(
        _ backend: any VaultBackend, password: [UInt8], polynomial: Polynomial? = nil, cost: ScryptCost = .usual,
        resume: Bool = false, clock: Clock = .system
    ) throws -> Vault {
        guard try backend.size(.config) == nil else {
            throw BackupError(
                .exists, "there is a vault already", at: backend.location, remedy: "use it, or choose another place")
        }
        let keys = KeyRing(backend: backend)
        let isFresh = try backend.list(.key).items.isEmpty
        guard try !holdsData(backend) || !isFresh && resume else { throw try lostConfiguration(.exists, backend) }
        guard isFresh || resume else {
            throw BackupError(
                .exists, "there are keys already, of a vault that was never finished", at: backend.location,
                remedy: "finish it with --resume")
        }
        let opened = try isFresh ? keys.make(password, cost, clock) : keys.open(password: password)
        try checkKey(opened, of: backend)
        do {
            let id = try SecureRandom.bytes(32).withUnsafeBytes { SHA256Digest($0) }
            var generator = SystemRandomNumberGenerator()
            let config = ConfigFile(id: id, polynomial: polynomial ?? .random(using: &generator))
            let sealed = try VaultCipher(opened.key).seal(config.bytes)
            try backend.setRoomAside()
            try sealed.withUnsafeBytes { try backend.write(.config, $0) }
        } catch {
            // Without its configuration the key is a stumbling block and nothing else.
            if isFresh { try? backend.remove([VaultFile(.key, opened.id)]) }
            throw error
        }
        return try open(backend, with: opened)
    }

    private static func holdsData(_ backend: any VaultBackend) throws -> Bool {
        try [VaultFile.Kind.snapshot, .index, .data].contains { try !backend.list($0).items.isEmpty }
    }

    /// Whoever has the key can write the configuration anew: only the polynomial that cut the chunks is lost with it, and
    /// nobody needs that to read.
    private static func lostConfiguration(_ code: ErrorCode, _ backend: any VaultBackend) throws -> BackupError {
        let copy = "copy it from any copy of this vault"
        let isWithoutKeys = try backend.list(.key).items.isEmpty
        let isUnproved = try sealedFiles(of: backend).isEmpty
        return BackupError(
            code, "the file is lost; there are packs or snapshots of this vault", at: backend.place(.config),
            remedy: isWithoutKeys
                ? "\(copy), and the folder 'keys' with it: both are lost"
                : isUnproved
                    ? "\(copy), and the folders 'snapshots' and 'index' with it: all are lost"
                    : "\(copy). Where there is none, 'backup-tool vault init --resume' with the vault's password makes it "
                        + "again: all snapshots stay readable, and the next backup stores much once more")
    }

    /// What proves that a key is the vault's.
    private static func sealedFiles(of backend: any VaultBackend) throws -> [VaultFile] {
        try [VaultFile.Kind.snapshot, .index].flatMap { kind in
            try backend.list(kind).items.map { VaultFile(kind, $0.id) }
        }
    }

    /// Throws when there is data, and nothing proves that it was sealed with the key.
    private static func checkKey(_ opened: KeyRing.Opened, of backend: any VaultBackend) throws {
        guard try holdsData(backend) else { return }
        let cipher = try VaultCipher(opened.key)
        let files = try sealedFiles(of: backend)
        if files.isEmpty { throw try lostConfiguration(.exists, backend) }
        func opens(_ file: VaultFile) -> Bool {
            (try? backend.readAll(file, limit: Unpacked.Cap.index)).flatMap { try? cipher.open($0) } != nil
        }
        guard !files.contains(where: opens) else { return }
        throw BackupError(
            .refused, "the password opens the key of another vault: it opens no snapshot and no index here",
            at: VaultFile(.key, opened.id).path,
            remedy: "copy the file 'config' and the folder 'keys' from any copy of this vault")
    }

    // MARK: Keys

    public func listKeys() throws -> (entries: [KeyRing.Entry], findings: [Finding]) { try keys.list() }

    public func addKey(password: [UInt8], userName: String? = nil, hostName: String? = nil) throws -> SHA256Digest {
        try keys.refuseMore(than: KeyRing.mostTried - 1)
        return try keys.add(
            key, password: password, userName: userName ?? "backup-tool", hostName: hostName ?? "backup-tool")
    }

    /// Removes a key, but never the one in use: that somebody has its password is known, of others it is not.
    public func removeKey(_ prefix: String) throws -> SHA256Digest {
        let id = try resolve(prefix, .key)
        guard id != keyID else {
            throw BackupError(
                .refused, "that is the key in use", at: VaultFile(.key, id).path,
                remedy: "open the vault with another password, or use 'backup-tool vault key passwd'")
        }
        // Who holds the lock now may have removed it meanwhile, and then this one may be the last.
        guard try backend.size(VaultFile(.key, keyID)) != nil else {
            throw BackupError(
                .refused, "somebody has removed the key that the vault was opened with, so no other is removed",
                at: backend.location, remedy: "see 'backup-tool vault key list', and run the command again")
        }
        try backend.remove([VaultFile(.key, id)])
        return id
    }

    /// Gives the key in use another password: a new key, and then the old one goes.
    public func changePassword(_ password: [UInt8]) throws -> SHA256Digest {
        let old = try keys.read(keyID)
        try keys.refuseMore(than: KeyRing.mostTried)
        let id = try keys.add(key, password: password, userName: old.userName, hostName: old.hostName)
        try backend.remove([VaultFile(.key, keyID)])
        return id
    }

    /// The one file whose name begins so, whether it can be read or not.
    public func resolve(_ prefix: String, _ kind: VaultFile.Kind) throws -> SHA256Digest {
        let prefix = prefix.lowercased()
        let found = try backend.list(kind).items.map(\.id).filter { $0.hex.hasPrefix(prefix) }
        guard let id = found.first, !prefix.isEmpty else {
            throw BackupError(
                .failed, "there is no \(kind.noun) '\(prefix)'", at: backend.location,
                remedy: kind == .snapshot
                    ? "'backup-tool vault snapshots' lists them"
                    : kind == .key ? "'backup-tool vault key list' lists them" : nil)
        }
        guard found.count == 1 else {
            throw BackupError(
                .usage, "\(found.count) begin so", at: "\(kind.rawValue)/\(prefix)", remedy: "give more digits")
        }
        return id
    }
}

extension VaultFile.Kind {
    fileprivate var noun: String { self == .snapshot || self == .key ? "\(self)" : "file in \(rawValue)" }
}
