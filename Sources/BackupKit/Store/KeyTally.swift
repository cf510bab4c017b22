/// Sums over the index by local id, as it is or as it should be for the records. Where they are equal, no entry need be looked
/// up: one changed bit of an entry changes a sum.
struct KeyTally: Equatable {
    /// Of half a number, so that sums of any number of rows stay in range.
    private static let half: Int64 = 0xFFFF_FFFF

    private var sums = SIMD4<Int64>()

    init() {}

    /// What the index says.
    init(of database: SQLite) throws {
        let halves = ["key", "key >> 32", "content", "content >> 32"].map { "ifnull(sum(\($0) & \(Self.half)), 0)" }
        let query = try database.prepare("SELECT \(halves.joined(separator: ", ")) FROM local_key")
        if try query.step() { for place in 0..<4 { sums[place] = query.integer(Int32(place)) } }
    }

    /// Adds what it should say of a row of `recordColumns`.
    mutating func add(_ row: Statement, _ hasher: RecordHasher) {
        let (key, content) = (hasher.key(row.bytes(4)), hasher.content(of: row))
        sums &+= SIMD4(key & Self.half, key >> 32 & Self.half, content & Self.half, content >> 32 & Self.half)
    }
}
