/// The ids of events by the `localId` that they have, or had, beside them.
struct OtherIDs {
    private let store: Store
    /// By keys of the `localId`, once that was asked.
    private var ids: [Int64: String]?

    init(_ store: Store) { self.store = store }

    mutating func note(_ key: Int64, _ id: String) { ids?[key] = id }

    mutating func event(with localID: String) throws -> String? {
        let known = try ids ?? read()
        ids = known
        let key = store.hasher.key(localID)
        return known[key].flatMap { store.hasher.key($0) == key ? nil : $0 }
    }

    private func read() throws -> [Int64: String] {
        var found = try deletedEvents()
        try store.forEachEvent { _, bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            let ids = try store.ifReadable { try Fields.strings(named: ["id", "localId"], of: text) } ?? []
            if ids.count == 2, let id = ids[0], let other = ids[1] { found[store.hasher.key(other)] = id }
        }
        return found
    }

    /// The ids of deleted events, by what they had beside them or have taken in, where no event of that id is alive.
    private func deletedEvents() throws -> [Int64: String] {
        var found: [Int64: String] = [:]
        for (other, id) in try store.takers(type: RecordType.event, areDeleted: true) {
            let own = try store.soundRecords(localID: other)
            if !own.contains(where: { $0.record.type == RecordType.event && !$0.record.isDeleted }) {
                found[store.hasher.key(other)] = id
            }
        }
        return found
    }
}
