/// Copies that stand in for devices and for a hub, where somebody wants to see what would happen.
extension Store {
    /// Copies a database, a store's or a hub's, as it is at this moment; the original is only read.
    static func copyDatabase(_ path: String, to target: String) throws {
        let source = try connectReader(path)
        let copy = try source.prepare("VACUUM INTO ?").bind(1, target)
        _ = try copy.step()
    }

    /// Makes this copy a device of its own. Files stay out: they were not copied.
    func standIn() throws {
        try database.execute("PRAGMA synchronous = OFF")
        try write {
            try database.execute(
                "DELETE FROM asset; DELETE FROM asset_sync; DELETE FROM held WHERE zone = '\(Self.assetZone)'")
        }
    }

    /// Makes this copy another device than the one it was made of: without what is kept there only and, where there is a
    /// hub, with what that has and nothing else.
    func standInAsOther(with hubID: String?) throws {
        let link = try hubLink()
        try write {
            try database.execute("DELETE FROM record WHERE local_only AND deleted_at IS NULL")
            if let hubID {
                let isKnown = link?.hubID == hubID
                try database.execute(
                    """
                    DELETE FROM record WHERE \(isKnown ? "clean_at IS NOT change" : "true");
                    DELETE FROM ancestor; DELETE FROM held;
                    """)
                if var link {
                    link.token = nil
                    try setHubLink(link)
                }
            }
            try database.execute("DELETE FROM local_key WHERE change NOT IN (SELECT change FROM record)")
        }
    }
}
