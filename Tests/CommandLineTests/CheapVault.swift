import TestSupport

@testable import BackupKit

extension Workbench {
    /// A vault with the password `secret` and a key that costs nothing: tests open it a hundred times.
    func makeCheapVault(at name: String = "v") throws {
        _ = try Vault.create(
            try FolderBackend.create(path(name)), password: Array("secret".utf8), cost: ScryptCost(n: 16, r: 1, p: 1))
    }
}
