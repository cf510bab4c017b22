import TestSupport
import Testing

@testable import BackupKit

/// Costs next to nothing, for tests that make their keys themselves.
let testCost = ScryptCost(n: 16, r: 1, p: 1)

/// A polynomial that restic has made.
let testPolynomial = Polynomial(bits: 0x3d_a335_8b4d_c173)

/// A new vault in a folder of its own, locked, and what adds blobs to it.
func withNewVault(_ body: (_ folder: String, Vault, PackWriter) throws -> Void) throws {
    try withTemporaryFolder { folder in
        let vault = try Vault.create(
            FolderBackend.create("\(folder)/v"), password: utf8("x"), polynomial: testPolynomial, cost: testCost)
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
