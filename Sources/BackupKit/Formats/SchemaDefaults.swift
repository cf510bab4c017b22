extension DataSchema {
    /// A record with the defaults of what it lacks.
    public struct Filled: Sendable, Equatable {
        public var record: Record
        /// Fields that got their defaults.
        public var fields: [String] = []
        /// Fields that must be there, are not, and have no default.
        public var missing: [String] = []
    }

    /// A default is older than anything that somebody set, so it never wins over a value.
    public static let defaultTime = Timestamp(milliseconds: 0)

    /// Gives a record the defaults of the attributes that are not optional and that it lacks. What it has stays as it
    /// was written.
    public func fill(_ record: Record) throws -> Filled {
        var filled = Filled(record: record)
        guard !record.isDeleted, let entity = entity(record.type) else { return filled }
        var fields = try Fields.parse(record.fields)
        for attribute in entity.attributes where !attribute.isOptional {
            let index = fields.firstIndex { sameBytes($0.name, attribute.name) }
            if let index, fields[index].value != "null" { continue }
            guard let value = attribute.defaultValue else {
                filled.missing.append(attribute.name)
                continue
            }
            if let index {
                fields[index].value = value.compact
            } else {
                fields.append(Field(attribute.name, value))
            }
            filled.fields.append(attribute.name)
            filled.record.fieldTimes[attribute.name] = Self.defaultTime
        }
        guard !filled.fields.isEmpty else { return filled }
        filled.record.fields = Fields.text(fields)
        filled.record.schemaVersion = max(record.schemaVersion, version)
        return filled
    }
}
