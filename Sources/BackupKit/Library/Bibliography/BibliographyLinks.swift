/// The files of entries that a mirrored file has given up.
extension BibliographyIntake {
    /// Notes the files that a publication names because this file said so in an earlier import.
    func noteNamedFiles(by localID: String, _ fields: [Field], _ state: inout FileState) {
        let memory = memory(of: localID)
        let names = Publication.links(in: fields.filter { state.broughtBefore.contains(memory.everBrought($0)) })
        if !names.isEmpty { state.namedBefore[localID] = names.flatMap(\.readings) }
    }

    /// The links of a publication without those to files that its entry named before and does not name any more; nil where
    /// there are none of these. The files themselves stay.
    func linksLeft(of localID: String, _ fields: [Field], without lost: [Field], _ state: FileState) -> [String]? {
        guard let before = state.namedBefore[localID] else { return nil }
        let now = Publication.links(in: fields.filter { !lost.contains($0) }).flatMap(\.readings)
        func isNamed(_ path: String, among names: [String]) -> Bool {
            names.contains { Store.isVersion(path, of: $0) }
        }
        let links = Fields.strings(Publication.linkedFiles, in: fields)
        let kept = links.filter { !isNamed($0, among: before) || isNamed($0, among: now) }
        return kept.count == links.count ? nil : kept
    }
}
