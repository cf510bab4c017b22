/// Who may read and write a zone: a record like any other, so it is backed up, restored and synced like any other. It has
/// the name `share` in the zone that it shares.
public struct Share: Sendable, Equatable {
    public enum Permission: String, Sendable, CaseIterable {
        case read
        case readWrite = "read-write"
    }

    public static let recordType = "Share"
    public static let recordName = "share"

    public var owner: String
    public var participants: [String: Permission]

    public init(owner: String, participants: [String: Permission] = [:]) {
        (self.owner, self.participants) = (owner, participants)
    }

    /// Reads a share's fields; a permission that nobody knows is none.
    public init(fields: String) throws {
        let json = try JSON(parsing: fields)
        guard let owner = json["owner"]?.string, !owner.isEmpty else {
            throw BackupError(.damaged, "a share without an owner")
        }
        self.owner = owner
        participants = [:]
        for participant in json["participants"]?.array ?? [] {
            guard let user = participant["user"]?.string, let text = participant["permission"]?.string else { continue }
            participants[user] = Permission(rawValue: text)
        }
    }

    public var fields: String {
        let users = participants.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        let list = users.map { user, permission in
            JSON.object([
                JSON.Member("permission", .string(permission.rawValue)), JSON.Member("user", .string(user)),
            ])
        }
        return JSON.object([JSON.Member("owner", .string(owner)), JSON.Member("participants", .array(list))]).compact
    }

    public func mayRead(_ user: String?) -> Bool { user == owner || user.flatMap { participants[$0] } != nil }

    public func mayWrite(_ user: String?) -> Bool {
        user == owner || user.flatMap { participants[$0] } == .readWrite
    }

    public static func id(of zone: String) -> RecordID { RecordID(zone: zone, name: recordName) }

    /// Whether a record says who may do what in its zone.
    public static func isShare(_ record: Record) -> Bool {
        record.type == recordType && record.id.name == recordName
    }
}
