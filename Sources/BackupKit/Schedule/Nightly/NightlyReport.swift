extension NightlyRun {
    /// What came of it, in the order in which it happened.
    public struct Report: Sendable {
        public enum Step: String, Sendable { case snapshot, tripwire, forget, check, drill, prune }

        public struct Line: Sendable, Equatable {
            public let step: Step
            public let text: String
        }

        public internal(set) var lines: [Line] = []
        public internal(set) var findings: [Finding] = []
        public internal(set) var errors: [BackupError] = []
        public internal(set) var snapshot: String?
        public internal(set) var forgotten: [String] = []
        public internal(set) var drills: [DrillEntry] = []
        public internal(set) var isPartial = false

        /// Steps that an error ended.
        public internal(set) var undone: [Step] = []

        /// What stops several steps, such as a snapshot that cannot be read, is one error.
        mutating func add(_ error: BackupError, endOf step: Step) {
            if !undone.contains(step) { undone.append(step) }
            if !errors.contains(error) { errors.append(error) }
        }

        /// The errors that no finding tells of as well, and what was not done.
        public var complaints: [BackupError] {
            let told = Set(findings.map(\.sentence))
            return errors.filter { !told.contains("\($0.subject ?? ""): \($0.message)") }
                + (undone.isEmpty ? [] : [BackupError(.incomplete, failedSteps)])
        }

        private var failedSteps: String {
            let steps = undone.map { "the \($0.rawValue)" }
            let names = [steps.dropLast().joined(separator: ", "), steps.last ?? ""].filter { !$0.isEmpty }
            return "\(snapshot == nil ? "no backup was made" : "a backup was made, but not all was done"): "
                + "\(names.joined(separator: " and ")) failed"
        }

        /// The worst that happened: damage, then a step that failed, then what wants to be looked at. Nil is fine.
        public var worst: ErrorCode? {
            if findings.contains(where: { $0.severity == .damage }) || drills.contains(where: { !$0.isOK }) {
                return .damaged
            }
            let ranks: [ErrorCode] = [.damaged, .notFound, .wrongPassword, .failed, .locked, .temporary, .incomplete]
            let codes = errors.map { ranks.contains($0.code) ? $0.code : .failed }
            if let worst = ranks.first(where: codes.contains) { return worst }
            let needsAttention = findings.contains { $0.severity == .warning || $0.severity == .error }
            return needsAttention || isPartial ? .incomplete : nil
        }

        /// For a watchdog and for the state: what was wrong first, in a line.
        public var headline: String? {
            if let error = errors.first { return error.description }
            if let drill = drills.first(where: { !$0.isOK }) {
                return "a drill failed: \(drill.problems.first ?? "")"
            }
            // The command that ends it is what whoever reads the status needs.
            let damage = findings.filter { $0.severity == .damage }
            let worst = damage.isEmpty ? findings.filter { $0.severity != .note } : damage
            return (worst.first { $0.remedy != nil } ?? worst.first)?.advisedSentence
        }

        public var log: String {
            var texts = lines.map { "\($0.step.rawValue): \($0.text)" }
            texts += drills.filter { !$0.isOK }.map { "error: the drill failed: \($0.problems.first ?? "")" }
            texts += findings.map { "\($0.severity.rawValue): \($0.sentence)" }
            texts += complaints.map { "error: \($0)" }
            return texts.joined(separator: "\n")
        }
    }
}
