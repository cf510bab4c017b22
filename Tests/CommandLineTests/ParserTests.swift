import BackupKit
import TestSupport
import Testing

@testable import backup_tool

@Test(arguments: [
    ["export", "--output", "x", "a", "b"], ["export", "a", "-o", "x", "b"], ["export", "a", "b", "-ox"],
    ["export", "--output=x", "--", "a", "b"], ["-q", "export", "-o", "x", "a", "b"],
])
func options_mayStandAnywhereAndBeWrittenInEveryGNUWay(words: [String]) throws {
    let line = try Parser.parse(words, root: sampleRoot)
    #expect(line.path == ["export"])
    #expect(line.options["output"] == ["x"])
    #expect(line.arguments == ["a", "b"])
}

@Test func shortFlags_mayBeCombinedAndEndInAValue() throws {
    let call = try sampleCall("export", "-qvoout", "-Fzip")
    #expect(call.flag("quiet") && call.flag("verbose") && !call.flag("force"))
    #expect(call.value("output") == "out" && call.value("format") == "zip")
}

@Test func twoHyphens_endTheOptions_andOneIsAnArgument() throws {
    let call = try sampleCall("export", "-o", "-", "-", "--", "--force", "-x", "--")
    #expect(call.arguments == ["-", "--force", "-x", "--"])
    #expect(call.value("output") == "-" && !call.flag("force"))
}

@Test func values_areRepeatedOrSplitAtCommasAsDeclared() throws {
    let call = try sampleCall(
        "export", "-o2", "--output=2", "--exclude=a,b", "--exclude", "c", "--only=notes,events", "--only=settings")
    #expect(call.value("output") == "2")
    #expect(call.values("exclude") == ["a,b", "c"])
    #expect(call.values("only") == ["notes", "events", "settings"])
    #expect(call.values("format") == [] && call.value("store") == nil)
}

@Test func integers_areCheckedAgainstTheirRange() throws {
    #expect(try sampleCall("export", "-ox", "--level=19").integer("level", in: 1...19) == 19)
    #expect(try sampleCall("export", "-ox").integer("level", in: 1...19) == nil)
    for wrong in ["0", "20", "x", "99999999999999999999"] {
        let call = try sampleCall("export", "-ox", "--level=\(wrong)")
        let error = #expect(throws: BackupError.self) { try call.integer("level", in: 1...19) }
        #expect(error?.message == "--level must be a whole number from 1 to 19, not '\(wrong)'")
        #expect(error?.remedy == "see 'backup-tool export --help'")
    }
}

@Test func arguments_areGivenToTheirNames() throws {
    let call = try sampleCall("diff", "one", "two", "three", "four")
    #expect(try call.argument("A") == "one" && call.argument("B") == "two")
    #expect(call.arguments("ENTRY") == ["three", "four"])
    #expect(try sampleCall("diff", "one", "two").arguments("ENTRY") == [])
    #expect(try sampleCall("store", "info").arguments("PATH") == [])
    #expect(try sampleCall("store", "info", "s").arguments("PATH") == ["s"])
}

@Test(arguments: [
    (["exprot"], "unknown command 'exprot' / did you mean 'export'? See 'backup-tool --help'"),
    (["exp"], "unknown command 'exp' / did you mean 'export'? See 'backup-tool --help'"),
    (["xyzzy"], "unknown command 'xyzzy' / see 'backup-tool --help'"),
    (["a\u{1B}[31m"], "unknown command 'a\\u{1b}[31m' / see 'backup-tool --help'"),
    (["store", "inti"], "unknown command 'store inti' / did you mean 'init'? See 'backup-tool store --help'"),
    (["export", "--forse"], "unknown option '--forse' / did you mean '--force'? See 'backup-tool export --help'"),
    (["export", "--forc"], "unknown option '--forc' / did you mean '--force'? See 'backup-tool export --help'"),
    (["export", "-q.bib"], "unknown option '-.' / the file is './-q.bib'. See 'backup-tool export --help'"),
    (["export", "-force"], "unknown option '-force' / did you mean '--force'? See 'backup-tool export --help'"),
    (["export", "-qx"], "unknown option '-x' / see 'backup-tool export --help'"),
    (
        ["--exclude=a", "export"],
        "unknown option '--exclude' / options of a command stand after its name. See 'backup-tool --help'"
    ),
    (["export", "--force=yes"], "--force takes no value / see 'backup-tool export --help'"),
    (["export", "-o"], "-o/--output needs a value / see 'backup-tool export --help'"),
    (
        ["export", "-o", "--force"],
        "-o/--output needs a value / a value that begins with '-' is given as '--output=PATH'. "
            + "See 'backup-tool export --help'"
    ),
    (["export", "--output="], "-o/--output must not be empty / see 'backup-tool export --help'"),
    (
        ["export", "-o1", "-o2"],
        "-o/--output is given twice: '1' and '2' / give it once. See 'backup-tool export --help'"
    ),
    (["export"], "-o/--output is missing / see 'backup-tool export --help'"),
    (
        ["export", "-ox", "-F", "zib"],
        "-F/--format cannot be 'zib' / did you mean 'zip'? -F/--format is one of: dir, tar.zst, zip. "
            + "See 'backup-tool export --help'"
    ),
    (
        ["export", "-ox", "--only", "notes,event"],
        "--only cannot be 'event' / did you mean 'events'? --only is one of: publications, notes, events, records, "
            + "attachments, settings. See 'backup-tool export --help'"
    ),
    (["diff", "a"], "B is missing / see 'backup-tool diff --help'"),
    (["store", "info", "a", "b"], "unexpected argument 'b' / see 'backup-tool store info --help'"),
    (["store", "init", "--json"], "unknown option '--json' / see 'backup-tool store init --help'"),
])
func mistakes_areNamedWithTheNearestThatExists(words: [String], expected: String) {
    #expect(sampleError(words) == expected)
}

