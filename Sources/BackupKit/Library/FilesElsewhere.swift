/// Files that the records of a backup link and that were on other devices only when it was made. The restore that brings such
/// a link names its file; later ones do not, as nobody may ever have it.
struct FilesElsewhere {
    /// Where the files would lie in the store; no record of it links them yet.
    private let places: [String]

    /// Must be made when the names of files have been planned, and before records are taken.
    init(_ prepared: Restorer.Prepared, _ intake: Intake, _ options: RestoreOptions) throws {
        let files = options.kinds.contains(.attachments) ? prepared.layout.filesElsewhere : []
        guard options.namesFilesElsewhere, !files.isEmpty else {
            places = []
            return
        }
        let linked = try Self.linked(in: intake.store)
        places = files.map { intake.moved[ByteName($0)] ?? $0 }.filter { !linked.contains(ByteName($0)) }
    }

    /// Names those that a record links now and that the store does not have.
    func report(to intake: Intake) throws {
        guard !places.isEmpty else { return }
        let linked = try Self.linked(in: intake.store)
        for place in places where linked.contains(ByteName(place)) {
            if try intake.store.ifSound({ try intake.store.asset(place) }) ?? nil != nil { continue }
            intake.note(
                Finding(
                    .linkMissing, .warning, place,
                    "is linked and is not in the backup: it was on other devices only when the backup was made",
                    remedy:
                        "restore a backup of a device that has it, or 'backup-tool sync' with the hub of that device"))
        }
    }

    private static func linked(in store: Store) throws -> Set<ByteName> {
        var links = LivingLinks(store)
        return try links.all()
    }
}

extension OpenedLayout {
    /// The paths of linked files that the backup does not have because they were on other devices only.
    var filesElsewhere: [String] {
        if case .own(let manifest) = manifest { return manifest.elsewhere.keys.sorted(by: precedesBytewise) }
        return []
    }
}

extension Restorer.Prepared {
    /// The attachments that the manifest lists, also where they are damaged or not there.
    var listedFiles: [Asset] {
        var files = layout.expected.filter { layout.role(of: $0.key) == .attachment }.map {
            Asset(path: String($0.key.dropFirst(layout.prefix.count)), size: $0.value.size, digest: $0.value.digest)
        }
        if case .own(let manifest) = layout.manifest {
            files += manifest.elsewhere.map { Asset(path: $0.key, size: $0.value.size, digest: $0.value.digest) }
        }
        return files
    }
}
