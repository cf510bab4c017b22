import Testing

@testable import BackupKit

@Suite struct WorkerPoolTests {
    /// A thread that waits until it is told to end, or three seconds.
    private final class Waiter: @unchecked Sendable {
        private let monitor = Monitor()
        private var mayEnd = false
        private var hasEnded = false

        func run() {
            let start = monotonicSeconds()
            monitor.locked {
                while !mayEnd, monotonicSeconds() - start < 3 { monitor.wait(atMost: 1) }
                hasEnded = true
            }
        }

        func end() {
            monitor.locked {
                mayEnd = true
                monitor.wakeAll()
            }
        }

        var isRunning: Bool { monitor.locked { !hasEnded } }
    }

    /// The system gives the number of a thread that has ended to the next one. A lane that joined its thread twice waited
    /// for somebody else's, whose owner then waited for ever.
    @Test func whatIsLetGoOfDoesNotWaitForAnothersThread() throws {
        for _ in 0..<20 {
            var lane: Lane<Int>? = Lane(ahead: 1) { _ in }
            try lane?.add(1)
            try lane?.finish()
            let waiter = Waiter()
            let thread = try #require(WorkerThread { waiter.run() })
            lane = nil
            try #require(waiter.isRunning)
            waiter.end()
            thread.join()
            thread.join()
        }
    }
}
