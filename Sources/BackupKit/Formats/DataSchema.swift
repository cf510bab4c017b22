/// A schema file: which types of records an app has, and what they are made of (`docs/schema.md`).
public struct DataSchema: Sendable, Equatable {
    public struct Attribute: Sendable, Equatable {
        public let name: String
        public let type: String
        public let isOptional: Bool
        /// Nil when there is none; `null` is none.
        public let defaultValue: JSON?
        public let isUnique: Bool
        public let renamedFrom: String?
    }

    public struct Relationship: Sendable, Equatable {
        public let name: String
        /// The entity at its other end.
        public let target: String
        public let isToMany: Bool
        public let isOptional: Bool
        public let isOrdered: Bool
        public let inverse: String?
        public let deleteRule: String
        public let renamedFrom: String?
    }

    public struct Entity: Sendable, Equatable {
        /// The record type.
        public let name: String
        public let attributes: [Attribute]
        public let relationships: [Relationship]
        /// Names of attributes that together may occur once only.
        public let unique: [[String]]
        /// Names of attributes that together tell one record from another, whatever their ids: what `dedup` goes by.
        public var key: [String] = []
        public let renamedFrom: String?
    }

    public static let format = "backup-tool-schema"
    /// What an attribute can be. CloudKit stores none of another kind.
    public static let types = [
        "string", "integer", "double", "decimal", "boolean", "date", "uuid", "uri", "binary", "json",
    ]
    public static let deleteRules = ["nullify", "cascade", "deny", "none"]

    /// What a schema was read from.
    public enum Form: String, Sendable { case json, coreData, cloudKit }

    /// 0 when the form knows no versions.
    public let version: Int
    public let entities: [Entity]
    public let form: Form

    public func entity(_ name: String) -> Entity? { entities.first { sameBytes($0.name, name) } }
}

extension DataSchema {
    /// What is wrong with single fields is told in `findings`, all of it; what is no schema at all is thrown.
    public init(parsing bytes: UnsafeRawBufferPointer, _ findings: inout [Finding]) throws {
        let json = try JSON(parsing: bytes)
        guard let members = json.members, json["format"]?.string == Self.format else {
            throw BackupError(.damaged, "is no schema: its 'format' is not '\(Self.format)'")
        }
        guard json["formatVersion"]?.integer == 1 else {
            throw BackupError(.damaged, "is a schema of a format that this backup-tool does not know")
        }
        guard let version = json["version"]?.integer.flatMap({ Int(exactly: $0) }) else {
            throw BackupError(.damaged, "has no whole number as its 'version'")
        }
        guard let entities = json["entities"]?.members else { throw BackupError(.damaged, "has no 'entities'") }
        self.version = version
        form = .json
        var reader = SchemaReader()
        reader.checkMembers(members, of: "the file", ["format", "formatVersion", "version", "entities", "comment"])
        reader.checkNames(entities, of: "the file")
        self.entities = entities.map { reader.entity($0) }
        findings += reader.findings
    }
}

/// Takes the parts of a schema file apart and notes what it finds odd.
private struct SchemaReader {
    var findings: [Finding] = []

    mutating func note(_ subject: String, _ message: String, _ severity: Finding.Severity = .error) {
        findings.append(Finding(.schemaInvalid, severity, subject, message))
    }

    /// A misspelled member would silently mean its default.
    mutating func checkMembers(_ members: [JSON.Member], of subject: String, _ known: [String]) {
        for member in members where !known.contains(member.key) {
            let hint = didYouMean(member.key, among: known).map { "; \($0)" } ?? ""
            note(subject, "has a member '\(printable(member.key))' that means nothing here\(hint)")
        }
        checkNames(members, of: subject)
    }

    mutating func checkNames(_ members: [JSON.Member], of subject: String) {
        var seen: Set<String> = []
        for member in members where !seen.insert(member.key).inserted {
            note(subject, "says '\(printable(member.key))' twice")
        }
    }

