/// Compares two versions of a schema: what the old one had must still be there, and mean the same. Additions are fine.
public struct SchemaEvolution {
    private let old: DataSchema
    private let new: DataSchema
    private var findings: [Finding] = []
    private var additions = 0

    private init(from old: DataSchema, to new: DataSchema) {
        self.old = old
        self.new = new
    }

    public static func check(from old: DataSchema, to new: DataSchema) -> [Finding] {
        var evolution = SchemaEvolution(from: old, to: new)
        evolution.run()
        return evolution.findings
    }

    private mutating func note(
        _ code: Finding.Code, _ subject: String, _ message: String, _ remedy: String? = nil,
        severity: Finding.Severity = .error
    ) {
        findings.append(Finding(code, severity, subject, message, remedy: remedy))
    }

    private mutating func run() {
        let added = new.entities.filter { old.entity($0.name) == nil }
        additions += added.count
        for entity in old.entities {
            if let kept = new.entity(entity.name) {
                compare(entity, kept)
                continue
            }
            missing(
                "\(entity.name)", what: "entity",
                renamedTo: added.first { $0.renamedFrom == entity.name }?.name,
                candidates: added.filter { looksLike(entity, $0) }.map(\.name))
        }
        // CloudKit's own schemas, and models without an identifier, have no versions.
        if new.version == 0 || old.version == 0 { return }
        if new.version < old.version {
            note(.schemaVersion, "version", "went down from \(old.version) to \(new.version)")
        } else if new.version == old.version, additions > 0 || !findings.isEmpty {
            note(
                .schemaVersion, "version", "is \(new.version) in both, though they differ",
                "give the new one a new version",
                severity: .note)
        }
    }

    private func looksLike(_ left: DataSchema.Entity, _ right: DataSchema.Entity) -> Bool {
        !left.attributes.isEmpty
            && left.attributes.allSatisfy { attribute in
                right.attributes.contains { $0.name == attribute.name && $0.type == attribute.type }
            }
    }

    /// What is gone was removed, or has another name now: both lose what is stored under the old one.
    private mutating func missing(_ subject: String, what: String, renamedTo: String?, candidates: [String]) {
        let remedy = "keep it; what nobody uses costs nothing, and older devices still write it"
        if let name = renamedTo {
            note(.schemaRenamed, subject, "was renamed to '\(name)', which no older data has", remedy)
        } else if candidates.count == 1 {
            note(.schemaRenamed, subject, "is gone, and '\(candidates[0])' looks like its new name", remedy)
        } else {
            note(.schemaRemoved, subject, "was removed, an \(what) that older data has", remedy)
        }
    }

    private mutating func compare(_ before: DataSchema.Entity, _ after: DataSchema.Entity) {
        let added = after.attributes.filter { new in !before.attributes.contains { $0.name == new.name } }
        additions += added.count
        for attribute in added where !attribute.isOptional && attribute.defaultValue == nil {
            note(
                .schemaNotAdditive, "\(after.name).\(attribute.name)",
                "is new and neither optional nor has a default: older data has none",
                "add \"optional\": true or a \"default\"")
        }
        for attribute in before.attributes {
            if let kept = after.attributes.first(where: { $0.name == attribute.name }) {
                compare(attribute, kept, "\(before.name).\(attribute.name)")
                continue
            }
            if after.relationships.contains(where: { $0.name == attribute.name }) {
                note(
                    .schemaTypeChanged, "\(before.name).\(attribute.name)", "was an attribute and is a relationship now"
                )
                continue
            }
            missing(
                "\(before.name).\(attribute.name)", what: "attribute",
                renamedTo: added.first { $0.renamedFrom == attribute.name }?.name,
                candidates: added.filter { $0.type == attribute.type }.map(\.name))
        }
        compareRelationships(before, after)
    }

    private mutating func compare(_ before: DataSchema.Attribute, _ after: DataSchema.Attribute, _ subject: String) {
        if before.type != after.type {
            note(
                .schemaTypeChanged, subject, "was of type \(before.type) and is of type \(after.type) now",
                "add a field of the new type beside it")
        }
        if before.isOptional, !after.isOptional {
            note(
                .schemaNotAdditive, subject, "is no longer optional: older data may have none",
                severity: after.defaultValue == nil ? .error : .warning)
        }
        if before.defaultValue != after.defaultValue, before.type == after.type, before.isOptional == after.isOptional {
            note(
                .schemaNotAdditive, subject, "has another default: what lacks it reads differently on older devices",
                severity: .warning)
        }
    }

    private mutating func compareRelationships(_ before: DataSchema.Entity, _ after: DataSchema.Entity) {
        let added = after.relationships.filter { new in !before.relationships.contains { $0.name == new.name } }
        additions += added.count
        for relationship in before.relationships {
            let subject = "\(before.name).\(relationship.name)"
            guard let kept = after.relationships.first(where: { $0.name == relationship.name }) else {
                if after.attributes.contains(where: { $0.name == relationship.name }) {
                    note(.schemaTypeChanged, subject, "was a relationship and is an attribute now")
                } else {
                    missing(
                        subject, what: "relationship",
                        renamedTo: added.first { $0.renamedFrom == relationship.name }?.name,
                        candidates: added.filter { $0.target == relationship.target }.map(\.name))
                }
                continue
            }
            if kept.target != relationship.target {
                note(.schemaTypeChanged, subject, "led to \(relationship.target) and leads to \(kept.target) now")
            }
            if kept.isToMany != relationship.isToMany {
                note(.schemaTypeChanged, subject, "leads to \(kept.isToMany ? "many" : "one") now, and did not before")
            }
            if relationship.inverse != nil, kept.inverse != relationship.inverse {
                note(.schemaTypeChanged, subject, "has another inverse")
            }
            if kept.deleteRule != relationship.deleteRule {
                note(
                    .schemaNotAdditive, subject, "has another delete rule; older devices keep the old one",
                    severity: .warning)
            }
        }
    }
}
