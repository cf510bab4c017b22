import Glibc
import Synchronization

/// A mutex with a condition variable: what threads meet at. (`Synchronization.Mutex` cannot be waited on.)
final class Monitor: @unchecked Sendable {
    // POSIX asks that neither moves in memory after it was initialised, so both live on the heap.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        mutex.initialize(to: pthread_mutex_t())
        condition.initialize(to: pthread_cond_t())
        pthread_mutex_init(mutex, nil)
        // Who sets the clock must not change how long somebody waits.
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Waits for `wakeAll`; only inside `locked`, in a loop that asks for what it waits for.
    func wait() { pthread_cond_wait(condition, mutex) }

    /// Like `wait`, and no longer than so many seconds.
    func wait(atMost seconds: Double) {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let nanoseconds = time.tv_nsec + Int(seconds.truncatingRemainder(dividingBy: 1) * 1e9)
        time.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
        time.tv_nsec = nanoseconds % 1_000_000_000
        pthread_cond_timedwait(condition, mutex, &time)
    }

    func wakeAll() { pthread_cond_broadcast(condition) }
}

/// A thread of the operating system. One thread owns it and joins it, at the latest when it lets go of it.
final class WorkerThread {
    private final class Start {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    private var thread: pthread_t?

    /// nil when the system grants no more threads; whoever asks has to do with fewer.
    init?(_ body: @escaping @Sendable () -> Void) {
        let start = Unmanaged.passRetained(Start(body))
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { raw in
                guard let raw else { return nil }
                Unmanaged<Start>.fromOpaque(raw).takeRetainedValue().body()
                return nil
            }, start.toOpaque())
        guard status == 0 else {
            start.release()
            return nil
        }
        self.thread = thread
    }

    deinit { join() }

    /// Waits for its end. Joined twice, a thread would take the place of another: its number may have been given to a new one,
    /// whose owner then waits for ever.
    func join() {
        guard let thread else { return }
        self.thread = nil
        pthread_join(thread, nil)
    }
}

/// One piece of work that goes on beside the caller's own. `finish` MUST be called, and before it the caller MUST NOT
/// touch what the work uses.
final class Aside<Result> {
    /// Written by the thread, read after it was joined.
    private final class Outcome: @unchecked Sendable {
        var result: Swift.Result<Result, any Error>?
    }

    private let outcome = Outcome()
    private var thread: WorkerThread?

    init(_ work: @escaping () throws -> Result) {
        // Handed over, not shared: see above.
        nonisolated(unsafe) let work = work
        let outcome = outcome
        thread = WorkerThread { outcome.result = Swift.Result(catching: work) }
        if thread == nil { outcome.result = Swift.Result(catching: work) }
    }

    deinit { thread?.join() }

    /// Hands over the result, once: it may be large, and whoever changes it shall have the only one.
    func finish() throws -> Result {
        thread?.join()
        thread = nil
        defer { outcome.result = nil }
        guard let result = outcome.result else { throw BackupError(.failed, "a thread left no result") }
        return try result.get()
    }
}

/// Work spread over the cores.
enum Parallel {
    /// The cores that are there to be used.
    static let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

    /// Hands out the numbers below a count until there are no more or somebody failed.
    private final class Queue: Sendable {
        private let count: Int
        private let taken = Atomic<Int>(0)
        private let failure = Mutex<(any Error)?>(nil)

        init(count: Int) { self.count = count }

        func next() -> Int? {
            let number = taken.add(1, ordering: .relaxed).oldValue
            return number < count ? number : nil
        }

        func fail(_ error: any Error) {
            taken.store(count, ordering: .relaxed)
            failure.withLock { if $0 == nil { $0 = error } }
        }

        func finish() throws {
            if let error = failure.withLock({ $0 }) { throw error }
        }
    }

    /// Calls `body` with every number below `count`, roughly in order, from up to `workers` threads of which each has a
    /// state of its own. The first error ends the work and is thrown on.
    static func forEach<State>(
        _ count: Int, workers: Int = cores, state: @Sendable () throws -> State,
        _ body: @Sendable (State, Int) throws -> Void
    ) throws {
        let queue = Queue(count: count)
        try withoutActuallyEscaping(state) { state in
            try withoutActuallyEscaping(body) { body in
                let work: @Sendable () -> Void = {
                    do {
                        var mine: State?
                        while let number = queue.next() {
                            let ready = try mine ?? state()
                            mine = ready
                            try body(ready, number)
                        }
                    } catch {
                        queue.fail(error)
                    }
                }
                let helpers = (1..<max(1, min(workers, count))).compactMap { _ in WorkerThread(work) }
                work()
                for helper in helpers { helper.join() }
                try queue.finish()
            }
        }
    }

    /// Like `forEach`, with the results in the order of their numbers.
    static func map<State, Result: Sendable>(
        _ count: Int, workers: Int = cores, state: @Sendable () throws -> State,
        _ body: @Sendable (State, Int) throws -> Result
    ) throws -> [Result] {
        let results = Mutex([Result?](repeating: nil, count: count))
        try forEach(count, workers: workers, state: state) { state, number in
            let result = try body(state, number)
            results.withLock { $0[number] = result }
        }
        return results.withLock { $0.compactMap(\.self) }
    }
}
