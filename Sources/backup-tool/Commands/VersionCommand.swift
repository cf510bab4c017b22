import BackupKit

extension Command {
    static let version = Command(
        "version", "Show the version, and those of the libraries it runs with",
        examples: [
            Example("backup-tool version", "Show what to put into a bug report"),
            Example("backup-tool version --json", "Show the same to a script"),
        ],
        reports: true,
        run: { call in
            let libraries = [
                ("libarchive", LibArchive.version), ("sqlite", SQLite.libraryVersion),
                ("zstd", ZstandardCompressor.libraryVersion), ("zlib", GzipStream.libraryVersion),
                ("liblzma", XZStream.libraryVersion), ("openssl", SHA256Hasher.libraryVersion),
            ]
            if call.output.isJSON {
                call.output.report([
                    "message_type": "version",
                    "version": .string(Tool.version),
                    "libraries": .object(libraries.map { .init(key: $0.0, value: .string($0.1)) }),
                ])
                return .done
            }
            call.output.print("backup-tool \(Tool.version)")
            for (name, version) in libraries { call.output.print("  \(name) \(version)") }
            return .done
        })
}
