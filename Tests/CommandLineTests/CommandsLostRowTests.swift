import TestSupport
import Testing

@testable import BackupKit

/// A row that a disk has lost or changed is damage: it is not what the user wants.
@Suite struct CommandsLostRowTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.write("a.bib", "@misc{k1, title={One}}\n@misc{k2, title={Two}}\n")
        try bench.write("files/k1.txt", "text\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "files")
        try bench.tool(exit: 0, "export", "-o", "good.zip")
        return bench
    }

    /// Two stores that have synced all they hold, and a record that waits in the first.
    private func devices() throws -> Workbench {
        let bench = try bench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "store", "init", "--store", "other.db")
        for store in ["store.db", "other.db"] { try bench.tool(exit: 0, "sync", "--store", store) }
        try bench.write("b.bib", "@misc{k3, title={Three}}\n")
        try bench.tool(exit: 0, "import", "b.bib")
        return bench
    }

    /// A disk tells no trigger.
    private func rot(_ bench: Workbench, _ statement: String) throws {
        try bench.shell(
            """
            sqlite3 store.db "CREATE TEMP TABLE noted AS SELECT * FROM witness; \(statement);
            DELETE FROM witness; INSERT INTO witness SELECT * FROM noted"
            """)
    }

    // MARK: Sync

    private static let rottenAssets = [
        "DELETE FROM asset", "UPDATE asset SET path = '{'", "UPDATE asset SET path = 'Attachments/k2.txt'",
        "UPDATE asset SET sha256 = replace(replace(sha256, 'a', 'b'), '1', '2')", "UPDATE asset SET size = size + 1",
    ]

    @Test(arguments: rottenAssets)
    func aDamagedRowOfAnAttachment_goesToNoDevice(rotten: String) throws {
        let bench = try devices()
        try rot(bench, rotten)
        let told = try bench.tool(exit: 3, "sync")
        #expect(told.stderr.contains("Assets/") && told.stderr.contains("store repair"), "\(told.stderr)")
        try bench.tool(exit: 0, "sync", "--store", "other.db")
        let files = "SELECT path, size FROM asset"
        #expect(try bench.shell("sqlite3 other.db \"\(files)\"") == "Attachments/k1.txt|5\n")
        #expect(try bench.text("other.db.assets/Attachments/k1.txt") == "text\n")
        // It waits until it is mended, and then nothing does.
        try bench.tool(exit: 3, "sync")
        try bench.tool(exit: 0, "store", "repair", "--from", "good.zip")
        for store in ["store.db", "other.db", "store.db"] { try bench.tool(exit: 0, "sync", "--store", store) }
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == bench.digest("other.db"))
    }

    @Test(arguments: rottenAssets)
    func aDamagedRowOfAnAttachment_isNotReplacedByTheHub(rotten: String) throws {
        let bench = try devices()
        try rot(bench, rotten)
        try bench.shell("sleep 0.01; echo 'another text' >other.db.assets/Attachments/k1.txt")
        try bench.tool(exit: 0, "store", "adopt", "--store", "other.db")
        try bench.tool(exit: 0, "sync", "--store", "other.db")
        try bench.tool(exit: 3, "sync")
        #expect(try bench.text("store.db.assets/Attachments/k1.txt") == "text\n")
        try bench.tool(exit: 0, "store", "repair", "--from", "good.zip")
        for store in ["store.db", "other.db"] { try bench.tool(exit: 0, "sync", "--store", store) }
        #expect(try bench.text("store.db.assets/Attachments/k1.txt") == "another text\n")
        #expect(try bench.digest() == bench.digest("other.db"))
    }

    @Test func anAttachmentThatIsNoLongerMissed_comesBackFromADeviceThatLinksIt() throws {
        let bench = try devices()
        try rot(bench, "DELETE FROM asset")
        try bench.tool(exit: 3, "sync")
        // The file would prove what the row was.
        try bench.shell("rm store.db.assets/Attachments/k1.txt")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        for store in ["store.db", "other.db", "store.db"] { try bench.tool(exit: 0, "sync", "--store", store) }
        for store in ["store.db", "other.db"] {
            #expect(try bench.text("\(store).assets/Attachments/k1.txt") == "text\n")
            try bench.tool(exit: 0, "store", "check", "--store", store)
        }
    }

    @Test(arguments: ["DELETE FROM counter", "UPDATE counter SET value = 0", "UPDATE counter SET value = -1"])
    func withoutItsCounterOfChanges_aStoreSyncsAll_andIsMended(damage: String) throws {
        let bench = try devices()
        try bench.write("more/k2.txt", "more text\n")
        try bench.tool(exit: 0, "import", "--attachments", "more")
        try bench.shell("sqlite3 store.db '\(damage)'")
        try bench.tool(exit: 4, "store", "check")
        try bench.shell("rm -rf copy.db*; sqlite3 store.db '.backup copy.db'; cp -a store.db.assets copy.db.assets")
        try bench.tool(exit: 0, "store", "repair", "--store", "copy.db")
        for store in ["copy.db", "store.db"] {
            try bench.tool(exit: 0, "sync", "--store", store)
            try bench.tool(exit: 0, "store", "check", "--store", store)
        }
        try bench.tool(exit: 0, "sync", "--store", "other.db")
        #expect(try bench.digest() == bench.digest("other.db"))
    }

    @Test func aRepairOfTheIndex_forgetsNoRecordThatIsGone() throws {
        let bench = try devices()
        try rot(
            bench,
            """
            DELETE FROM record WHERE fields LIKE '%One%';
            UPDATE local_key SET content = content + 1 WHERE change = (SELECT max(change) FROM record)
            """)
        let repair = try bench.tool("store", "repair")
        #expect(repair.stdout.contains("the index by local id was made again"), "\(repair.stdout)\(repair.stderr)")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("1 record is gone"))
    }

    // MARK: Backups

    @Test(arguments: ["", "UPDATE record SET change = 999 WHERE fields LIKE '%One%';"])
    func everyBackup_namesARecordThatIsGone(also: String) throws {
        let bench = try bench()
        try bench.shell("sqlite3 store.db \"\(also) DELETE FROM record WHERE fields LIKE '%Two%'\"")
        try bench.tool(exit: 4, "store", "check")
        for form in ["folder", "a.zip", "a.tar.zst"] {
            let told = try bench.tool(exit: 3, "export", "-o", form)
            #expect(told.stderr.contains("1 record is gone"), "\(form): \(told.stderr)")
        }
        try bench.makeCheapVault()
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw")
        let vault = ["--vault", "v", "--password-file", "pw"]
        for _ in 0..<2 {
            let told = try bench.tool(["vault", "backup"] + vault)
            #expect(told.status == 3 && told.stderr.contains("1 record is gone"), "\(told.stderr)")
        }
        try bench.write("n.toml", "store = 'store.db'\nvault = 'v'\npassword-file = 'pw'\nkeep.last = 1\n")
        let night = try bench.tool(exit: 4, "run", "--config", "n.toml")
        #expect((night.stdout + night.stderr).contains("1 record is gone"), "\(night.stdout)\(night.stderr)")
        let list = try bench.tool(["vault", "snapshots", "--json"] + vault).stdout
        #expect(list.contains("partial"), "\(list)")
        // Nothing was expired for it, and once the record is back the next backups are whole.
        #expect(try JSON(parsing: list).array?.count ?? 0 >= 3, "\(list)")
        try bench.tool(exit: 0, "store", "repair", "--from", "good.zip")
        #expect(try bench.tool(["vault", "backup"] + vault).status == 0)
        try bench.tool(exit: 0, "export", "-o", "whole.zip")
    }
}
