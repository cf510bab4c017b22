/// Files that records which have just come name, and that have not come with them.
extension Synchronizer {
    /// Takes note of what an arriving record names for the first time.
    func noteLinks(of record: Record, before: () throws -> Record?) throws {
        guard record.type == RecordType.publication, !record.isDeleted else { return }
        let links = try Store.links(of: record)
        guard !links.isEmpty else { return }
        let known = Set(try before().map { try Store.links(of: $0) }?.map { ByteName($0) } ?? [])
        arrivedLinks.formUnion(links.map { ByteName($0) }.filter { !known.contains($0) })
    }

    /// Names the files that are still not here; what is held is named by itself. Said once: nobody may ever send them.
    func reportMissingFiles() throws {
        let held = Set(try store.held().filter { $0.id.zone == Store.assetZone }.map { ByteName($0.id.name) })
        var missing: [String] = []
        for path in arrivedLinks where !held.contains(path) && damagedAssets[path] == nil {
            if try store.ifSound({ try store.asset(path.text) == nil }) == true { missing.append(path.text) }
        }
        guard !missing.isEmpty else { return }
        missing.sort(by: precedesBytewise)
        let what =
            missing.count == 1
            ? "the publications that came name this file, and the hub does not have it"
            : "the publications that came name \(missing.count) files that the hub does not have: \(firstNames(missing))"
        result.findings.append(
            Finding(
                .linkMissing, .warning, missing.count == 1 ? missing[0] : identity.location, what,
                remedy: "'backup-tool sync' on a device that has them sends them, unless they are too large for the hub"
            ))
    }
}
