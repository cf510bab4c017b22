/// One line of a plan.
public struct PlanItem: Sendable, Equatable {
    public enum Action: String, Sendable { case add, update, keep, quarantine, protect, remove, conflict }

    public let action: Action
    public let subject: String
    /// What a person calls it: a title, a time.
    public let label: String
    public internal(set) var changes: [FieldChange]
    public let reason: String?
}

extension Intake {
    func plan(
        _ action: PlanItem.Action, _ record: Record, id: RecordID, changes: [FieldChange] = [], reason: String? = nil
    ) {
        guard keepsPlan || action != .add && action != .keep && action != .quarantine,
            result.plan.count < Intake.planLimit
        else { return }
        result.plan.append(
            PlanItem(
                action: action, subject: id.description, label: RecordLabel.text(of: record), changes: changes,
                reason: reason))
    }

    /// Of an attachment by its path, or a setting by its key.
    func plan(_ action: PlanItem.Action, _ name: String, reason: String? = nil) {
        guard keepsPlan || action != .add, result.plan.count < Intake.planLimit else { return }
        result.plan.append(PlanItem(action: action, subject: name, label: name, changes: [], reason: reason))
    }

    func plan(setting key: String, from before: String?, to after: String?) {
        guard result.plan.count < Intake.planLimit else { return }
        result.plan.append(
            PlanItem(
                action: before == nil ? .add : after == nil ? .remove : .update, subject: key, label: key,
                changes: [FieldChange(name: "value", before: before, after: after)], reason: nil))
    }
}
