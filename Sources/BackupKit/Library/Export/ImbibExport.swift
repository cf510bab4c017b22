/// Writes a backup that imbib itself restores: its names, its number dates, its XOR checksums.
enum ImbibExport {
    static func write(_ layout: inout StoreLayout, _ writer: LayoutWriter) throws {
        var checksums: [String: String] = [:]
        var publications = 0
        func add(_ path: String, _ write: (TextSink) throws -> Void) throws {
            var spool = try SpoolFile()
            try write { try spool.append($0) }
            try spool.flush()
            let finished = spool
            var fold = XORFold()
            try writer.add(path, size: finished.size, also: { fold.update($0) }) { try finished.forEachChunk($0) }
            checksums[path] = fold.hex
        }
        let kinds = layout.options.kinds
        let names = try ImbibNames(kinds.contains(.attachments) ? layout.store : nil)
        layout.imbibNames = names
        try layout.gather()
        publications = layout.result.records[.publications] ?? 0
        layout.omitWhatImbibLacks()
        if kinds.contains(.publications) { try add(Layout.bibliography) { try layout.writeBibliography(to: $0) } }
        if kinds.contains(.notes) {
            try layout.omitNotesOfGoneWorks()
            try add(Layout.notes) { sink in
                try layout.writeNotes(to: sink) { note in
                    let fields = try Fields.parse(note.fields)
                    // What imbib does not know may be another app's: it stays, as in every other export.
                    return Fields.text(fields.filter { $0.name != Note.publication })
                }
            }
        }
        if kinds.contains(.settings) { try add(Layout.settings) { try layout.writeSettings(to: $0) } }
        var attachments = 0
        var pending: [String: Fold] = [:]
        try layout.addAssets(to: writer, path: { names.place($0.path) ?? $0.path }) { asset in
            let fold = Fold()
            pending[names.place(asset.path) ?? asset.path] = fold
            attachments += 1
            return { fold.value.update($0) }
        }
        for (path, fold) in pending { checksums[path] = fold.value.hex }
        if kinds.contains(.publications) { noteUnnamed(pending.keys.sorted(), &layout) }
        layout.result.contentDigest = try layout.finishDigest()
        let manifest = ImbibManifest(
            createdAt: layout.time, appVersion: layout.options.tool, schemaVersion: try layout.store.dataSchemaVersion,
            publicationCount: publications, attachmentCount: attachments, checksums: checksums)
        try writer.add(Manifest.fileName, text: manifest.text().utf8)
    }

    /// imbib shows no file that no entry names.
    private static func noteUnnamed(_ paths: [String], _ layout: inout StoreLayout) {
        let unnamed = paths.filter { !layout.namedFiles.contains($0) }
        guard let first = unnamed.first else { return }
        let isOne = unnamed.count == 1
        let what = isOne ? "belongs" : "and \(unnamed.count - 1) more files belong"
        let them = isOne ? "it" : "them"
        layout.result.warnings.append(
            Finding(
                .unlinked, .warning, first,
                "\(what) to no publication: the backup holds \(them), and imbib will not show \(them)",
                remedy: "name \(isOne ? "it" : "each") after a cite key, or in an entry's file field, "
                    + "and import both again"))
    }

    private final class Fold {
        var value = XORFold()
    }
}

/// imbib knows one folder for attachments; where two of ours would meet in it, the older folder's name stays.
struct ImbibNames {
    private var places: [String: String] = [:]

    /// Nil: no attachments are exported.
    init(_ store: Store?) throws {
        /// Folded, because two names that differ in case alone cannot lie side by side everywhere.
        var taken: Set<String> = []
        try store?.forEachAsset { asset in
            let folder = Layout.attachmentFolders.first(where: asset.path.hasPrefix) ?? ""
            var name = "Attachments/" + asset.path.dropFirst(folder.count)
            if !taken.insert(name.lowercased()).inserted {
                name = "Attachments/" + asset.path
                taken.insert(name.lowercased())
            }
            places[asset.path] = name
        }
    }

    func place(_ path: String) -> String? { places[path] }
}
