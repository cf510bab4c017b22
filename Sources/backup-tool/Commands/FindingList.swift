import BackupKit

// How findings look, in text and in JSON.

extension Invocation {
    /// Reads a store in one state, past an index by type that is damaged. Says so, and returns how the command ends.
    func reading<Result>(_ store: Store, _ body: () throws -> Result) throws -> (Result, ExitStatus) {
        let (damage, result) = try store.read { try (store.leaveOutDamagedTypeIndex(), body()) }
        say([damage].compactMap(\.self))
        return (result, damage == nil ? .done : .damaged)
    }

    /// Says every finding, and what to do once for all that ask for the same; notes only to those who asked for more. Of
    /// findings that say the same of many files there is one line. As JSON, this is for findings that have no place in what a
    /// command reports, and none is left out.
    func say(_ findings: [Finding], limit: Int = 50) {
        guard !output.isJSON else {
            for finding in findings { output.say(finding.line) }
            return
        }
        let shown = findings.filter { $0.severity != .note || output.isVerbose }
        let groups = output.isVerbose ? shown.map { [$0] } : FindingGroup.groups(of: shown)
        var advised: Set<String> = []
        var isHinted = false
        for group in output.isVerbose ? groups[...] : groups.prefix(limit) {
            guard let first = group.first else { continue }
            output.say("\(mark(of: first.severity)) \(FindingGroup.text(of: group))")
            if let remedy = first.remedy, output.isVerbose || advised.insert(remedy).inserted {
                for line in first.remedyLines { output.say("  \(printable(line))") }
                if group.contains(where: { $0.remedy != remedy }) {
                    output.say("  repeat it for each of the others, with its own name")
                }
            }
            if group.count > 1, !isHinted {
                isHinted = true
                output.say("  --verbose or --json lists each of them")
            }
        }
        let told = groups.prefix(limit)
        if !output.isVerbose, groups.count > told.count {
            let rest = shown.count - told.reduce(0) { $0 + $1.count }
            output.say("  … and \(HumanText.count(rest)) more; --verbose or --json shows them all")
        }
    }

    private func mark(of severity: Finding.Severity) -> String {
        let style = output.err.style
        return switch severity {
        case .damage: style.error("damage:")
        case .error: style.error("error:")
        case .warning: style.warning("warning:")
        case .note: style.dim("note:")
        }
    }
}

/// Findings that say the same of several subjects.
private enum FindingGroup {
    /// So many are told one by one.
    private static let most = 3

    private struct Sentence: Hashable {
        let code: Finding.Code
        let severity: Finding.Severity
        let message: String
    }

    /// In the order in which each sentence comes first.
    static func groups(of findings: [Finding]) -> [[Finding]] {
        var places: [Sentence: Int] = [:]
        var groups: [[Finding]] = []
        for finding in findings {
            let sentence = Sentence(code: finding.code, severity: finding.severity, message: finding.message)
            if let place = places[sentence] {
                groups[place].append(finding)
            } else {
                places[sentence] = groups.count
                groups.append([finding])
            }
        }
        return groups.flatMap { $0.count > most ? [$0] : $0.map { [$0] } }
    }

    /// What comes from a hostile row may be megabytes; --json has all of it.
    private static func name(_ subject: String) -> String {
        subject.utf8.count > 1024 ? printable(String(subject.prefix(256))) + "…" : printable(subject)
    }

    static func text(of group: [Finding]) -> String {
        let subjects = group.prefix(most).map { name($0.subject) }.joined(separator: ", ")
        let message = printable(group.first?.message ?? "")
        if group.count == 1 { return "\(subjects): \(message)" }
        return "\(subjects) and \(HumanText.count(group.count - most)) more, each: \(message)"
    }
}

extension Finding {
    var json: JSONValue {
        [
            "code": .string(code.rawValue), "severity": .string(severity.rawValue), "path": .string(subject),
            "message": .string(message), "remedy": remedy.map(JSONValue.string) ?? .null,
        ]
    }

    /// A line of its own.
    fileprivate var line: JSONValue { .object([.init("message_type", "finding")] + (json.members ?? [])) }
}

extension Omission {
    var finding: Finding { Finding(.leftOut, .warning, path, "left out: \(reason)", remedy: remedy) }
}
