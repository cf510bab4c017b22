import BackupKit
import Testing

private let here = Environment(["HOME": "/home/ada"], accountHome: { nil })

private func parse(_ text: String) throws -> Configuration {
    try Configuration.parse(Array(text.utf8), file: "/etc/b/config.toml", environment: here)
}

@Test func configuration_givesItsSettings_andPathsAreRelativeToTheFile() throws {
    let settings = try parse(
        "store = \"lib/s.db\"\nexport.format = 'zip'\n[limits]\nmax-entries = 5\nmax-ratio = 100\n")
    #expect(settings.text("store") == "/etc/b/lib/s.db" && settings.text("export.format") == "zip")
    #expect(settings.integer("limits.max-entries") == 5 && settings.number("limits.max-ratio") == 100)
    #expect(settings.boolean("export.verify") == nil && settings.integer("export.level") == nil)
    #expect(try parse("store = '~/s.db'").text("store") == "/home/ada/s.db")
    #expect(try parse("store = '/s.db'").text("store") == "/s.db")
}

@Test(arguments: [
    ("\nexport.levl = 1", ":2", "unknown key 'export.levl'", "did you mean 'export.level'?"),
    ("[exprot]\nlevel = 1", ":1", "unknown key 'exprot'", "did you mean 'export'?"),
    ("[export]\nlevel = 20", ":2", "export.level must be a whole number from 1 to 19", nil),
    ("[export]\nlevel = '3'", ":2", "export.level must be a whole number from 1 to 19", nil),
    ("[export]\nformat = 'tar.zs'", ":2", "export.format cannot be 'tar.zs'", "did you mean 'tar.zst'?"),
    ("export = 1", ":1", "export must be a table", "its settings are named as in 'export.…'"),
    ("store.x = 1", ":1", "store must be a path in quotes", nil),
    ("store = ''", ":1", "store must be a path in quotes", nil),
    ("export.verify = 1", ":1", "export.verify must be true or false", nil),
    ("limits.max-entries = 0", ":1", "limits.max-entries must be a whole number of at least 1", nil),
    ("snapshot.host = ''", ":1", "snapshot.host must be text in quotes, and not empty", nil),
    (
        "snapshot.tags = ['home', 'suspect']", ":1",
        "snapshot.tags must be a tag in quotes, or a list of tags, without commas, and neither suspect nor partial",
        nil
    ),
    ("limits.max-ratio = nan", ":1", "limits.max-ratio must be a number from 1 to 1000000", nil),
])
func configuration_refusesWhatItDoesNotKnow(text: String, place: String, message: String, remedy: String?) {
    let error = #expect(throws: BackupError.self) { try parse(text) }
    #expect(error == BackupError(.failed, message, at: "/etc/b/config.toml" + place, remedy: remedy))
}

@Test func configurationFile_isTheNamedOneElseTheFirstThatExists() throws {
    let environment = Environment(["HOME": "/h", "XDG_CONFIG_HOME": "/x"])
    var asked: [String] = []
    func load(_ explicit: String?, _ files: [String: String], _ environment: Environment) throws -> String? {
        asked = []
        return try Configuration.load(explicit: explicit, environment: environment) { path in
            asked.append(path)
            return files[path].map { Array($0.utf8) }
        }.file
    }
    let own = "/x/backup-tool/config.toml"
    let common = "/etc/backup-tool/config.toml"
    #expect(try load("a.toml", ["a.toml": "", own: ""], environment) == "a.toml" && asked == ["a.toml"])
    #expect(try load(nil, [own: "", common: ""], environment) == own)
    #expect(try load(nil, [common: ""], environment) == common)
    #expect(try load(nil, [:], environment) == nil)
    let missing = BackupError(
        .failed, "no such configuration file", at: "a.toml",
        remedy: "give --config the path of one that is there; docs/configuration.md shows how to write it")
    #expect(throws: missing) { try load("a.toml", [own: ""], environment) }
    #expect(try load(nil, [:], here) == nil && asked == ["/home/ada/.config/backup-tool/config.toml", common])
    #expect(try load(nil, [:], Environment([:], accountHome: { nil })) == nil && asked == [common])
}

@Test func store_isTheOptionThenTheVariableThenTheConfigurationThenTheUsualPlace() throws {
    let settings = try parse("store = 's.db'")
    let named = Environment(["BACKUP_TOOL_STORE": "e.db", "HOME": "/h"])
    #expect(try named.store(option: "o.db", configuration: settings) == "o.db")
    #expect(try named.store(option: nil, configuration: settings) == "e.db")
    #expect(try here.store(option: nil, configuration: settings) == "/etc/b/s.db")
    #expect(try here.store(option: nil, configuration: .empty) == "/home/ada/.local/share/backup-tool/store.db")
    let relative = Environment(["XDG_DATA_HOME": "rel", "BACKUP_TOOL_STORE": ""], accountHome: { "/acc" })
    #expect(try relative.store(option: nil, configuration: .empty) == "/acc/.local/share/backup-tool/store.db")
    let absolute = Environment(["XDG_DATA_HOME": "/d"], accountHome: { nil })
    #expect(try absolute.store(option: nil, configuration: .empty) == "/d/backup-tool/store.db")
    let lost = Environment([:], accountHome: { nil })
    #expect(throws: BackupError.self) { try lost.store(option: nil, configuration: .empty) }
}

@Test func account_hasAHomeFolder() {
    #expect(homeOfThisAccount()?.hasPrefix("/") == true)
}

@Test func nearest_findsTypingMistakesAndBeginnings() {
    #expect(nearest(to: "exprot", among: ["import", "export"]) == ["export"])
    #expect(nearest(to: "exp", among: ["import", "export"]) == ["export"])
    #expect(nearest(to: "bsh", among: ["bash", "zsh", "fish"]) == ["bash", "zsh"])
    #expect(nearest(to: "qqqq", among: ["import"]) == [] && nearest(to: "", among: ["a"]) == [])
    #expect(nearest(to: String(repeating: "x", count: 100_000), among: ["x"]) == [])
}
