/// Where a caller is in the history of a hub in a file.
extension FileHub {
    /// A token names a place in the order of changes and the push that it lies in: a hub that was brought back from a
    /// backup gives the numbers out again, but to other pushes.
    func token(at place: Int64) throws -> String { "\(id):\(place):\(try mark(at: place) ?? "")" }

    private func mark(at place: Int64) throws -> String? {
        guard place > 0 else { return "0" }
        let query = try database.statement("SELECT substr(id, 1, 8) FROM push WHERE last >= ? ORDER BY last LIMIT 1")
            .bind(1, place)
        defer { query.reset() }
        return try query.step() ? query.text(0) : nil
    }

    func position(of token: String) throws -> Int64 {
        // A push may be called whatever its device liked.
        let parts = token.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        guard parts.count == 3, parts[0] == id, let place = Int64(parts[1]), place >= 0,
            place < HubRecord.versions.upperBound, try parts[2] == mark(at: place) ?? ""
        else { throw HubError.tokenUnknown }
        return place
    }
}
