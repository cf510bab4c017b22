/// The file `config`, whose presence says that there is a vault. Sealed, never compressed, written once.
struct ConfigFile: Equatable {
    static let limit = 64 << 10

    let version: Int
    let id: SHA256Digest
    /// The irreducible polynomial that cuts files into chunks; secret, or known files could be recognised by the sizes
    /// of their chunks.
    let polynomial: Polynomial

    init(version: Int = 2, id: SHA256Digest, polynomial: Polynomial) {
        self.version = version
        self.id = id
        self.polynomial = polynomial
    }

    /// Reads any bytes.
    init(_ bytes: UnsafeRawBufferPointer) throws {
        let json = try JSON(parsing: bytes)
        guard let version = json["version"]?.integer else {
            throw BackupError(.damaged, "it names no version")
        }
        guard version == 1 || version == 2 else {
            throw BackupError(
                .refused, "its version is \(version); this tool knows 1 and 2", remedy: "use a newer release")
        }
        guard let id = json["id"]?.string.flatMap({ SHA256Digest(hex: $0) }) else {
            throw BackupError(.damaged, "its identifier is none")
        }
        // Whether it is usable is asked here, as restic does: a reducible one would make chunks that say what is in them.
        guard let polynomial = json["chunker_polynomial"]?.string.flatMap({ Polynomial(hex: $0) }), polynomial.isUsable
        else { throw BackupError(.damaged, "the chunker polynomial is invalid") }
        self.init(version: Int(version), id: id, polynomial: polynomial)
    }

    var bytes: [UInt8] {
        Array(
            JSON.object([
                .init("version", JSON(version)), .init("id", .string(id.hex)),
                .init("chunker_polynomial", .string(polynomial.hex)),
            ]).compact.utf8)
    }
}
