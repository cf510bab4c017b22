/// What a record says in its fields.
extension Record {
    /// The fields, with one text.
    func fieldsWithOneText() throws -> [Field] {
        let fields = try Fields.parse(fields)
        guard let older = RawText.older(in: fields, time: { fieldTimes[$0] ?? modifiedAt }) else { return fields }
        return fields.filter { $0.name != older }
    }

    /// When it was last said which work a publication is.
    func identityTime() throws -> Timestamp {
        let fields = try Fields.parse(fields).filter { WorkIdentity.tells($0.name) }
        return fields.map { fieldTimes[$0.name] ?? modifiedAt }.max() ?? modifiedAt
    }

    /// Without these fields, and without a word about them.
    func without(_ names: Set<String>) throws -> Record {
        var record = self
        record.fields = Fields.text(try Fields.parse(fields).filter { !names.contains($0.name) })
        for name in names { record.fieldTimes[name] = nil }
        return record
    }
}
