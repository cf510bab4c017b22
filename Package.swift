// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "backup-tool",
    products: [
        .library(name: "BackupKit", targets: ["BackupKit"]),
        .executable(name: "backup-tool", targets: ["backup-tool"]),
    ],
    targets: [
        .systemLibrary(name: "CArchive", pkgConfig: "libarchive", providers: [.apt(["libarchive-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CLzma", pkgConfig: "liblzma", providers: [.apt(["liblzma-dev"])]),
        .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .target(name: "CSystem"),
        // Only the header is needed to build: the library is loaded when it is first asked for.
        .target(name: "CCurl"),
        .target(name: "CSimdjson", linkerSettings: [.linkedLibrary("simdjson"), .linkedLibrary("stdc++")]),
        .target(
            name: "BackupKit",
            dependencies: [
                "CArchive", "CSQLite", "CZlib", "CLzma", "CZstd", "CCrypto", "CSystem", "CSimdjson", "CCurl",
            ]
        ),
        .executableTarget(name: "backup-tool", dependencies: ["BackupKit"]),
        .executableTarget(name: "bibtex-parse", dependencies: ["BackupKit"], path: "Benchmarks/BibTeXParse"),
        .target(name: "TestSupport", dependencies: ["BackupKit"], path: "Tests/TestSupport"),
        .testTarget(name: "BackupKitTests", dependencies: ["BackupKit", "TestSupport"]),
        .testTarget(name: "CommandLineTests", dependencies: ["BackupKit", "TestSupport", "backup-tool"]),
    ],
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)

// Only for `scripts/fuzz.sh`: its program has no `main` of its own.
if Context.environment["BACKUP_TOOL_FUZZ"] != nil {
    package.targets.append(.executableTarget(name: "fuzz", dependencies: ["TestSupport"], path: "Tests/Fuzz"))
}
