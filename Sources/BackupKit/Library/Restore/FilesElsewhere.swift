/// Files that the records of a backup link and that were on other devices only when it was made. The store remembers which
/// files such links mean. The restore that brings a link names its file; later ones do not, as nobody may ever have it.
struct FilesElsewhere {
    /// The files, as they would lie in the store.
    private let files: [Asset]
    /// Those of them to name where a link to them is new.
    private let named: Set<ByteName>

    /// Must be made when the names of files have been planned, and before records are taken.
    init(_ prepared: Restorer.Prepared, _ intake: Intake, _ options: RestoreOptions) throws {
        func place(_ path: String) -> String { intake.moved[ByteName(path)] ?? path }
        files =
            options.kinds.contains(.attachments)
            ? prepared.filesElsewhere.map { $0.renamed(place($0.path)) } : []
        let names = options.namesFilesElsewhere && !files.isEmpty ? prepared.layout.filesElsewhere.map(place) : []
        named = try Set(names.map { ByteName($0) }).subtracting(names.isEmpty ? [] : Self.linked(in: intake.store))
    }

    /// Takes note of those that a record links now and that the store does not have; names those whose links are new.
    func report(to intake: Intake) throws {
        guard !files.isEmpty else { return }
        let linked = try Self.linked(in: intake.store)
        for file in files where linked.contains(ByteName(file.path)) {
            if try intake.store.ifSound({ try intake.store.asset(file.path) }) ?? nil != nil { continue }
            // What the store knows of its links was there before.
            if try intake.store.awaitedFile(file.path) == nil { try intake.store.noteFileElsewhere(file) }
            guard named.contains(ByteName(file.path)) else { continue }
            intake.note(
                Finding(
                    .linkMissing, .warning, file.path,
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
    /// The paths of linked files that the backup does not have because they were on other devices only. The manifest knows the
    /// files as well that it says were left out.
    var filesElsewhere: [String] {
        guard case .own(let manifest) = manifest else { return [] }
        let leftOut = Set(manifest.omitted.map { ByteName($0.path) })
        return manifest.elsewhere.keys.filter { !leftOut.contains(ByteName($0)) }.sorted(by: precedesBytewise)
    }
}

extension Restorer.Prepared {
    /// The files that its manifest lists and that it does not have, in the order of their paths.
    fileprivate var filesElsewhere: [Asset] {
        guard case .own(let manifest) = layout.manifest else { return [] }
        return manifest.elsewhere.sorted { precedesBytewise($0.key, $1.key) }.map {
            Asset(path: $0.key, size: $0.value.size, digest: $0.value.digest)
        }
    }

    /// The attachments that the manifest lists, also where they are damaged or not there.
    var listedFiles: [Asset] {
        let files = layout.expected.filter { layout.role(of: $0.key) == .attachment }.map {
            Asset(path: String($0.key.dropFirst(layout.prefix.count)), size: $0.value.size, digest: $0.value.digest)
        }
        return files + filesElsewhere
    }
}
