import TestSupport
import Testing

/// Where a run can keep no state, `config check` says so before the night, and the run names the folder.
@Suite struct CommandsStateFolderTests {
    @Test(arguments: ["pw", "pw/deep/er", "/proc/x", "/proc/x/y"])
    func aStateFolderThatCannotBe_isNamed(_ place: String) throws {
        let bench = try Workbench.withVault()
        let settings = "store = 'store.db'\nvault = 'v'\npassword-file = 'pw'\nkeep.last = 1\n"
        try bench.write("n.toml", "\(settings)state = '\(place)'\n")
        let checked = try bench.tool(exit: 4, "config", "check", "--config", "n.toml").stderr
        #expect(checked.contains("n.toml:5") && checked.contains("the runs cannot keep their state"), "\(checked)")
        let night = try bench.tool(exit: 1, "run", "--config", "n.toml").stderr
        #expect(night.contains("\(place): the runs cannot keep their state in this folder"), "\(night)")
        #expect(!night.contains("drill failed") && night.contains("'state'"), "\(night)")
        // The backup was made all the same, and nothing was removed.
        let vault = ["--vault", "v", "--password-file", "pw"]
        try bench.tool("run", "--config", "n.toml")
        let snapshots = try bench.tool(["vault", "snapshots", "--json"] + vault).stdout
        #expect(snapshots.split(separator: "\"nightly\"").count >= 3, "\(snapshots)")
        #expect(try bench.text("pw") == "secret\n")
    }

    @Test func aStateFolderThatCanBeMade_isFine_andIsNotMadeByTheCheck() throws {
        let bench = try Workbench()
        try bench.write("n.toml", "state = 'new/deep'\n")
        try bench.tool(exit: 0, "config", "check", "--config", "n.toml")
        #expect(try !bench.exists("new"))
        try bench.shell("mkdir -p new/deep; touch new/deep/run-default.json")
        try bench.tool(exit: 0, "config", "check", "--config", "n.toml")
        #expect(try bench.exists("new/deep/run-default.json"))
    }
}
