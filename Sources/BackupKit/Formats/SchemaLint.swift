/// Checks a schema by itself: that it holds together, and that CloudKit can carry it.
public struct SchemaLint {
    private let schema: DataSchema
    private var findings: [Finding] = []

    private init(_ schema: DataSchema) { self.schema = schema }

    public static func check(_ schema: DataSchema) -> [Finding] {
        var lint = SchemaLint(schema)
        if schema.entities.isEmpty {
            lint.note(.schemaInvalid, "schema", "defines no record type", severity: .warning)
        }
        for entity in schema.entities { lint.check(entity) }
        return lint.findings
    }

    private mutating func note(
        _ code: Finding.Code, _ subject: String, _ message: String, _ remedy: String? = nil,
        severity: Finding.Severity = .error
    ) {
        findings.append(Finding(code, severity, subject, message, remedy: remedy))
    }

    private mutating func check(_ entity: DataSchema.Entity) {
        for attribute in entity.attributes { check(attribute, of: entity) }
        for name in entity.key where !entity.attributes.contains(where: { $0.name == name }) {
            note(.schemaInvalid, "\(entity.name).\(name)", "is named by 'key' and is no attribute")
        }
        for relationship in entity.relationships { check(relationship, of: entity) }
        for names in entity.unique {
            for name in names {
                note(
                    .schemaUnique, "\(entity.name).\(name)",
                    "is part of a unique constraint, which CloudKit does not have",
                    "take it out of 'unique'; the app's own logic keeps values apart")
                if !entity.attributes.contains(where: { $0.name == name }) {
                    note(.schemaInvalid, "\(entity.name).\(name)", "is named by 'unique' and is no attribute")
                }
            }
        }
    }

    private mutating func check(_ attribute: DataSchema.Attribute, of entity: DataSchema.Entity) {
        let subject = "\(entity.name).\(attribute.name)"
        if !attribute.type.isEmpty, schema.form != .cloudKit, !DataSchema.types.contains(attribute.type) {
            let hint = didYouMean(attribute.type, among: DataSchema.types)
            note(
                .schemaInvalid, subject, "is of type '\(printable(attribute.type))', which is none",
                hint ?? "the types are: \(DataSchema.types.joined(separator: ", "))")
        }
        if attribute.isUnique {
            note(
                .schemaUnique, subject, "is unique, and CloudKit has no unique constraints",
                "take 'unique' away; the app's own logic keeps values apart")
        }
        if !attribute.isOptional, attribute.defaultValue == nil {
            note(
                .schemaNoDefault, subject, "is neither optional nor has a default",
                "add \"optional\": true or a \"default\"")
        }
        if let value = attribute.defaultValue, !DataSchema.isValue(value, of: attribute.type) {
            note(.schemaInvalid, subject, "has a default that is no \(attribute.type): \(printable(value.compact))")
        }
    }

    private mutating func check(_ relationship: DataSchema.Relationship, of entity: DataSchema.Entity) {
        let subject = "\(entity.name).\(relationship.name)"
        if !DataSchema.deleteRules.contains(relationship.deleteRule) {
            note(
                .schemaInvalid, subject, "has a delete rule '\(printable(relationship.deleteRule))', which is none",
                "the rules are: \(DataSchema.deleteRules.joined(separator: ", "))")
        }
        if relationship.deleteRule == "deny" {
            note(
                .schemaCloudKit, subject, "has the delete rule 'deny', which CloudKit does not support",
                "use 'nullify', and let the app refuse the delete")
        }
        if relationship.isOrdered {
            note(
                .schemaCloudKit, subject, "is ordered, which CloudKit does not support",
                "take 'ordered' away, and keep the order in an attribute")
        }
        if !relationship.isOptional {
            note(
                .schemaCloudKit, subject, "is not optional; its other end may arrive later or never",
                "make the relationship optional")
        }
        guard let target = schema.entity(relationship.target) else {
            if !relationship.target.isEmpty {
                note(.schemaInvalid, subject, "leads to '\(printable(relationship.target))', which is no entity")
            }
            return
        }
        guard let name = relationship.inverse else {
            return note(
                .schemaNoInverse, subject, "has no inverse", "add one to \(target.name), and name it in 'inverse'")
        }
        guard let inverse = target.relationships.first(where: { $0.name == name }) else {
            return note(
                .schemaNoInverse, subject, "has the inverse \(target.name).\(printable(name)), which is not there")
        }
        if inverse.target != entity.name || inverse.inverse != relationship.name {
            note(
                .schemaNoInverse, subject, "has the inverse \(target.name).\(name), whose own inverse is another",
                "each of the two must name the other")
        }
    }
}

extension DataSchema {
    /// Whether a JSON value can be one of an attribute of this type; yes for types that are none.
    static func isValue(_ value: JSON, of type: String) -> Bool {
        switch type {
        case "string", "uri", "binary": value.string != nil
        case "uuid": (value.string.map { $0.utf8.count == 36 }) ?? false
        case "date": value.string.flatMap { Timestamp(iso8601: $0) } != nil
        case "integer": value.integer != nil
        case "double", "decimal": value.double != nil
        case "boolean": value.bool != nil
        default: true
        }
    }
}
