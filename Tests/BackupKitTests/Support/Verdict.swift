@testable import BackupKit

/// A decision as somebody makes it about the works `a` and `b`.
enum Verdict: Equatable {
    case keep(Choice)
    case renameSecond

    static let all = Choice.allCases.map { Verdict.keep($0) } + [.renameSecond]

    func make(_ office: Office, on number: Int) throws {
        guard self == .renameSecond else {
            if case .keep(let choice) = self { try office.decide(choice, "a", "b", on: number) }
            return
        }
        let conflict = try office.conflict("a", "b", on: number)
        let word = conflict.existing == "b" ? ConflictChoice.renameExisting : .renameIncoming
        _ = try ConflictResolver.resolve([conflict.id], with: word, in: office.stores[number])
    }
}

enum Choice: CaseIterable { case merge, keepFirst, keepSecond, renameFirst, keepBoth }
