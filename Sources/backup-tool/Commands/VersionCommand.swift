import CArchive
import CCrypto
import CSQLite
import CZstd

extension Command {
    static let version = Command(
        "version", "Show the version, and those of the libraries it runs with",
        examples: [
            Example("backup-tool version", "Show what to put into a bug report"),
            Example("backup-tool version --json", "Show the same to a script"),
        ],
        reports: true,
        run: { call in
            // "libarchive 3.6.2"
            let archive = String(cString: archive_version_string()).split(separator: " ").last
            let libraries = [
                ("libarchive", archive.map(String.init) ?? ""),
                ("sqlite", String(cString: sqlite3_libversion())),
                ("zstd", String(cString: ZSTD_versionString())),
                ("openssl", String(cString: OpenSSL_version(OPENSSL_VERSION_STRING))),
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
