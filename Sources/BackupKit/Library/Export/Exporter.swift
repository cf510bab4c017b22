import Glibc

/// Exports a store: one consistent moment of it, written under a temporary name, read back, and put in place.
public enum Exporter {
    private static let memoryNeeded = 48 << 20

    /// `path` "-" writes an archive to standard output, which cannot be read back.
    public static func export(_ store: Store, to path: String, _ options: ExportOptions) throws -> ExportResult {
        let format: CarrierFormat
        switch options.form {
        case .layout(let chosen), .imbib(let chosen): format = chosen
        }
        try RawMemory.mustHaveRoom(for: memoryNeeded)
        let place = try path == "-" ? path : OutputPlace.behindLinks(path)
        if path != "-" { try Replacing(by: store, writing: options.kinds).check(place, replace: options.replace) }
        var result = ExportResult()
        if path == "-" {
            guard format != .directory else {
                throw BackupError(
                    .usage, "a folder cannot be written to standard output", remedy: "use --format tar.zst")
            }
            let output = try FileHandle.standardOutput()
            do { result = try write(store, options, into: try archive(format, output, options)).result } catch let error
                as ClosedPipe
            {
                // Half an archive is none.
                throw error.asFailure
            }
        } else if format == .directory {
            result = try AtomicFile.writeDirectory(place, replace: options.replace) { temporary in
                let written = try write(store, options, into: DirectoryWriter(try RootDirectory(temporary)))
                if options.verify { try readBack(try DirectoryReader(temporary), written.files, options) }
                return written.result
            }
        } else {
            result = try AtomicFile.write(place, replace: options.replace) { file in
                var written = try write(store, options, into: try archive(format, file, options))
                if options.verify { try readBack(try ArchiveReader(file: file), written.files, options) }
                written.result.bytes = try file.status().size
                return written.result
            }
        }
        result.path = path
        return result
    }

    /// What an export would do: all of it but the writing, so that it leaves out what the export would leave out.
    public static func rehearse(_ store: Store, to path: String, _ options: ExportOptions) throws -> ExportResult {
        if path != "-" {
            let place = try OutputPlace.behindLinks(path)
            try Replacing(by: store, writing: options.kinds).check(place, replace: options.replace)
            try Directory.checkCanCreate(place)
        }
        var result = try write(store, options, into: NoCarrier()).result
        result.path = path
        return result
    }

    /// Takes everything and keeps nothing.
    private final class NoCarrier: CarrierWriter {
        func add(_ info: EntryInfo, _ produce: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void) throws {
            try produce { _ in }
        }

        func finish() {}
    }

    private static func archive(
        _ format: CarrierFormat, _ file: FileHandle, _ options: ExportOptions
    ) throws -> any CarrierWriter {
        try ArchiveWriter(format: format, to: file, level: options.level)
    }

    private struct Written {
        var result: ExportResult
        let files: [String: FileFacts]
    }

    private static func write(
        _ store: Store, _ options: ExportOptions, into carrier: any CarrierWriter
    ) throws -> Written {
        try store.leaveOutUnreadableTables()
        return try store.read {
            var layout = try StoreLayout(store, options)
            let total = try store.info().assetBytes
            let writer = LayoutWriter(carrier, time: layout.time, total: total, progress: options.progress)
            switch options.form {
            case .layout: try writeLayout(&layout, writer)
            case .imbib: try ImbibExport.write(&layout, writer)
            }
            try writer.finish()
            layout.result.bytes = writer.bytes
            layout.result.files = writer.files.count
            return Written(result: layout.result, files: writer.files)
        }
    }

    private static func writeLayout(_ layout: inout StoreLayout, _ writer: LayoutWriter) throws {
        try writer.add(Layout.readme, text: Layout.readmeText.utf8)
        var records = try SpoolFile()
        try layout.gather { text in try text.withUnsafeBytes { try records.write($0) } }
        try layout.forEachView { path, write in
            var spool = try SpoolFile()
            try write { try spool.append($0) }
            try writer.add(path, &spool)
        }
        try writer.add(Layout.records, &records)
        try layout.addAssets(to: writer)
        layout.result.contentDigest = try layout.finishDigest()
        try writer.add(Manifest.fileName, text: manifest(layout, writer.files).text())
        let sums = writer.files.sorted { precedesBytewise($0.key, $1.key) }
        try writer.add(
            ChecksumFile.fileName, text: ChecksumFile.text(sums.map { (key: $0.key, value: $0.value.digest) }))
    }

    static func manifest(_ layout: StoreLayout, _ files: [String: FileFacts]) throws -> Manifest {
        let store = layout.store
        let result = layout.result
        var counts = [Manifest.tombstones: result.tombstones]
        for kind in Kind.allCases where kind != .attachments && kind != .settings {
            counts[kind.rawValue] = result.records[kind] ?? 0
        }
        counts["attachments"] = files.keys.count { Layout.role(ofExported: $0) == .attachment }
        if layout.options.kinds.contains(.settings) { counts["settings"] = try store.settings().count }
        let storeID = try store.storeID
        let time = layout.time
        let id =
            layout.options.reproducible
            ? DeterministicID.make("export", result.contentDigest.hex, time.iso8601) : RandomID.make()
        let known = try result.omitted.compactMap { omission in
            try store.ifSound { try store.asset(omission.path) } ?? nil
        }
        let elsewhere = (result.elsewhere + known).filter { files[$0.path] == nil }
        return Manifest(
            exportID: id, createdAt: time, tool: layout.options.tool, storeID: storeID,
            schemaVersion: try store.dataSchemaVersion, kinds: layout.options.kinds, counts: counts,
            contentDigest: result.contentDigest, omitted: result.omitted + layout.damagedOmissions, files: files,
            elsewhere: Dictionary(
                elsewhere.map {
                    ($0.path, FileFacts(size: $0.size, digest: $0.digest, isLocalOnly: $0.isLocalOnly))
                }, uniquingKeysWith: { first, _ in first }))
    }

    /// Proves that what lies there is what was meant, none missing, none too many.
    ///
    /// Our own `.tar.zst` carries a checksum of what went into each frame, made from the same bytes as the digests: that
    /// every frame unpacks to it and the tar around is whole says as much as hashing all of it once more. Other forms
    /// have nothing of the kind, so there every digest is made again.
    private static func readBack(
        _ reader: any CarrierReader, _ files: [String: FileFacts], _ options: ExportOptions
    ) throws {
        let findings: [Finding]
        if let archive = reader as? ArchiveReader, archive.format == .tarZstandard, archive.findsEntriesQuickly {
            let tally = CarrierCheck.Tally(expected: files, progress: .none)
            for entry in try archive.list() { tally.seen(entry, nil) }
            findings = try archive.checkStructure() + tally.finish()
        } else {
            findings = try CarrierCheck.digests(reader, expected: files, progress: options.progress)
        }
        guard let first = findings.first(where: { $0.severity == .damage }) else { return }
        throw BackupError(
            .damaged, "what was written could not be read back: \(first.message)", at: first.subject,
            remedy: "nothing was left behind; check the disk and try again")
    }
}
