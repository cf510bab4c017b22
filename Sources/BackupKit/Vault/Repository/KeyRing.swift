/// The keys of a vault: files that each hold the one master key, for one password.
public struct KeyRing: Sendable {
    /// As many keys are tried as restic tries; each costs as long as its maker wished.
    static let mostTried = 20

    /// What a key file says in clear about itself.
    public struct Entry: Sendable, Equatable {
        public let id: SHA256Digest
        /// RFC 3339, as it was written.
        public let created: String
        public let userName: String
        public let hostName: String
    }

    /// What opening came to.
    struct Opened {
        let id: SHA256Digest
        let key: VaultKey
        let findings: [Finding]
    }

    let backend: any VaultBackend

    /// Finds the key that the password opens. A key file that cannot be read is a finding and stops nobody who has
    /// another.
    func open(password: [UInt8], cost most: Int = mostTried) throws -> Opened {
        let listing = try backend.list(.key)
        let ids = listing.items.map(\.id)
        guard !ids.isEmpty else {
            throw BackupError(
                .damaged, "the vault has no keys, and nothing opens it without", at: backend.location,
                remedy: "put the files of 'keys' back from a copy of the vault")
        }
        guard !password.isEmpty else {
            throw BackupError(
                .wrongPassword, "the password is empty", at: backend.location,
                remedy: "see that its file or command gives it")
        }
        var findings: [Finding] = []
        var unreadable: BackupError?
        // Which password they were made for, nobody knows any more.
        var changed: [String] = []
        var budget = ScryptCost.Budget()
        for id in ids.prefix(most) {
            try Interrupt.check()
            do {
                let bytes = try bytes(of: id)
                let file = try bytes.withUnsafeBytes { try KeyFile($0) }
                if let refusal = budget.refusal(of: file.cost) {
                    throw BackupError(.refused, refusal)
                }
                if let key = try file.open(password: password) {
                    return Opened(id: id, key: key, findings: findings)
                }
                if !Self.isWritten(bytes, as: id) { changed.append(VaultFile(.key, id).path) }
            } catch let error as BackupError where error.isVerdict {
                // Removed since it was listed.
                if error.code == .notFound { continue }
                // What asks for too much is no key that anybody made.
                if ![.damaged, .refused].contains(error.code) { unreadable = unreadable ?? error }
                findings.append(
                    Finding(.unreadable, .damage, VaultFile(.key, id).path, "cannot be used: \(error.message)"))
            }
        }
        if let damaged = findings.first, findings.count == min(ids.count, most) {
            // Of what cannot be opened nobody knows whether it is damaged.
            if let unreadable { throw unreadable }
            throw BackupError(
                .damaged, "no key can be read: \(damaged.message)", at: backend.location,
                remedy: "bring back \(damaged.subject) from a copy; without a key nothing opens the vault")
        }
        let lost = (findings.map(\.subject) + listing.misplaced.map(\.path) + changed).first
        throw BackupError(
            .wrongPassword, "the password opens none of the vault's keys", at: backend.location,
            remedy: ids.count > most
                ? "only \(most) of its \(ids.count) keys were tried; remove some"
                : lost.map { "\($0) cannot be used, and may be the one that it opens: bring it back from a copy" }
                    ?? "see that it is the password of this vault, and that its file or command gives it whole")
    }

    func read(_ id: SHA256Digest) throws -> KeyFile {
        try bytes(of: id).withUnsafeBytes { try KeyFile($0) }
    }

    private func bytes(of id: SHA256Digest) throws -> [UInt8] {
        try backend.readAll(VaultFile(.key, id), limit: KeyFile.limit)
    }

    /// Whether a key file has the SHA-256 that is its name.
    static func isWritten(_ bytes: [UInt8], as id: SHA256Digest) -> Bool {
        bytes.withUnsafeBytes { SHA256Digest.of($0) } == id
    }

    /// All keys, and what keeps others from being shown.
    func list() throws -> (entries: [Entry], findings: [Finding]) {
        var entries: [Entry] = []
        var findings: [Finding] = []
        for item in try backend.list(.key).items {
            do {
                let file = try read(item.id)
                entries.append(
                    Entry(id: item.id, created: file.created, userName: file.userName, hostName: file.hostName))
            } catch let error as BackupError where error.isVerdict {
                // Removed since it was listed.
                if error.code == .notFound { continue }
                findings.append(
                    Finding(.unreadable, .damage, VaultFile(.key, item.id).path, "cannot be read: \(error.message)"))
            }
        }
        return (entries, findings)
    }

    /// The first key of a vault that is being made.
    func make(_ password: [UInt8], _ cost: ScryptCost, _ clock: Clock) throws -> Opened {
        let key = try VaultKey.random()
        return Opened(id: try add(key, password: password, cost: cost, clock: clock), key: key, findings: [])
    }

    /// A key that nobody tries opens nothing, whoever has its password.
    func refuseMore(than most: Int) throws {
        let count = try backend.list(.key).items.count
        guard count <= most else {
            throw BackupError(
                .refused, "the vault has \(count) keys, and of more than \(Self.mostTried) some are never tried",
                at: backend.location, remedy: "remove one first: see 'backup-tool vault key list'")
        }
    }

    public static func check(newPassword password: [UInt8]) throws {
        guard !password.isEmpty else {
            throw BackupError(.usage, "the password is empty", remedy: "give one: it is the vault's only protection")
        }
    }

    /// Writes a key for a password, and reads it back: a key that opens nothing must not be believed in.
    func add(
        _ master: VaultKey, password: [UInt8], cost: ScryptCost = .usual, userName: String = "backup-tool",
        hostName: String = "backup-tool", clock: Clock = .system
    ) throws -> SHA256Digest {
        try Self.check(newPassword: password)
        // The day is enough to tell keys apart.
        let day = clock.now().iso8601.prefix(10)
        let file = try KeyFile(
            sealing: master, password: password, cost: cost, created: "\(day)T00:00:00Z", userName: userName,
            hostName: hostName)
        let id = try file.bytes.withUnsafeBytes { try backend.store(.key, $0) }
        guard try read(id) == file else {
            try backend.remove([VaultFile(.key, id)])
            throw BackupError(.failed, "the new key cannot be read back", at: backend.location)
        }
        return id
    }
}
