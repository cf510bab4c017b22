import BackupKit
import TestSupport
import Testing

// Every command that a document shows is run here. The rules for whoever writes one:
// - a block that begins with ```sh is run, line by line, in a scratch folder that has a copy of samples/; all blocks of
//   one document run one after another in one shell;
// - a line that ends with `# exit 3` must end with that code, every other line with 0;
// - lines that begin with `make` are not run (these tests run inside of one), only checked to name something to make;
// - `<!-- not run: REASON -->` on the line before a block keeps it from being run.

@Test(arguments: try documents())
func everyCommandOfADocumentWorks(_ document: String) throws {
    let blocks = try shellBlocks(of: document).filter { $0.skipReason == nil }
    guard !blocks.isEmpty else { return }
    let script = prelude(try productsDirectory()) + blocks.flatMap(\.commands).map(runLine).joined() + epilogue
    let result = try runProcess(
        ["bash", "-s"], environment: testEnvironment(["ROOT": projectFolder, "DOCUMENT": document]),
        stdin: Array(script.utf8), timeout: 120)
    #expect(result.status == 0, "\(document):\n\(result.stdout)\(result.stderr)")
}

@Test(arguments: try documents())
func everyCommandOfADocumentIsInABlockThatIsRun(_ document: String) throws {
    for block in try blocks(of: document) where block.language != "sh" {
        let shown = block.lines.first { $0.text.hasPrefix("backup-tool ") || $0.text.hasPrefix("$ backup-tool ") }
        let isAllowed = shown == nil || block.skipReason != nil
        #expect(isAllowed, "\(document):\(block.line): shows a command, but its block is not marked ```sh")
    }
    for block in try blocks(of: document) {
        if let reason = block.skipReason { #expect(reason.count > 10, "\(document):\(block.line): say why") }
    }
}

@Test(arguments: try documents())
func everyLinkOfADocumentLeadsSomewhere(_ document: String) throws {
    let folder = document.split(separator: "/").dropLast().map { $0 + "/" }.joined()
    for target in links(in: try text(of: document)) where !target.contains("://") && !target.hasPrefix("#") {
        let path = folder + target.prefix { $0 != "#" }
        let found = try runProcess(["test", "-e", path], in: projectFolder).status == 0
        #expect(found, "\(document) links to \(target), which is not there")
    }
}

@Test func theReadmeLeadsToEveryDocument() throws {
    let linked = links(in: try text(of: "README.md"))
    for document in try documents() where document != "README.md" && !document.hasPrefix("docs/decisions/") {
        #expect(linked.contains(document), "README.md does not link to \(document)")
    }
    #expect(linked.contains("docs/decisions/"))
}

@Test func everyInvariantIsEnforcedByATestThatExists() throws {
    let tests = try runProcess(["grep", "-rhoE", "func [A-Za-z0-9_]+", "Tests"], in: projectFolder).stdoutLines
    let names = Set(tests.map { String($0.dropFirst("func ".count)) })
    let rows = try text(of: "docs/invariants.md").split(separator: "\n").filter { $0.hasPrefix("| I") }
    #expect(rows.count > 15)
    var problems: [String] = []
    var last = 0
    for row in rows {
        let columns = row.split(separator: "|").map { trimmed($0) }
        // Numbers grow; some are left free.
        let number = Int(columns[0].dropFirst()) ?? 0
        if number <= last { problems.append("\(columns[0]) is out of order") }
        last = number
        for test in (columns.last ?? "").split(separator: ",").map({ trimmed($0).filter { $0 != "`" } })
        where !names.contains(test) {
            problems.append("\(columns[0]) names the test '\(test)', which is not there")
        }
    }
    #expect(problems == [])
}

@Test func theDemoWorks() throws {
    let tool = try productsDirectory() + "/backup-tool"
    let result = try runProcess(
        ["scripts/demo.sh"], environment: testEnvironment(["BACKUP_TOOL": tool]), in: projectFolder, timeout: 120)
    #expect(result.status == 0, "\(result.stdout)\(result.stderr)")
    #expect(result.stdoutLines.filter { $0.count > 80 } == [])
}

@Test func theSamplesAreWhatTheirScriptWrites() throws {
    let result = try runProcess(["python3", "scripts/make-samples.py", "--check"], in: projectFolder)
    #expect(result.status == 0, "\(result.stderr)")
}

// MARK: - Documents

private struct Block {
    let language: String
    /// Of the line that opens it.
    let line: Int
    let skipReason: String?
    var lines: [(number: Int, text: String)] = []

    /// Its commands, with lines that end in a backslash joined, without comments and prompts.
    var commands: [(line: Int, text: String, exit: Int32)] {
        var commands: [(Int, String, Int32)] = []
        var open: (line: Int, text: String)?
        for (number, text) in lines {
            let text = text.hasPrefix("$ ") ? String(text.dropFirst(2)) : text
            let whole = (open?.text ?? "") + text
            let first = open?.line ?? number
            open = nil
            if whole.hasSuffix("\\") {
                open = (first, whole.dropLast() + " ")
            } else if !trimmed(whole[...]).isEmpty, !whole.hasPrefix("#") {
                let parts = whole.split(separator: "# exit ", maxSplits: 1).map { trimmed($0) }
                commands.append(
                    (first, parts.first ?? "", parts.count == 2 ? Int32(parts[1].prefix { $0.isNumber }) ?? -1 : 0))
            }
        }
        return commands
    }
}

private func shellBlocks(of document: String) throws -> [Block] {
    try blocks(of: document).filter { $0.language == "sh" }
}

private func blocks(of document: String) throws -> [Block] {
    var blocks: [Block] = []
    var open: Block?
    var before = ""
    let lines = try text(of: document).split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
        let line = trimmed(line)
        if line.hasPrefix("```") {
            if let block = open {
                blocks.append(block)
                open = nil
            } else {
                let mark = "<!-- not run:"
                let reason = before.hasPrefix(mark) ? trimmed(before.dropFirst(mark.count).dropLast(3)) : nil
                open = Block(language: String(line.dropFirst(3)), line: index + 1, skipReason: reason)
            }
        } else {
            open?.lines.append((index + 1, line))
        }
        before = line
    }
    return blocks
}

