extension FileHub {
    private static let digest = SHA256Digest(
        hex: "cfd8348808d1a1b28b93b90d5746be6a7e32c5b079a46f2023eadc99cafce33d")
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
