/// The files of a store, which no import takes into it: the database with its companions, the folder of assets, and what a
/// writer has not named yet.
struct OwnFiles {
    private let bases: Set<ByteName>

    init(of store: Store) {
        let path = store.standsFor ?? store.path
        let named = "\(Directory.real(parent(of: path)) ?? parent(of: path))/\(lastComponent(of: path))"
        bases = Set([named, Directory.real(path)].compactMap(\.self).map { ByteName($0) })
    }

    func holds(_ path: String) -> Bool { holds(lastComponent(of: path), below: Directory.real(parent(of: path)) ?? "") }

    /// `root` is a real path.
    func holds(_ relative: String, below root: String) -> Bool {
        let path = "\(root)/\(relative)"
        return bases.contains { base in
            let assets = Store.assetFolder(of: base.text)
            let own = [base.text, assets] + Store.companions(of: base.text)
            return own.contains { sameBytes($0, path) } || path.utf8.starts(with: (assets + "/").utf8)
                || sameBytes(parent(of: path), parent(of: base.text))
                    && AtomicFile.isTemporary(lastComponent(of: path), of: base.text)
        }
    }
}
