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
        try layout.gather()
        publications = layout.result.records[.publications] ?? 0
        let kinds = layout.options.kinds
        if kinds.contains(.publications) { try add(Layout.bibliography) { try layout.writeBibliography(to: $0) } }
        if kinds.contains(.notes) {
            try add(Layout.notes) { sink in
                try layout.writeNotes(to: sink) { note in
                    let fields = try Fields.parse(note.fields)
                    return Fields.text(fields.filter { $0.name == Publication.citeKey || $0.name == "note" })
                }
            }
        }
        if kinds.contains(.settings) { try add(Layout.settings) { try layout.writeSettings(to: $0) } }
        let names = Names()
        var attachments = 0
        var pending: [String: Fold] = [:]
        try layout.addAssets(to: writer, path: { names.path(of: $0) }) { asset in
            let fold = Fold()
            pending[names.path(of: asset)] = fold
            attachments += 1
            return { fold.value.update($0) }
        }
        for (path, fold) in pending { checksums[path] = fold.value.hex }
        layout.result.contentDigest = try layout.finishDigest()
        let manifest = ImbibManifest(
            createdAt: layout.time, appVersion: layout.options.tool, schemaVersion: try layout.store.dataSchemaVersion,
            publicationCount: publications, attachmentCount: attachments, checksums: checksums)
        try writer.add(Manifest.fileName, text: manifest.text().utf8)
    }

    private final class Fold {
        var value = XORFold()
    }

    /// imbib knows one folder for attachments; where two of ours would meet in it, the older folder's name stays.
    private final class Names {
        private var taken: [String: String] = [:]
        /// Folded, because two names that differ in case alone cannot lie side by side everywhere.
        private var names: Set<String> = []

        func path(of asset: Asset) -> String {
            if let known = taken[asset.path] { return known }
            let folder = Layout.attachmentFolders.first(where: asset.path.hasPrefix) ?? ""
            var name = "Attachments/" + asset.path.dropFirst(folder.count)
            if !names.insert(name.lowercased()).inserted {
                name = "Attachments/" + asset.path
                names.insert(name.lowercased())
            }
            taken[asset.path] = name
            return name
        }
    }
}
