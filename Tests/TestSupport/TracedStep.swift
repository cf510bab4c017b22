/// A system call of a traced command. strace counts each call of each thread for itself: the fifth step of all may be the
/// second `rename`, and that is what it has to be told.
public struct TracedStep: Hashable, Sendable, CustomStringConvertible {
    public let call: String
    /// Counted within its thread.
    public let number: Int

    public var description: String { "\(call) \(number)" }

    /// Makes strace kill the command here. Where several threads come here, the first one counts.
    public var kill: [String] { ["-e", "inject=\(call):signal=KILL:when=\(number)"] }

    /// The steps of a trace that `strace -f -o` has written, each once, in their order.
    public static func all(in trace: String) -> [TracedStep] {
        var made: [Substring: Int] = [:]
        var seen: Set<TracedStep> = []
        return trace.split(separator: "\n").compactMap { line in
            guard let open = line.firstIndex(of: "("), let space = line[..<open].lastIndex(of: " ") else { return nil }
            let call = line[line.index(after: space)..<open]
            guard !call.isEmpty, call.allSatisfy({ $0.isLowercase || $0.isNumber || $0 == "_" }) else { return nil }
            made[line[..<open], default: 0] += 1
            let step = TracedStep(call: String(call), number: made[line[..<open]] ?? 0)
            return seen.insert(step).inserted ? step : nil
        }
    }

    /// Makes each call fail from one of the steps on, as a disk does that has become full.
    public static func failing(from place: Int, of steps: [TracedStep], error: String) -> [String] {
        var made: [String: Int] = [:]
        for step in steps { made[step.call] = 0 }
        for step in steps[..<place] { made[step.call] = max(made[step.call] ?? 0, step.number) }
        return made.sorted { $0.key < $1.key }.flatMap { call, count in
            ["-e", "inject=\(call):error=\(error):when=\(count + 1)+"]
        }
    }
}

extension [TracedStep] {
    /// All of them for torture, else some.
    public func chosen(_ count: Int) -> [TracedStep] {
        guard !isTorture else { return self }
        var random = SeededGenerator(seed: testSeed())
        return (0..<count).map { _ in self[random.below(self.count)] }
    }
}