private func realError(_ words: [String]) -> BackupError? {
    do { _ = try Parser.parse(words, root: .root) } catch { return error as? BackupError }
    return nil
}

/// A variable that is not set would choose everything, or what has no name.
@Test(arguments: [
    "vault forget --keep-last 1 --host ", "vault forget --keep-last 1 --tag ", "vault forget --keep-last 1 --tag a,,b",
    "vault forget --keep-last 1 --tag=,", "vault backup --host ", "vault backup --tag ", "vault key add --host ",
    "vault key add --user ", "restore b --match ", "conflicts resolve 1 --keep ", "store purge --deleted-before ",
])
func anEmptyValue_isRefused(line: String) {
    let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    #expect(realError(words)?.code == .usage)
    #expect(realError(words)?.message.contains("must not") == true)
}

@Test(
    arguments: [
        ("snapshots", "'vault snapshots'"), ("check", "'schema check', 'store check', 'vault check' or 'config check'"),
        ("vault fooget", "'forget'"), ("vault snaphsots", "'snapshots'"), ("vault key lst", "'list'"),
        ("vault forget --keep-dayly 3", "'--keep-daily'"), ("export --dryrun", "'--dry-run'"),
        ("export lib.zip", "'--output lib.zip'"),
        ("expire", nil), ("report", nil), ("x", nil), ("restore b --path c", nil), ("export --dir", nil),
    ] as [(String, String?)])
func onlyWhatIsNear_isSuggested(line: String, suggestion: String?) {
    let remedy = realError(line.split(separator: " ").map(String.init))?.remedy ?? ""
    if let suggestion {
        #expect(remedy.hasPrefix("did you mean \(suggestion)?"), "\(remedy)")
    } else {
        #expect(!remedy.contains("did you mean"), "\(remedy)")
    }
}

@Test func help_winsOverWhatIsMissing_andFindsTheCommandAfterIt() throws {
    #expect(try Parser.parse(["export", "--help"], root: sampleRoot).wantsHelp)
    #expect(try Parser.parse(["diff", "-h", "--nonsense"], root: sampleRoot).path == ["diff"])
    #expect(try Parser.parse(["--help", "store", "init"], root: sampleRoot).path == ["store", "init"])
    #expect(try Parser.parse(["export", "-o", "x", "--", "--help"], root: sampleRoot).wantsHelp == false)
}

@Test func store_comesFromTheOptionThenTheEnvironmentThenTheUsualPlace() throws {
    let environment = Environment(["BACKUP_TOOL_STORE": "env.db", "XDG_CONFIG_HOME": "/nonexistent"])
    let plain = Environment(["HOME": "/h", "XDG_CONFIG_HOME": "/nonexistent"])
    func store(_ environment: Environment, _ words: [String]) throws -> String {
        let line = try Parser.parse(["store", "init"] + words, root: sampleRoot)
        return try Invocation(
            line: line, environment: environment, output: Output(line: line, environment: environment)
        )
        .storePath()
    }
    #expect(try store(environment, ["--store", "a.db"]) == "a.db")
    #expect(try store(environment, []) == "env.db")
    #expect(try store(plain, []) == "/h/.local/share/backup-tool/store.db")
}

@Test func anyWords_areParsedOrRefusedButNeverTrap() {
    let words = [
        "export", "store", "init", "info", "diff", "--", "-", "--output", "-o", "--output=", "--only=,", "--=", "-=",
        "--json", "-h", "x", "", "-qvo", "é", "-é", "--level=-1", "--help=1", "\u{0}",
    ]
    let seed = testSeed()
    var state = seed
    for _ in 0..<5000 {
        var line: [String] = []
        repeat {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            line.append(words[Int(state >> 33) % words.count])
        } while (state >> 20) % 5 != 0
        let error = sampleError(line)
        #expect(!error.hasPrefix("not a"), "seed \(seed): \(line): \(error)")
    }
}
