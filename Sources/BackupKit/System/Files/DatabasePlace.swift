/// What may lie where a database of SQLite is named, and beside it.
enum DatabasePlace {
    /// Throws where a link leads nowhere: what it led to is away and not lost, and nothing new belongs there.
    static func refuseLostLink(_ path: String) throws {
        guard let target = try Directory.target(ofLink: path) else { return }
        throw BackupError(
            .notFound, "is a link to '\(target)', which is not there", at: path,
            remedy: "connect the disk that it lies on, or remove the link")
    }

    /// The files that SQLite keeps beside a database.
    static func companions(of path: String) -> [String] { ["-wal", "-shm", "-journal"].map { path + $0 } }

    /// Throws where SQLite cannot have its files beside the database.
    static func checkCompanions(of path: String) throws {
        for place in companions(of: path) {
            guard let status = try FileStatus.ofName(place), !status.isRegular else { continue }
            throw BackupError(
                .refused, "is \(status.kindName) in the place of a file of \(lastComponent(of: path))", at: place,
                remedy: "move it away, and run this again")
        }
    }
}