/// The targets of `[text](target)`.
private func links(in text: String) -> [String] {
    text.split(separator: "](").dropFirst().map { String($0.prefix { $0 != ")" }) }
}

private func documents() throws -> [String] {
    let found = try runProcess(["find", "docs", "-name", "*.md"], in: projectFolder).stdoutLines.sorted()
    return ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "samples/README.md"] + found
}

private func text(of document: String) throws -> String {
    try #require(readText("\(projectFolder)/\(document)"), "\(document) cannot be read")
}

private func trimmed(_ text: Substring) -> String {
    var text = text.drop { $0 == " " }
    while text.last == " " { text.removeLast() }
    return String(text)
}

// MARK: - The script that runs a document

private func prelude(_ products: String) -> String {
    """
    export PATH='\(products)':"$PATH"
    scratch=$(mktemp -d) && trap 'rm -rf "$scratch"' EXIT && cd "$scratch" && cp -R "$ROOT/samples" . || exit 1
    export HOME=$scratch/home XDG_DATA_HOME=$scratch/data XDG_CONFIG_HOME=$scratch/config
    mkdir -p "$HOME/.config/fish/completions"
    failures=0
    make() { command make --no-print-directory -n -C "$ROOT" "$@" >/dev/null; }
    check() { # line, expected exit code, exit code, command
        [ "$3" -eq "$2" ] && return
        printf '%s:%s: ended with %s, not with %s: %s\\n' "$DOCUMENT" "$1" "$3" "$2" "$4"
        cat "$scratch/.output"
        failures=$((failures + 1))
    }

    """
}

/// The braces keep `cd` and `export` in this shell; the input keeps a command from eating the rest of the script.
private func runLine(_ line: Int, _ command: String, _ exit: Int32) -> String {
    let quoted = "'" + command.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    return "{ \(command)\n} </dev/null >\"$scratch/.output\" 2>&1; check \(line) \(exit) $? \(quoted)\n"
}

private let epilogue = "[ \"$failures\" -eq 0 ]\n"

@Test func everySettingIsDocumented_andTheExampleIsOne() throws {
    let document = try #require(readText("\(projectFolder)/docs/configuration.md"))
    for key in Configuration.keys { #expect(document.contains("| `\(key.name)` |"), "\(key.name)") }
    let example = try #require(document.components(after: "```toml\n", before: "```"))
    let settings = try Configuration.parse(
        Array(example.utf8), file: "/etc/x/config.toml", environment: Environment([:]))
    #expect(settings.text("export.format") == "tar.zst" && settings.text("store") == "/etc/x/library.db")
}

extension String {
    fileprivate func components(after start: String, before end: String) -> String? {
        guard let first = firstRange(of: start), let last = self[first.upperBound...].firstRange(of: end) else {
            return nil
        }
        return String(self[first.upperBound..<last.lowerBound])
    }
}
