import TestSupport
import Testing

@testable import BackupKit

/// Costs next to nothing, for tests that make their keys themselves.
let testCost = ScryptCost(n: 16, r: 1, p: 1)

/// A polynomial that restic has made.
let testPolynomial = Polynomial(bits: 0x3d_a335_8b4d_c173)

func newVault(at path: String, password: String = "x") throws -> Vault {
    try Vault.create(
        FolderBackend.create(path), password: utf8(password), polynomial: testPolynomial, cost: testCost)
}

/// A new vault in a folder of its own, locked, and what adds blobs to it.
func withNewVault(_ body: (_ folder: String, Vault, PackWriter) throws -> Void) throws {
    try withTemporaryFolder { folder in
        let vault = try newVault(at: "\(folder)/v")
        try vault.locked { vault in try body(folder, vault, PackWriter(vault, known: BlobIndex())) }
    }
}

func utf8(_ text: String) -> [UInt8] { Array(text.utf8) }

/// How something failed; nil when it did not.
func errorCode(_ body: () throws -> Void) -> ErrorCode? {
    do {
        try body()
        return nil
    } catch {
        return (error as? BackupError)?.code
    }
}
