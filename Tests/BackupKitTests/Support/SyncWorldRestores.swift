import TestSupport
import Testing

@testable import BackupKit

/// Backups, and restores with each policy.
extension World {
    func backUpOrRestore(_ number: Int) throws {
        if try random.chance(4) && release(number) { return }
        if backups.isEmpty || random.chance(3) {
            backups.append(try devices[number].all().filter { $0.isDeleted || !$0.isLocalOnly })
            return say("is backed up", number)
        }
        let backup = backups[random.below(backups.count)]
        // A restore sets what is from the future to its own now: another one each time, and another one than the story's.
        if backup.contains(where: { $0.latestTime > now(number) }) { return }
        let policy = SyncPolicy.allCases[random.below(3)]
        let before = try Self.ids.map { try shown(number, $0) }
        let result = try devices[number].bringBack(backup, policy)
        for (id, old) in zip(Self.ids, before) {
            let new = try shown(number, id)
            if policy == .quarantine { try #require(new == old) }
            if policy == .resurrect { try noteKept(id, old, new, number, backup) }
        }
        func subjects(_ action: PlanItem.Action) -> Set<String> {
            Set(result.plan.filter { $0.action == action }.map(\.subject))
        }
        // What comes back meets the works of its key as what is new does.
        try noteRivals(number, ofNew: subjects(.add), changed: subjects(.update))
        let again = try devices[number].bringBack(backup, policy).writes
        try #require(again == 0, "a second restore wrote, with \(policy)")
        say("restores with \(policy)", number, "\(result.plan.map { "\($0.action) \($0.subject)" })")
    }

    /// What a restore that resurrects promises to the others.
    private func noteKept(_ id: String, _ old: Record?, _ new: Record?, _ number: Int, _ backup: [Record]) throws {
        guard backup.contains(where: { $0.localID == id && !$0.isDeleted }), let new, !new.isLocalOnly else { return }
        if try devices[number].syncState() != nil {
            let isKept = try new.isKeptAlive()
            try #require(isKept, "\(new)")
        }
        if new == old { return }
        stories[id, default: Story()].kept.append(new.modifiedAt)
        noteKeptOnPurpose(id)
        let before = Timestamp(milliseconds: new.modifiedAt.milliseconds - 1)
        guard old == nil, new.fieldTimes.values.allSatisfy({ $0 == before }) else { return }
        note(id, before, try Fields.parse(new.fields).map { ($0.name, $0.value) })
    }

    /// Gives something in quarantine to everybody. False when there is nothing.
    private func release(_ number: Int) throws -> Bool {
        let store = devices[number]
        let envelopes = try store.all().filter { $0.type == Quarantine.type && !$0.isDeleted }
        guard !envelopes.isEmpty else { return false }
        let envelope = envelopes[random.below(envelopes.count)]
        guard let inside = try Quarantine.content(of: envelope), inside.id.zone == "Z",
            try shown(number, inside.localID)?.isLocalOnly != true
        else { return false }
        let ids = try Quarantine.enableCloud([envelope.localID], in: store)
        let new = try #require(try shown(number, inside.localID))
        let values = try Fields.parse(inside.fields).map { ($0.name, $0.value) }
        note(inside.localID, new.modifiedAt, values, isNew: false)
        noteKeptOnPurpose(inside.localID)
        say("releases \(ids)", number, "\(values) at \(new.modifiedAt)")
        return true
    }
}
