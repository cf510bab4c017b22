import BackupKit
import Glibc
import TestSupport
import Testing

@testable import backup_tool

/// What the built tool says to a command line, on both streams.
struct ToolCase: CustomTestStringConvertible, Sendable {
    let words: [String]
    var stdout = ""
    var stderr = ""
    let status: Int32

    var testDescription: String { words.joined(separator: " ") }
}

@Test(arguments: [
    ToolCase(words: ["--version"], stdout: "backup-tool \(Tool.version)\n", status: 0),
    ToolCase(
        words: ["vresion"],
        stderr: "backup-tool: unknown command 'vresion'\n  did you mean 'version'? See 'backup-tool --help'\n",
        status: 64),
    ToolCase(
        words: ["completions"],
        stderr: "backup-tool: SHELL is missing\n  see 'backup-tool completions --help'\n", status: 64),
    ToolCase(
        words: ["completions", "bsh"],
        stderr: "backup-tool: SHELL cannot be 'bsh'\n  did you mean 'bash' or 'zsh'? SHELL is one of: bash, zsh, fish. "
            + "See 'backup-tool completions --help'\n", status: 64),
    ToolCase(
        words: ["help", "man", "all"],
        stderr: "backup-tool: unknown command 'man all'\n  see 'backup-tool --help' for the list of commands\n",
        status: 64
    ),
    ToolCase(
        words: ["man", "--all=x", "version"],
        stderr: "backup-tool: --all writes every page and takes no COMMAND\n  see 'backup-tool man --help'\n",
        status: 64),
    ToolCase(
        words: ["man", "--all", "/dev/null/a"],
        stderr: "backup-tool: /dev/null: is not a folder\n  choose another place\n", status: 1),
    ToolCase(
        words: ["version", "--json", "superfluous"],
        stderr:
            #"{"message_type":"exit_error","code":64,"error":"usage","message":"unexpected argument 'superfluous'","#
            + #""subject":null,"remedy":"see 'backup-tool version --help'"}"# + "\n", status: 64),
])
func tool_answers(expected: ToolCase) throws {
    let result = try runTool(expected.words)
    #expect(result.stdout == expected.stdout)
    #expect(result.stderr == expected.stderr)
    #expect(result.status == expected.status)
}

@Test func tool_withoutACommand_showsShortHelpAsAnErrorOfUsage() throws {
    let result = try runTool([])
    #expect(result.stdout == "" && result.status == 64)
    #expect(goldenDifference(result.stderr, "help-short.txt") == nil)
}

@Test(arguments: Command.root.everyCommand().map(\.path))
func help_ofEveryCommand_isAsRecordedAndFitsEightyColumns(path: [String]) throws {
    let result = try runTool(path + ["--help"])
    #expect(result.stderr == "" && result.status == 0)
    for line in result.stdoutLines { #expect(displayWidth(line) <= 80, "\(line)") }
    #expect(goldenDifference(result.stdout, "help-\((["backup-tool"] + path).joined(separator: "-")).txt") == nil)
    #expect(try runTool(["help"] + path).stdout == result.stdout)
}

@Test(arguments: Command.root.everyCommand().map(\.path))
func manualPage_ofEveryCommand_isAsRecordedAndGoodRoff(path: [String]) throws {
    let result = try runTool(["man"] + path)
    #expect(result.stderr == "" && result.status == 0)
    let page = result.stdout.replacing("backup\\-tool \(Tool.version)", with: "backup\\-tool VERSION")
    #expect(goldenDifference(page, "\((["backup-tool"] + path).joined(separator: "-")).1") == nil)
    try expectGoodRoff(result.stdout)
}

@Test func manualPage_keepsEveryCharacterOfItsText() throws {
    let export = try #require(sampleRoot.command(at: ["export"]))
    let page = ManPage(export, path: ["export"], root: sampleRoot).text
    try expectGoodRoff(page)
    guard hasProgram("groff") else { return }
    let shown = try runProcess(["groff", "-man", "-Tutf8", "-P-c", "-P-b", "-P-u"], stdin: Array(page.utf8)).stdout
    let plain = shown.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(plain.contains(#".dots at a line's start, back\slashes, it's "quoted" ~ ^ ` é."#), "\(plain)")
    #expect(plain.contains("-o, --output PATH"))
}

@Test func man_writesAllPagesIntoAFolder() throws {
    var template = Array("/tmp/backup-tool-man-XXXXXX".utf8CString)
    let made = mkdtemp(&template)
    let folder = try #require(made.map { String(cString: $0) })
    defer { _ = try? runProcess(["rm", "-r", folder]) }
    let result = try runTool(["man", "--all", "pages"], in: folder)
    let names = Command.root.everyCommand().map { ManPage($0.command, path: $0.path).fileName }
    #expect(result.stderr == "\(names.count) pages in pages\n" && result.status == 0 && result.stdout == "")
    #expect(try runProcess(["ls", "\(folder)/pages"]).stdoutLines.sorted() == names.sorted())
    #expect(readText("\(folder)/pages/backup-tool.1") == (try runTool(["man"]).stdout))
}

@Test func version_reportsTheLibrariesAsJSON() throws {
    let result = try runTool(["version", "--json"])
    #expect(
        result.stdout.hasPrefix(
            #"{"message_type":"version","version":"\#(Tool.version)","libraries":{"libarchive":"3."#))
    #expect(result.stdout.hasSuffix("\"}}\n") && result.stderr == "" && result.status == 0)
}

@Test func readerThatGoesAway_endsTheToolQuietly_butAFullDiskIsAnError() throws {
    let tool = try productsDirectory() + "/backup-tool"
    let gone = try runProcess(["bash", "-c", #""$0" man | true; echo "${PIPESTATUS[0]}""#, tool])
    #expect(gone.stdout == "0\n" && gone.stderr == "")
    let full = try runProcess(["bash", "-c", #""$0" man >/dev/full"#, tool])
    #expect(full.stderr == "backup-tool: standard output: No space left on device\n" && full.status == 1)
}

@Test func argumentThatIsNotUTF8_isRefused() throws {
    let tool = try productsDirectory() + "/backup-tool"
    let result = try runProcess(["bash", "-c", #""$0" version $'\xff'"#, tool])
    #expect(result.stderr.hasPrefix("backup-tool: argument 2 is not UTF-8") && result.status == 64)
}

@Test(arguments: [
    ("TERM=xterm", true), ("TERM=xterm NO_COLOR=", true), ("TERM=xterm NO_COLOR=1", false), ("TERM=dumb", false),
])
func color_isForTerminalsWhoWantIt(setting: String, expected: Bool) throws {
    let tool = try productsDirectory() + "/backup-tool"
    let command = "env -u NO_COLOR \(setting) '\(tool)' --help"
    guard hasProgram("script") else { return }
    let onTerminal = try runProcess(["script", "-qec", command, "/dev/null"])
    #expect(onTerminal.stdout.contains("\u{1B}[1m") == expected)
    #expect(!(try runProcess(["bash", "-c", command]).stdout.contains("\u{1B}")))
    #expect(!(try runProcess(["script", "-qec", command + " --no-color", "/dev/null"]).stdout.contains("\u{1B}")))
}

func hasProgram(_ name: String) -> Bool {
    (try? runProcess([name, "--version"]))?.status == 0
}

private func expectGoodRoff(_ page: String) throws {
    guard hasProgram("groff") else { return }
    let check = try runProcess(["groff", "-man", "-ww", "-z", "-Tutf8"], stdin: Array(page.utf8))
    #expect(check.stderr == "" && check.status == 0)
}

/// Swift looks for the words of a process in front of its environment, which `setenv` moves.
@Test func theCommandLineIsRead_whateverAPreloadedLibraryDoes() throws {
    let bench = try Workbench()
    try bench.write(
        "p.c",
        """
        #include <stdlib.h>
        __attribute__((constructor)) static void begin(void) { setenv("BACKUP_TOOL_TEST_NAME", "1", 1); }
        """)
    let shown = try bench.shell("clang -shared -fPIC -o p.so p.c && LD_PRELOAD=$PWD/p.so $T version")
    #expect(try shown == bench.tool(exit: 0, "version").stdout)
}
