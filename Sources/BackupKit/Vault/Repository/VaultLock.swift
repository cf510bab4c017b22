import Glibc

/// A lock that this process holds in a vault, as restic knows them: readers and writers of new data share it, and who
/// removes data holds it alone. A thread refreshes it; `confirm` is asked before everything that changes the vault.
/// https://restic.readthedocs.io/en/stable/100_references.html#locks
final class VaultLock: @unchecked Sendable {
    public enum Mode: Sendable {
        case shared
        case exclusive
    }

    /// How often the lock is refreshed, and how long it is believed in without: restic's figures.
    struct Rhythm: Sendable {
        var refresh = 300.0
        var trust: Int64 = 1350
        static let usual = Rhythm()
    }

    private struct State {
        var id: SHA256Digest
        var refreshed: Timestamp
        var isOver = false
        var lost: String?
    }

    private let locks: LockFolder
    private let mode: Mode
    private let rhythm: Rhythm
    private let clock: Clock
    private let monitor = Monitor()
    // Only touched inside `monitor`.
    private var state: State
    private var thread: WorkerThread?

    /// Takes a lock, or throws `locked`. With `wait`, tries for so many seconds.
    static func acquire(
        _ mode: Mode, in locks: LockFolder, wait: Double = 0, clock: Clock = .system, rhythm: Rhythm = .usual
    ) throws -> VaultLock {
        let end = monotonicSeconds() + wait
        while true {
            do {
                return try VaultLock(mode, locks, clock, rhythm)
            } catch let error as BackupError where error.code == .locked {
                if monotonicSeconds() >= end {
                    throw wait > 0 ? error.advising("try again later, or \(Self.whenGone)") : error
                }
                // Not all who wait at the same moment shall come back at the same moment.
                pause(min(Double.random(in: 0.2...1), max(0, end - monotonicSeconds())))
                try Interrupt.check()
            }
        }
    }

    static let whenGone = "see 'backup-tool vault unlock --help'"

    private init(_ mode: Mode, _ locks: LockFolder, _ clock: Clock, _ rhythm: Rhythm) throws {
        try locks.refuseConflict(with: mode, except: nil, now: clock.now())
        let id = try locks.write(mode, now: clock.now())
        do {
            // Two that looked at the same time see each other now.
            pause(locks.backend.settling)
            try locks.refuseConflict(with: mode, except: id, now: clock.now())
        } catch {
            try? locks.backend.remove([VaultFile(.lock, id)])
            throw error
        }
        self.locks = locks
        self.mode = mode
        self.rhythm = rhythm
        self.clock = clock
        state = State(id: id, refreshed: clock.now())
        HangUps.ignore()
        thread = WorkerThread { [unowned self] in refreshUntilReleased() }
    }

    /// Removes the lock. One that cannot be removed expires by itself, and nothing is lost by it.
    func release() {
        let id: SHA256Digest? = monitor.locked {
            guard !state.isOver else { return nil }
            state.isOver = true
            monitor.wakeAll()
            return state.id
        }
        guard let id else { return }
        thread?.join()
        thread = nil
        // The thread may have put another in its place meanwhile.
        let last = monitor.locked { state.id }
        try? locks.backend.remove(id == last ? [VaultFile(.lock, id)] : [VaultFile(.lock, id), VaultFile(.lock, last)])
        HangUps.heed()
    }

    deinit { release() }

    /// Throws when this process can no longer be sure of its lock. After a long pause of the whole process, such as a
    /// suspended machine, the lock must still be there, or somebody has taken it for stale. With `looking` it must be there in
    /// any case: whoever removed it by hand may have pruned what was written since.
    func confirm(looking: Bool = false) throws {
        try monitor.locked {
            if state.lost == nil, isOverdue { renew() }
            if looking, state.lost == nil, try locks.backend.size(VaultFile(.lock, state.id)) == nil {
                state.lost = "somebody has removed it"
            }
            if let lost = state.lost {
                throw BackupError(
                    .locked, "the lock on the vault is lost: \(lost)", at: locks.backend.location,
                    remedy: "run the command again; what was written is found and used")
            }
        }
    }

    private var isOverdue: Bool {
        abs(clock.now().milliseconds - state.refreshed.milliseconds) > rhythm.trust * 1000
    }

    private func refreshUntilReleased() {
        monitor.locked {
            while !state.isOver, state.lost == nil {
                let next = rhythm.refresh
                let begin = monotonicSeconds()
                while !state.isOver, monotonicSeconds() - begin < next {
                    monitor.wait(atMost: next - (monotonicSeconds() - begin))
                }
                if !state.isOver { renew() }
            }
        }
    }

    /// Writes a new lock file and removes the old one; inside `monitor`, so that nothing is written to the vault while
    /// it is open whether the lock holds.
    private func renew() {
        do {
            let old = VaultFile(.lock, state.id)
            guard try locks.backend.size(old) != nil else {
                state.lost = "somebody has removed it"
                return
            }
            let new = try locks.write(mode, now: clock.now())
            if isOverdue {
                // Who found our lock stale may have removed it between the two looks.
                pause(locks.backend.settling)
                guard try locks.backend.size(old) != nil else {
                    try? locks.backend.remove([VaultFile(.lock, new)])
                    state.lost = "somebody has removed it"
                    return
                }
            }
            state.id = new
            state.refreshed = clock.now()
            try? locks.backend.remove([old])
        } catch {
            // The next try may succeed; if none does in time, the lock is lost.
            if isOverdue { state.lost = "it could not be refreshed: \(error)" }
        }
    }
}

