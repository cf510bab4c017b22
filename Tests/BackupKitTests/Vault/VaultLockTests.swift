import Glibc
import Synchronization
import TestSupport
import Testing

@testable import BackupKit

private let boot = ProcessIdentity(boot: "boot", space: "pid:[1]", startTicks: 100)

/// A machine on which process 7 runs since tick 100, which is noon.
private func host(_ name: String = "here", own: ProcessIdentity? = boot) -> HostView {
    HostView(
        name: name, own: own, startTicks: { $0 == 7 ? 100 : nil },
        startTime: { $0 == 7 ? Timestamp(iso8601: "2026-03-01T12:00:00Z") : nil })
}

private func lock(
    _ time: String = "2026-03-01T12:30:00Z", on host: String = "here", pid: Int64 = 7,
    process: ProcessIdentity? = boot
) throws -> LockFile {
    var file = LockFile(
        time: try #require(GoTime(time)), isExclusive: false, hostName: host, userName: "ann", pid: pid)
    file.process = process
    return file
}

private func withVault(_ body: (Vault, LockFolder) throws -> Void) throws {
    try withTemporaryFolder { folder in
        let backend = try FolderBackend.create("\(folder)/v")
        let vault = try Vault.create(
            backend, password: utf8("secret"), polynomial: testPolynomial, cost: testCost)
        try body(vault, vault.locks)
    }
}

private let noRefresh = VaultLock.Rhythm(refresh: 3600)

@Suite struct VaultLockTests {
    @Test func aLockIsStaleWhenItsProcessOrItsTimeIsGone() throws {
        let now = try #require(Timestamp(iso8601: "2026-03-01T12:40:00Z"))
        func isStale(_ file: LockFile, _ host: HostView = host(), at time: Timestamp = now) -> Bool {
            file.standing(now: time, host: host) != .held
        }
        let late = try #require(Timestamp(iso8601: "2026-03-01T13:01:00Z"))
        #expect(try !isStale(lock()))
        #expect(try isStale(lock(pid: 8)))
        // The number was given away again; the machine was started anew.
        #expect(try isStale(lock(process: ProcessIdentity(boot: "boot", space: "pid:[1]", startTicks: 99))))
        #expect(try isStale(lock(process: ProcessIdentity(boot: "before", space: "pid:[1]", startTicks: 100))))
        // A container of the same name has numbers of its own, and another machine too: only the time tells.
        let elsewhere = ProcessIdentity(boot: "boot", space: "pid:[2]", startTicks: 1)
        #expect(try !isStale(lock(pid: 8, process: elsewhere)))
        #expect(try isStale(lock(pid: 8, process: elsewhere), at: late))
        #expect(try !isStale(lock(on: "there", pid: 8)))
        #expect(try isStale(lock(on: "there"), at: late))
        // A process that is alive and not refreshed was suspended; it looks for its lock before it goes on.
        #expect(try !isStale(lock(), at: late))
        // restic's locks say less about their process.
        #expect(try !isStale(lock(process: nil)))
        #expect(try isStale(lock(pid: 8, process: nil)))
        #expect(try isStale(lock("2026-03-01T11:50:00Z", process: nil)), "the process is younger than the lock")
        // A clock that is ahead makes nobody's lock stale.
        #expect(try !isStale(lock("2026-03-01T14:00:00Z")))
    }

    @Test func lockFilesTakeAnyBytes() throws {
        let file = try lock()
        #expect(try file.encoded.withUnsafeBytes { try LockFile($0) } == file)
        let bytes = file.encoded
        for cut in 0..<bytes.count {
            #expect(throws: BackupError.self) { try Array(bytes[..<cut]).withUnsafeBytes { try LockFile($0) } }
        }
    }

    @Test func sharedLocksMeetAndAnExclusiveOneIsAlone() throws {
        try withVault { vault, locks in
            let first = try VaultLock.acquire(.shared, in: locks)
            let second = try VaultLock.acquire(.shared, in: locks)
            #expect(try vault.backend.list(.lock).items.count == 2)
            #expect(errorCode { _ = try VaultLock.acquire(.exclusive, in: locks) } == .locked)
            #expect(try vault.backend.list(.lock).items.count == 2, "the lock that was refused is gone")
            first.release()
            second.release()
            let alone = try VaultLock.acquire(.exclusive, in: locks)
            #expect(errorCode { _ = try VaultLock.acquire(.shared, in: locks) } == .locked)
            #expect(errorCode { _ = try VaultLock.acquire(.exclusive, in: locks) } == .locked)
            alone.release()
            alone.release()
            #expect(try vault.backend.list(.lock).items.count == 0)
        }
    }

    @Test func whoeverWaitsGetsTheLockWhenItIsFree() throws {
        try withVault { _, locks in
            let holder = try VaultLock.acquire(.exclusive, in: locks)
            let waiter = Aside { try VaultLock.acquire(.exclusive, in: locks, wait: 20) }
            pause(0.3)
            holder.release()
            try waiter.finish().release()
        }
    }

    @Test func ofManyThatWantToBeAloneNoTwoAre() throws {
        try withVault { _, locks in
            let inside = Atomic<Int>(0)
            let done = Atomic<Int>(0)
            try Parallel.forEach(12, workers: 6, state: { () }) { _, _ in
                let lock = try VaultLock.acquire(.exclusive, in: locks, wait: 60)
                #expect(inside.add(1, ordering: .sequentiallyConsistent).newValue == 1)
                pause(0.01)
                inside.subtract(1, ordering: .sequentiallyConsistent)
                done.add(1, ordering: .sequentiallyConsistent)
                lock.release()
            }
            #expect(done.load(ordering: .sequentiallyConsistent) == 12)
        }
    }

    @Test func theLockIsRefreshedByANewFileAndTheOldOneGoes() throws {
        try withVault { vault, locks in
            let held = try VaultLock.acquire(.shared, in: locks, rhythm: .init(refresh: 0.05))
            let first = try vault.backend.list(.lock).items.map(\.id)
            var later = first
            for _ in 0..<200 where later == first || later.count != 1 {
                pause(0.02)
                later = try vault.backend.list(.lock).items.map(\.id)
            }
            #expect(later != first)
            try held.confirm()
            held.release()
            #expect(try vault.backend.list(.lock).items.count == 0)
        }
    }

    @Test func afterALongSleepTheLockMustStillBeThere() throws {
        try withVault { vault, locks in
            let time = TestClock("2026-03-01T12:00:00Z")
            let held = try VaultLock.acquire(.shared, in: locks, clock: time.clock, rhythm: noRefresh)
            time.advance(seconds: 1200)
            try held.confirm()
            time.advance(seconds: 1200)
            let before = try vault.backend.list(.lock).items
            try held.confirm()
            #expect(try vault.backend.list(.lock).items != before, "it was renewed first")
            time.advance(seconds: 2400)
            #expect(try vault.unlock(all: true).count == 1)
            #expect(errorCode { try held.confirm() } == .locked)
            #expect(errorCode { try held.confirm() } == .locked, "and it stays lost")
            held.release()
        }
    }

    @Test func nothingIsWrittenOrRemovedOnceTheLockIsLost() throws {
        try withVault { vault, _ in
            var codes: [ErrorCode?] = []
            try vault.locked { held in
                _ = try utf8("one").withUnsafeBytes { try held.backend.store(.data, $0) }
                try vault.backend.remove(vault.backend.list(.lock).items.map { VaultFile(.lock, $0.id) })
                // Within the time of trust nobody else could have taken it for stale, and a pack that no index names harms
                // nobody. But who removed the lock may have removed packs, too.
                let two = try utf8("two").withUnsafeBytes { try held.backend.store(.data, $0) }
                codes.append(errorCode { try held.backend.remove([VaultFile(.data, two)]) })
                for kind in [VaultFile.Kind.index, .snapshot] {
                    codes.append(
                        errorCode { _ = try utf8("three").withUnsafeBytes { try held.backend.store(kind, $0) } })
                }
            }
            #expect(codes == [.locked, .locked, .locked])
            let counts = try [VaultFile.Kind.data, .index, .snapshot].map { try vault.backend.list($0).items.count }
            #expect(counts == [2, 0, 0])
        }
    }

    @Test func staleLocksAreRemovedAndDamagedOnesHoldEverybodyUp() throws {
        try withVault { vault, locks in
            var gone = locks
            gone.host = HostView(
                name: HostView.system.name, own: nil, startTicks: { _ in nil }, startTime: { _ in nil })
            // A lock of ours without our process: as if the machine had been started anew.
            var file = LockFile(
                time: GoTime(Clock.system.now()), isExclusive: true, hostName: HostView.system.name, userName: "ann",
                pid: 1 << 40)
            file.process = nil
            let sealed = try VaultCipher(vault.key).seal(Unpacked.encode(file.encoded))
            _ = try sealed.withUnsafeBytes { try vault.backend.store(.lock, $0) }
            _ = try [UInt8]().withUnsafeBytes { try vault.backend.store(.lock, $0) }
            try VaultLock.acquire(.exclusive, in: locks).release()
            #expect(
                try vault.backend.list(.lock).items.map(\.size) == [0], "the stale one is gone, the empty one no matter"
            )
            _ = try utf8("garbage").withUnsafeBytes { try vault.backend.store(.lock, $0) }
            #expect(errorCode { _ = try VaultLock.acquire(.shared, in: locks) } == .locked)
            let fates = try vault.unlock()
            #expect(fates.map(\.isRemoved).filter { $0 } == [true], "the empty one")
            #expect(fates.first { !$0.isRemoved }?.reason.contains("cannot be read") == true)
            // Nobody has written it anew.
            let garbage = try #require(try vault.backend.list(.lock).items.first)
            let place = vault.backend.place(VaultFile(.lock, garbage.id))
            _ = try runProcess(["touch", "-d", "31 minutes ago", place])
            try VaultLock.acquire(.exclusive, in: locks).release()
            #expect(try vault.unlock(all: true).map(\.id) == [garbage.id])
            let mine = try VaultLock.acquire(.shared, in: locks)
            let own = try vault.unlock()
            #expect(own.map(\.isRemoved) == [false] && own.first?.reason.hasPrefix("process \(getpid()) of ") == true)
            mine.release()
            try VaultLock.acquire(.shared, in: locks).release()
        }
    }

    @Test func aHangUpIsIgnoredWhileALockIsHeld() throws {
        try withVault { _, locks in
            func isIgnored() -> Bool {
                var now = sigaction()
                sigaction(SIGHUP, nil, &now)
                return unsafeBitCast(now.__sigaction_handler.sa_handler, to: Int.self) == 1
            }
            let held = try VaultLock.acquire(.shared, in: locks)
            #expect(isIgnored())
            kill(getpid(), SIGHUP)
            held.release()
        }
    }
}
