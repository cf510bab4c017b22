import BackupKit
import Glibc
import TestSupport
import Testing

@testable import backup_tool

// Commands in messages are typed as they are printed.

private func advice(_ words: String...) throws -> Advice { Advice(try Parser.parse(words, root: .root)) }

@Test func aCommandInAMessage_getsTheOptionsOfThisRun() throws {
    let far = try advice("import", "--store", "far.db", "--create", "--config", "my c.toml", "x.bib")
    #expect(
        far.completed("'backup-tool undo' takes it back")
            == "'backup-tool undo --store far.db --config my\\ c.toml' takes it back")
    #expect(
        far.completed("'backup-tool undo --store near.db' does")
            == "'backup-tool undo --store near.db --config my\\ c.toml' does")
    // `schema check` knows no store, help is help, and what is no command stays as it is.
    #expect(far.completed("'backup-tool schema check FILE'") == "'backup-tool schema check FILE --config my\\ c.toml'")
    for text in ["see 'backup-tool undo --help'", "'backup-tool nonsense'", "'backup-tool undo", "don't"] {
        #expect(far.completed(text) == text)
    }
}

@Test(arguments: [
    ("vault prune --max-unused 0", "vault prune", "vault prune --max-unused 0"),
    ("vault forget --keep-last 1 --host h --prune --max-unused 2.5", "vault prune", "vault prune --max-unused 2.5"),
    ("vault forget --keep-last 1 --host h", "vault forget 1a", "vault forget 1a"),
    ("vault backup --tag a --tag b,c --host h", "vault backup", "vault backup --tag a --tag b,c --host h"),
    ("vault backup --tag a", "vault check", "vault check"),
    ("restore e --only notes --resurrect", "restore BACKUP --match x", "restore e --match x --resurrect"),
    ("restore e --match x --resurrect", "restore BACKUP --create", "restore e --create --match x --resurrect"),
    ("restore e --sync-policy honor", "restore BACKUP --resurrect", "restore e --resurrect"),
    ("restore e --allow-damage", "restore BACKUP --mode replace", "restore e --mode replace --allow-damage"),
    ("restore e --match x", "restore BACKUP --to DIR", "restore e --to DIR"),
    ("restore e --to out --force", "restore BACKUP --allow-damage", "restore e --allow-damage --to out --force"),
    ("sync --user ann --allow-network", "sync", "sync --user ann --allow-network"),
    (
        "import e --create --store s.db --only notes", "restore e --allow-damage",
        "restore e --allow-damage --create --only notes --store s.db"
    ),
    ("import e --create --only notes", "restore e --only settings", "restore e --only settings --create"),
    ("restore e --create --match x", "import e", "import e --create"),
    ("import e --only notes", "list e", "list e"),
    ("vault check --password-command c", "vault check --password-file f", "vault check --password-file f"),
])
func aRepetitionInAMessage_keepsWhatWasChosen(line: String, advised: String, typed: String) throws {
    let words = line.split(separator: " ").map(String.init)
    let completed = try Advice(Parser.parse(words, root: .root)).completed("'backup-tool \(advised)'")
    #expect(completed == "'backup-tool \(typed)'")
    #expect(throws: Never.self) {
        try Parser.parse(completed.dropLast().split(separator: " ").dropFirst().map(String.init), root: .root)
    }
}

@Test func aBackupInAMessage_isTheOneOfThisRun() throws {
    #expect(try advice("verify", "a b.zip").completed("'backup-tool list BACKUP'") == "'backup-tool list a\\ b.zip'")
    #expect(
        try advice("restore", "vault:v@latest").completed("'backup-tool list BACKUP' and 'backup-tool vault check'")
            == "'backup-tool list vault:v@latest' and 'backup-tool vault check --vault v'")
    #expect(try advice("export", "-o", "x").completed("'backup-tool list BACKUP'") == "'backup-tool list BACKUP'")
}