/// The locks of a vault, one's own and others'.
struct LockFolder: Sendable {
    let backend: any VaultBackend
    let key: VaultKey
    let version: Int
    var host = HostView.system

    func write(_ mode: VaultLock.Mode, now: Timestamp) throws -> SHA256Digest {
        var file = LockFile(
            time: GoTime(now), isExclusive: mode == .exclusive, hostName: host.name, userName: HostView.userName,
            pid: Int64(getpid()))
        file.uid = Int64(getuid())
        file.gid = Int64(getgid())
        file.process = host.own
        let sealed = try VaultCipher(key).seal(Unpacked.encode(file.encoded, version: version))
        return try sealed.withUnsafeBytes { try backend.store(.lock, $0) }
    }

    /// Throws `locked` if another's lock forbids ours. Stale locks are removed on the way: restic, which does not judge
    /// them itself, would stumble over them.
    func refuseConflict(with mode: VaultLock.Mode, except own: SHA256Digest?, now: Timestamp) throws {
        let items = try backend.list(.lock).items
        let written = items.first { $0.id == own }?.modified
        for item in items where item.id != own {
            let file: LockFile?
            do { file = try read(item) } catch let error as BackupError where [.locked, .denied].contains(error.code) {
                // A living lock is written anew every few minutes. It stays: who knows what else it may be?
                if own == nil ? Self.isOld(item, now: now) : !Self.isYoung(item, beside: written) { continue }
                throw error
            }
            guard let file else { continue }
            switch file.standing(now: now, host: host) {
            case .held: break
            // What the storage's clock says is known once our own lock lies beside it.
            case .old where own == nil: continue
            case .old where Self.isYoung(item, beside: written): break
            case .old, .gone:
                try? backend.remove([VaultFile(.lock, item.id)])
                continue
            }
            guard mode == .exclusive || file.isExclusive else { continue }
            let what = file.isExclusive ? "is locked" : "is in use"
            throw BackupError(
                .locked,
                "\(what) by \(file.holder)", at: backend.location,
                remedy: "wait until it is done (--lock-wait), or \(VaultLock.whenGone)")
        }
    }

    private static func isOld(_ item: VaultListing.Item, now: Timestamp) -> Bool {
        guard let modified = item.modified else { return false }
        return abs(now.milliseconds - modified.milliseconds) > LockFile.lifetime * 1000
    }

    /// Two clocks that disagree make a living lock look old. Both files were dated by one: the storage's.
    private static func isYoung(_ item: VaultListing.Item, beside own: Timestamp?) -> Bool {
        guard let theirs = item.modified else { return false }
        guard let own else { return true }
        return abs(own.milliseconds - theirs.milliseconds) <= LockFile.lifetime * 1000
    }

    /// nil for a lock that is gone meanwhile, and for an empty file, which a full disk leaves and which locks nothing.
    private func read(_ item: VaultListing.Item) throws -> LockFile? {
        var tries = 0
        while true {
            do {
                let sealed = try backend.readAll(VaultFile(.lock, item.id), limit: Unpacked.Cap.lock)
                if sealed.isEmpty { return nil }
                let plain = try VaultCipher(key).open(sealed)
                let json = try plain.withUnsafeBytes { try Unpacked.decode($0, cap: Unpacked.Cap.lock) }
                return try json.withUnsafeBytes { try LockFile($0) }
            } catch let error as BackupError {
                if error.code == .notFound { return nil }
                guard error.isOfBytes else { throw error }
                tries += 1
                guard tries < 4 else {
                    throw BackupError(
                        .locked, "a lock cannot be read: \(error.message)",
                        at: backend.place(VaultFile(.lock, item.id)),
                        remedy: "if nobody works with the vault, remove it with 'backup-tool vault unlock --remove-all'"
                    )
                }
                pause(0.1 * Double(tries))
            }
        }
    }

    /// Removes stale locks, or all there are.
    func unlock(all: Bool, now: Timestamp) throws -> [LockFate] {
        try backend.list(.lock).items.map { item in
            let fate = all ? LockFate(id: item.id, reason: "asked for", isRemoved: true) : fate(of: item, now)
            if fate.isRemoved { try backend.remove([VaultFile(.lock, item.id)]) }
            return fate
        }
    }

    private func fate(of item: VaultListing.Item, _ now: Timestamp) -> LockFate {
        do {
            // restic stumbles over one that locks nothing.
            guard let file = try read(item) else {
                return LockFate(id: item.id, reason: "it is empty", isRemoved: true)
            }
            switch file.standing(now: now, host: host) {
            case .held: return LockFate(id: item.id, reason: file.holder, isRemoved: false)
            case .old(let reason), .gone(let reason): return LockFate(id: item.id, reason: reason, isRemoved: true)
            }
        } catch {
            let reason = (error as? BackupError)?.message ?? "\(error)"
            return LockFate(id: item.id, reason: reason, isRemoved: false)
        }
    }
}

/// What became of a lock when they were cleared away.
public struct LockFate: Sendable {
    public let id: SHA256Digest
    /// Why it is gone; or who holds it, or why that cannot be told.
    public let reason: String
    public let isRemoved: Bool

    /// What to do about one that stays.
    public var finding: Finding {
        Finding(
            .skipped, .warning, "lock \(id.hex.prefix(10))", "stays: \(reason)",
            remedy: "wait until that process is done; if nobody works with the vault, "
                + "'backup-tool vault unlock --remove-all' removes all locks")
    }
}
