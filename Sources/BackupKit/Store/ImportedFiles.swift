/// The `.bib` files that this device has imported, by their real paths, and hashes of all that each of them ever brought. It
/// stays on this device: no other has these files.
extension Store {
    /// What the file of that path is called in the order of its entries; nil when it was not imported here.
    func importedName(ofPath path: String) throws -> String? {
        let query = try database.statement("SELECT name FROM imported_file WHERE path = ?").bind(1, path)
        defer { query.reset() }
        return try query.step() ? query.text(0) : nil
    }

    /// Hashes of what the file of that path has brought, or, with `others`, of what all other files have.
    func brought(by path: String, others: Bool = false) throws -> Set<Int64> {
        let query = try database.prepare(
            "SELECT brought FROM imported_file WHERE path \(others ? "<>" : "=") ?"
        ).bind(1, path)
        var found: Set<Int64> = []
        while try query.step() {
            let bytes = query.bytes(0)
            for start in stride(from: 0, to: bytes.count - bytes.count % 8, by: 8) {
                found.insert(Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: Int64.self)))
            }
        }
        return found
    }

    func noteImported(path: String, name: String, brought: [Int64]) throws {
        let known = try self.brought(by: path)
        if try importedName(ofPath: path) == name, brought.allSatisfy(known.contains) { return }
        var all: [Int64] = []
        for hash in (brought + known).sorted() where hash != all.last { all.append(hash) }
        try all.map(\.littleEndian).withUnsafeBytes { bytes in
            let query = try database.statement("INSERT OR REPLACE INTO imported_file VALUES (?, ?, ?)")
            try query.bind(1, path).bind(2, name).bind(3, blob: bytes).run()
        }
    }
}
