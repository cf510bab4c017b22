import TestSupport
import Testing

@testable import BackupKit

extension Workbench {
    /// A library of one work, a vault and the file with its password.
    static func withVault() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k1, title={One}}\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.makeCheapVault()
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw")
        return bench
    }

    /// A vault with the password `secret` and a key that costs nothing: tests open it a hundred times.
    func makeCheapVault(at name: String = "v") throws {
        _ = try Vault.create(
            try FolderBackend.create(path(name)), password: Array("secret".utf8), cost: ScryptCost(n: 16, r: 1, p: 1))
    }
}
