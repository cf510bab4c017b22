/// Asks for the lock before everything that changes the vault.
private struct GuardedBackend: VaultBackend {
    let inner: any VaultBackend
    let lock: VaultLock

    var location: String { inner.location }
    var settling: Double { inner.settling }
    func list(_ kind: VaultFile.Kind) throws -> VaultListing { try inner.list(kind) }
    func size(_ file: VaultFile) throws -> Int64? { try inner.size(file) }
    func hasPlace(for file: VaultFile) throws -> Bool { try inner.hasPlace(for: file) }

    func read(_ file: VaultFile, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try inner.read(file, at: offset, into: buffer)
    }

    func write(_ file: VaultFile, _ bytes: UnsafeRawBufferPointer) throws {
        // A pack that nobody needs does no harm; what names packs that are gone does.
        try lock.confirm(looking: file.kind != .data)
        try inner.write(file, bytes)
    }

    func remove(_ files: [VaultFile]) throws {
        try lock.confirm(looking: true)
        try inner.remove(files)
    }

    func sweep() throws -> Int {
        try lock.confirm(looking: true)
        return try inner.sweep()
    }

    func setRoomAside() throws { try inner.setRoomAside() }
    func giveRoomUp() throws -> Bool { try inner.giveRoomUp() }
}

extension Vault {
    var locks: LockFolder { LockFolder(backend: backend, key: key, version: version) }

    /// Runs `body` under a lock. It gets the vault through which alone it may change anything: before each change that
    /// one makes sure that the lock still holds.
    public func locked<Result>(
        exclusively: Bool = false, wait: Double = 0, _ body: (Vault) throws -> Result
    ) throws -> Result {
        var isCramped = false
        let lock =
            try exclusively
            ? lockWithRoom(wait, &isCramped) : VaultLock.acquire(.shared, in: locks, wait: wait)
        defer {
            lock.release()
            // Where it does not fit now it may after the next prune.
            if isCramped { try? backend.setRoomAside() }
        }
        return try body(with(GuardedBackend(inner: backend, lock: lock)))
    }

    /// Who wants to remove data must be able to when nothing fits any more.
    private func lockWithRoom(_ wait: Double, _ isCramped: inout Bool) throws -> VaultLock {
        do {
            return try VaultLock.acquire(.exclusive, in: locks, wait: wait)
        } catch let error as BackupError where error.code == .destinationFull {
            guard try backend.giveRoomUp() else {
                throw error.advising("free \(try lockRoom()) bytes on that disk, and run the command again")
            }
            isCramped = true
            return try VaultLock.acquire(.exclusive, in: locks, wait: wait)
        }
    }

    /// Runs `body`, which only reads, under a shared lock; where none can be written, on a full disk or one that cannot
    /// be written to, without: `unlocked` hears why.
    public func reading<Result>(
        wait: Double = 0, unlocked: (BackupError) -> Void, _ body: (Vault) throws -> Result
    ) throws -> Result {
        let lock = try lockToRead(wait: wait, unlocked: unlocked)
        defer { lock?.release() }
        return try body(self)
    }

    /// A shared lock; nil where none can be written.
    func lockToRead(wait: Double = 0, unlocked: (BackupError) -> Void = { _ in }) throws -> VaultLock? {
        do {
            return try VaultLock.acquire(.shared, in: locks, wait: wait)
        } catch let error as BackupError where error.code != .locked && error.code != .interrupted {
            unlocked(error)
            return nil
        }
    }

    /// Removes the locks of processes that are gone, or all.
    public func unlock(all: Bool = false, clock: Clock = .system) throws -> [LockFate] {
        if all { for item in try backend.list(.lock).items { try refuseMisfiled(VaultFile(.lock, item.id)) } }
        return try locks.unlock(all: all, now: clock.now())
    }
}
