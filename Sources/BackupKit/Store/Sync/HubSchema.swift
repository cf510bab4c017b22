extension FileHub {
    private static let digest = SHA256Digest(
        hex: "4fec8bea07c74a3bb812039c64ddedf5ebeed41fb318314d5841c66ad8e7be09")
    private static let own = Result {
        let empty = try SQLite(":memory:", .create)
        try empty.execute(schema)
        return try ForeignSchema.parts(of: empty)
    }

    static func isAsMade(_ database: SQLite) throws -> Bool { try ForeignSchema.digest(of: database) == digest }

    /// The same for a hub.
    static func refuseForeign(in database: SQLite) throws {
        if try isAsMade(database) { return }
        try ForeignSchema(own: own.get(), remedy: makeNew).refuse(in: database)
    }
}