    private mutating func members(_ json: JSON, of subject: String, _ known: [String]) -> JSON {
        guard let members = json.members else {
            note(subject, "is not a JSON object")
            return .object([])
        }
        checkMembers(members, of: subject, known)
        return json
    }

    private mutating func flag(_ json: JSON, _ name: String, of subject: String, else usual: Bool = false) -> Bool {
        guard let value = json[name] else { return usual }
        if value.bool == nil { note(subject, "'\(name)' is not true or false") }
        return value.bool ?? usual
    }

    private mutating func text(_ json: JSON, _ name: String, of subject: String) -> String? {
        guard let value = json[name], value != .null else { return nil }
        if value.string == nil { note(subject, "'\(name)' is no text") }
        return value.string
    }

    mutating func entity(_ member: JSON.Member) -> DataSchema.Entity {
        let name = member.key
        let json = members(
            member.value, of: name, ["attributes", "relationships", "unique", "key", "renamedFrom", "comment"])
        for part in ["attributes", "relationships"] {
            if let value = json[part], value.members == nil { note(name, "'\(part)' is not a JSON object") }
            checkNames(json[part]?.members ?? [], of: name)
        }
        let attributes = (json["attributes"]?.members ?? []).map { attribute($0, of: name) }
        let relationships = (json["relationships"]?.members ?? []).map { relationship($0, of: name) }
        for relationship in relationships where attributes.contains(where: { $0.name == relationship.name }) {
            note("\(name).\(relationship.name)", "is both an attribute and a relationship")
        }
        var unique: [[String]] = []
        for constraint in json["unique"]?.array ?? [] {
            let names = constraint.array?.compactMap(\.string) ?? constraint.string.map { [$0] } ?? []
            if names.isEmpty { note(name, "'unique' is not a list of lists of names") }
            unique.append(names)
        }
        let key = json["key"].map { $0.array?.compactMap(\.string) ?? $0.string.map { [$0] } ?? [] } ?? []
        if json["key"] != nil, key.isEmpty { note(name, "'key' is not a list of names of attributes") }
        return DataSchema.Entity(
            name: name, attributes: attributes, relationships: relationships, unique: unique.filter { !$0.isEmpty },
            key: key, renamedFrom: text(json, "renamedFrom", of: name))
    }

    private mutating func attribute(_ member: JSON.Member, of entity: String) -> DataSchema.Attribute {
        let subject = "\(entity).\(member.key)"
        let json = members(
            member.value, of: subject, ["type", "optional", "default", "unique", "renamedFrom", "comment"])
        let type = text(json, "type", of: subject)
        if type == nil { note(subject, "has no 'type'") }
        // `nil` alone would be JSON's null here.
        let standard: JSON? = json["default"] == .some(.null) ? Optional<JSON>.none : json["default"]
        return DataSchema.Attribute(
            name: member.key, type: type ?? "", isOptional: flag(json, "optional", of: subject),
            defaultValue: standard, isUnique: flag(json, "unique", of: subject),
            renamedFrom: text(json, "renamedFrom", of: subject))
    }

    private mutating func relationship(_ member: JSON.Member, of entity: String) -> DataSchema.Relationship {
        let subject = "\(entity).\(member.key)"
        let json = members(
            member.value, of: subject,
            ["to", "toMany", "optional", "ordered", "inverse", "deleteRule", "renamedFrom", "comment"])
        let target = text(json, "to", of: subject)
        if target == nil { note(subject, "has no 'to': the entity at its other end") }
        return DataSchema.Relationship(
            name: member.key, target: target ?? "", isToMany: flag(json, "toMany", of: subject),
            isOptional: flag(json, "optional", of: subject, else: true), isOrdered: flag(json, "ordered", of: subject),
            inverse: text(json, "inverse", of: subject), deleteRule: text(json, "deleteRule", of: subject) ?? "nullify",
            renamedFrom: text(json, "renamedFrom", of: subject))
    }
}
