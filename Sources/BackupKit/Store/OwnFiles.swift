/// The files of a store, which no import takes into it: the database with its companions, the folder of assets, and what a
/// writer has not named yet.
struct OwnFiles {
    private let bases: Set<ByteName>

    init(of store: Store) { self.init(ofStoreAt: store.standsFor ?? store.path) }

    init(ofStoreAt path: String) {
        bases = Set([Self.inRealFolder(path), Directory.real(path)].compactMap(\.self).map { ByteName($0) })
    }

    func holds(_ path: String) -> Bool { holds(lastComponent(of: path), below: Directory.real(parent(of: path)) ?? "") }

    /// Whether it is the place of a file that SQLite or this tool keeps beside the database, be it there or not.
    func isBesideDatabase(_ path: String) -> Bool {
        let place = Self.inRealFolder(path)
        return bases.contains { base in Self.companions(of: base.text).contains { sameBytes($0, place) } }
    }

    /// Also of what is not there.
    private static func inRealFolder(_ path: String) -> String {
        "\(Directory.real(parent(of: path)) ?? parent(of: path))/\(lastComponent(of: path))"
    }

    private static func companions(of path: String) -> [String] {
        DatabasePlace.companions(of: path) + [path + "-idle"]
    }

    /// `root` is a real path.
    func holds(_ relative: String, below root: String) -> Bool {
        let path = "\(root)/\(relative)"
        return bases.contains { base in
            let assets = Store.assetFolder(of: base.text)
            let own = [base.text, assets] + Self.companions(of: base.text)
            return own.contains { sameBytes($0, path) } || path.utf8.starts(with: (assets + "/").utf8)
                || sameBytes(parent(of: path), parent(of: base.text))
                    && AtomicFile.isTemporary(lastComponent(of: path), of: base.text)
        }
    }
}
