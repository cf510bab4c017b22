import Glibc
import Synchronization

/// Whether the slow forms of the tests run: `make torture`.
public let isTorture = getenv("BACKUP_TOOL_TORTURE") != nil

/// The one seed of this process. It is the same in every quick run, so that a change is judged by what it changed. A
/// torture run chooses one at random and prints it; BACKUP_TOOL_SEED replays it.
private let runSeed: UInt64 = {
    if let text = getenv("BACKUP_TOOL_SEED"), let seed = UInt64(String(cString: text)) { return seed }
    guard isTorture else { return 20_261_121 }
    // Short enough to be typed.
    let seed = UInt64.random(in: 1...999_999_999)
    print("Random tests start from seed \(seed). Set BACKUP_TOOL_SEED=\(seed) to replay them.")
    note("seed\t\(seed)")
    return seed
}()

/// The seed where random tests start: every call in one process returns the same number.
public func testSeed() -> UInt64 { runSeed }

/// Seeds for `count` cases of one test.
public func testSeeds(_ count: Int) -> [UInt64] { (0..<count).map { runSeed &+ UInt64($0) } }

/// Counts the rounds of a random or crash test for the table at the end of `make torture`.
public func countRounds(_ rounds: Int = 1, _ test: String = #function) { note("rounds\t\(test)\t\(rounds)") }

private let notes = Mutex(())

/// Each note is in the file at once: a process that ends early has left all of them.
private func note(_ line: String) {
    guard let path = getenv("BACKUP_TOOL_TORTURE_NOTES") else { return }
    notes.withLock { _ in
        guard let file = fopen(path, "a") else { return }
        fputs(line + "\n", file)
        fclose(file)
    }
}
