/// A note on a publication. It belongs to the work, whatever its cite key: strangers share keys, and keys change.
enum Note {
    /// The local id of its publication. Notes of older versions, and of other apps, name a cite key alone.
    static let publication = "publication"

    static func id(byKey key: String) -> String { DeterministicID.make(RecordType.note, key) }

    static func id(on publication: String) -> String {
        DeterministicID.make(RecordType.note, RecordType.publication, publication)
    }

    /// Of a second note on a publication.
    static func id(on publication: String, saying text: String) -> String {
        DeterministicID.make(RecordType.note, RecordType.publication, publication, text)
    }

    /// The ids that a note on a publication may have, best first: two devices may know a work by two ids, and one work may
    /// stand in a library twice.
    static func ids(on publication: Record) throws -> [String] {
        let work = try WorkID(publication)
        let names = publication.localID == work.legacy ? [work.first, publication.localID] : [publication.localID]
        return names.map { id(on: $0) }
    }
}
