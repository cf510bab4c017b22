/// One thread that does what it is given in that order, while whoever gives it goes on, up to a few pieces ahead. Until
/// `finish`, the owner MUST NOT touch what the work uses.
final class Lane<Item> {
    private let core: Core
    private let worker: WorkerThread?

    init(ahead: Int, _ work: @escaping (Item) throws -> Void) {
        let core = Core(ahead, work)
        self.core = core
        worker = WorkerThread { core.run() }
    }

    deinit { close() }

    /// Throws what an earlier piece of work threw.
    func add(_ item: Item) throws {
        // Without a thread the owner does the work.
        if worker == nil { try core.work(item) } else { try core.enqueue(item) }
    }

    /// Waits until all is done.
    func finish() throws {
        close()
        try core.check()
    }

    private func close() {
        core.close()
        worker?.join()
    }

    /// What owner and worker share; all of it is touched inside `monitor.locked`.
    private final class Core: @unchecked Sendable {
        let work: (Item) throws -> Void
        private let ahead: Int
        private let monitor = Monitor()
        private var waiting: [Item] = []
        private var isClosed = false
        private var failure: (any Error)?

        init(_ ahead: Int, _ work: @escaping (Item) throws -> Void) {
            self.ahead = ahead
            self.work = work
        }

        func enqueue(_ item: Item) throws {
            try monitor.locked {
                while waiting.count >= ahead, failure == nil { monitor.wait() }
                if let failure { throw failure }
                waiting.append(item)
                monitor.wakeAll()
            }
        }

        func run() {
            while let item = next() {
                do { try work(item) } catch {
                    monitor.locked {
                        failure = error
                        waiting = []
                        monitor.wakeAll()
                    }
                    return
                }
            }
        }

        private func next() -> Item? {
            monitor.locked {
                while waiting.isEmpty, !isClosed { monitor.wait() }
                if waiting.isEmpty { return nil }
                monitor.wakeAll()
                return waiting.removeFirst()
            }
        }

        func close() {
            monitor.locked {
                isClosed = true
                monitor.wakeAll()
            }
        }

        func check() throws {
            if let failure = monitor.locked({ failure }) { throw failure }
        }
    }
}
