/// A library that lies at another place than when it was imported.
extension BibliographyIntake {
    /// A library that is no longer where it was imported from has moved to here: what it brought is this file's.
    func followMove(of name: String, to path: String) throws {
        guard try store.importedName(ofPath: path) == nil else { return }
        let gone = try store.importedPaths(named: name).filter { try FileStatus.ofName($0) == nil }
        if gone.count == 1 { try store.moveImported(from: gone[0], to: path) }
    }

    /// The file has been read, and what it holds tells which file it was: one that is gone from its place, and whose entries
    /// are mostly those of this one. What that brought is this file's.
    func takeOverMoved(to path: String, _ state: inout FileState) throws {
        let moved = try goneFiles(whichMayBe: path, state).filter(\.isSame)
        guard moved.count == 1, let old = moved.first, let name = try store.importedName(ofPath: old.path) else {
            return
        }
        try store.joinImported(from: old.path, to: path)
        try store.setOldPlace(of: path, nil)
        state.broughtBefore = Brought(joining: [state.broughtBefore, old.brought])
        state.others = nil
        if try store.importedPaths(named: name).allSatisfy({ $0 == path }) {
            state.nameAtOldPlace = BibliographyPart.fileName(name)
        }
    }

    private struct GoneFile {
        let path: String
        let brought: Brought
        /// Whether most of its entries are here, and most of those here are its own.
        let isSame: Bool
    }

    /// Files that are gone and held most of what this one holds. A file that was imported from its place before is another one
    /// than those, except for the one that it was said to be.
    private func goneFiles(whichMayBe path: String, _ state: FileState) throws -> [GoneFile] {
        let isKnown = try store.importedName(ofPath: path) != nil
        let before = isKnown ? try store.oldPlace(of: path) : nil
        guard !isKnown || before != nil, !state.held.isEmpty else { return [] }
        let held = state.held.keys.map { memory(of: $0).held }
        let gone = try store.importedFiles(otherThan: path).filter { file in
            guard before == nil || file.path == before else { return false }
            let common = held.count(where: file.brought.contains)
            return try common > 0 && common * 2 >= held.count && FileStatus.ofName(file.path) == nil
        }
        guard !gone.isEmpty else { return [] }
        var all: Set<UInt64> = []
        try store.forEachLive(type: RecordType.publication) { all.insert(memory(of: $0.record.localID).held) }
        return gone.map { file in
            let common = held.count(where: file.brought.contains)
            let isSame = common * 2 > held.count && common * 2 > all.count(where: file.brought.contains)
            return GoneFile(path: file.path, brought: file.brought, isSame: isSame)
        }
    }

    /// Names the file that this one may have been at another place. Few entries in common are not enough to remove what it
    /// brought; this is said once.
    func noteOtherPlace(_ path: String, _ state: FileState) throws {
        guard try store.importedName(ofPath: path) == nil, let old = try goneFiles(whichMayBe: path, state).first
        else { return }
        try store.setOldPlace(of: path, old.path)
        intake.note(
            Finding(
                .leftOut, .warning, state.path,
                "was not imported from here before, so nothing was removed; \(old.path), which is gone, had entries of it",
                remedy:
                    "if it is that file, put it back there, and \(TypedCommand.quoted("import --mirror", [old.path])); "
                    + "then move it"))
    }
}