/// Whatever is in a name, a shell makes of the command what was meant.
@Test func aCommandWithNamesOfAnyKind_isTypedAsItIsPrinted() throws {
    let bench = try Workbench()
    for name in [
        "it's a.db", "-dash.db", "new\nline's.db", "tab\tand \u{202E}.db", "$HOME `id` \"q\" \\.db", "ü ö.db", "",
        "$'a'", "a|b's.db", "new\nline|.db",
    ] {
        let text = TypedCommand.quoted("store info", [name], options: ["store": name])
        let printed = try advice("undo", "--config", "it's/n.toml").completed("see \(text), and don't")
        #expect(printed == BackupKit.printable(printed) && !printed.contains("|"))
        let command = printed.dropFirst("see 'backup-tool store info ".count).dropLast("', and don't".count)
        let words = try bench.shell("printf '%s\\0' \(command)").split(
            separator: "\0", omittingEmptySubsequences: false)
        let store = name.hasPrefix("-") ? ["--store=\(name)"] : ["--store", name]
        let options = store + ["--config", "it's/n.toml"]
        let isOption = name.hasPrefix("-")
        #expect(words.dropLast().map(String.init) == (isOption ? options + ["--", name] : [name] + options))
    }
    #expect(try advice("undo", "--store=-a.db").completed("'backup-tool undo'") == "'backup-tool undo --store=-a.db'")
    #expect(try advice("verify", "./-a").completed("'backup-tool list BACKUP'") == "'backup-tool list ./-a'")
}

/// Only `TypedCommand` puts names into commands: it forgets no space and no apostrophe.
@Test func noCommandInTheSourcesHoldsANameThatIsNotEscaped() throws {
    let found = try runProcess(
        ["grep", "-rnE", #"'backup-tool [^']*\\\("#, "Sources", "--include=*.swift"], in: projectFolder
    ).stdoutLines
    #expect(found == [])
}

@Test func adviceInJSON_isCompletedToo() throws {
    let value: JSON = [
        "remedy": "'backup-tool undo'", "findings": [["message": "'backup-tool undo'", "path": "'backup-tool undo'"]],
    ]
    #expect(
        try advice("import", "--store", "far.db", "x").completed(value) == [
            "remedy": "'backup-tool undo --store far.db'",
            "findings": [["message": "'backup-tool undo --store far.db'", "path": "'backup-tool undo'"]],
        ])
}

@Test func undoAsItIsPrinted_reachesTheStoreThatWasNamed() throws {
    let bench = try Workbench()
    try bench.write("x.bib", "@book{k, title = {Owls}, author = {Ann}, year = 2001}\n")
    try bench.tool(exit: 0, "import", "x.bib")
    let made = try bench.tool(exit: 0, "import", "--store", "my other.db", "--create", "x.bib", "-v")
    let printed = try #require(made.stderr.firstMatch(of: /'backup-tool (undo .*?)'/)).1
    try bench.shell("$T \(printed)")
    // The import into the other store was taken back, and the one into the usual store can still be.
    #expect(try bench.tool(exit: 1, "undo", "--store", "my other.db").stderr.contains("nothing to undo"))
    try bench.tool(exit: 0, "undo")
}

/// Whatever a message tells people to type is a command that the parser takes.
@Test func everyCommandInTheSources_canBeTyped() throws {
    let found = try runProcess(
        ["grep", "-rhoE", "'backup-tool [a-z][^']*'", "Sources", "--include=*.swift"], in: projectFolder
    ).stdoutLines
    #expect(found.count > 50)
    for var text in found.map({ $0.trimming("'").replacing(/\\\((?:[^()]|\([^()]*\))*\)/, with: "1") }) {
        for (name, example) in [("CHOICE", "merge"), ("--only 1", "--only notes")] { text.replace(name, with: example) }
        #expect(throws: Never.self, "\(text)") {
            _ = try Parser.parse(text.split(separator: " ").dropFirst().map(String.init), root: .root)
        }
    }
}
