import BackupKit
import Glibc
import Synchronization

/// Runs `body` with the path of a new, empty folder that is removed afterwards.
public func withTemporaryFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    let folder = "\(base)/backup-tool-test-\(RandomID.make())"
    try Directory.create(folder)
    do {
        let result = try body(folder)
        try Directory.removeTree(folder)
        return result
    } catch {
        try? Directory.removeTree(folder)
        throw error
    }
}

public func writeFile(_ path: String, _ text: String) throws {
    try Directory.createAll(parent(of: path))
    try AtomicFile.write(path, replace: true) { try $0.write(text) }
}

/// The same, last changed so many seconds after 1970.
public func writeFile(_ path: String, _ text: String, modified seconds: Int64) throws {
    try writeFile(path, text)
    try FileHandle.openForReading(path).setModified(seconds: seconds)
}

public func readFile(_ path: String) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try FileHandle.openForReading(path).forEachChunk { bytes += $0 }
    return bytes
}

/// Everything below a folder: file contents, and folders as nil.
public func contents(of folder: String) throws -> [String: [UInt8]?] {
    var found: [String: [UInt8]?] = [:]
    try Directory.walk(folder) { path, status in
        found.updateValue(status.isRegular ? try readFile("\(folder)/\(path)") : nil, forKey: path)
    }
    return found
}

/// Copies a folder as it is at this instant: what a process killed now would leave.
public func copyTree(_ from: String, to: String) throws {
    try Directory.createAll(to)
    try Directory.walk(from) { path, status in
        if status.isDirectory {
            try Directory.createAll("\(to)/\(path)")
        } else {
            let copy = try FileHandle.create("\(to)/\(path)")
            try FileHandle.openForReading("\(from)/\(path)").forEachChunk { try copy.write($0) }
        }
    }
}

/// SplitMix64: the same seed gives the same numbers everywhere. Tests take seeds as their arguments, so that a failure
/// names the one it failed with.
public struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    public mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }

    public mutating func chance(_ one: Int) -> Bool { below(one) == 0 }
}

/// A clock that stands still until the test moves it.
public final class TestClock: Sendable {
    private let time: Mutex<Timestamp>

    public init(_ iso8601: String = "2026-03-01T12:00:00Z") {
        time = Mutex(Timestamp(iso8601: iso8601) ?? Timestamp(milliseconds: 0))
    }

    public var now: Timestamp { time.withLock { $0 } }

    public func advance(seconds: Int64 = 1) {
        time.withLock { $0 = Timestamp(milliseconds: $0.milliseconds + seconds * 1000) }
    }

    public var clock: Clock { Clock { self.now } }
}

/// Seconds that pass only while somebody sleeps.
public final class TestTime: Sendable {
    private let time = Mutex(0.0)

    public init() {}

    public var now: Double { time.withLock { $0 } }

    public func sleep(_ seconds: Double) { time.withLock { $0 += seconds } }
}
