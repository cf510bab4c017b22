import BackupKit
import TestSupport
import Testing

@testable import backup_tool

@Test func everyErrorCode_hasTheExitCodeThatTheDocumentNames() throws {
    let folder = projectFolder
    let document = try #require(readText(folder + "/docs/exit-codes.md"))
    var meanings: [String: String] = [:]
    var codes: [String: Set<Int32>] = [:]
    for line in document.split(separator: "\n") where line.hasPrefix("| ") && !line.hasPrefix("| code") {
        let cells = line.split(separator: "|").map { $0.trimming(" ") }
        meanings[cells[0]] = cells[1]
        let code = try #require(Int32(cells[0]))
        for name in (cells.count > 2 ? cells[2] : "").split(separator: ",") {
            codes[name.trimming(" `"), default: []].insert(code)
        }
    }
    let known = ExitStatus.meanings.map { (String($0.status.code), $0.meaning) }
    #expect(meanings == Dictionary(uniqueKeysWithValues: known))
    for error in ErrorCode.allCases {
        let ends = Set([0, 2, 15].map { ExitStatus(error, signal: $0).code })
        #expect(codes[error.rawValue] == ends, "\(error)")
    }
    #expect(codes.count == ErrorCode.allCases.count)
}

@Test func error_isTwoLinesOrOneObject() {
    let error = BackupError(.exists, "there is a file of this name", at: "a\nb", remedy: "replace it with --force")
    let problem = ExitError(error, signal: 0)
    #expect(
        problem.text(.plain) == "backup-tool: a\\u{a}b: there is a file of this name\n  replace it with --force")
    #expect(
        problem.json.text == #"{"message_type":"exit_error","code":1,"error":"exists","#
            + #""message":"there is a file of this name","subject":"a\nb","remedy":"replace it with --force"}"#)
    #expect(ExitError(BackupError(.locked, "in use"), signal: 0).text(.plain) == "backup-tool: in use")
    #expect(ExitError(CancellationError(), signal: 0).status == .failed)
}

extension StringProtocol {
    func trimming(_ characters: String) -> String {
        var rest = Substring(self)
        while let first = rest.first, characters.contains(first) { rest.removeFirst() }
        while let last = rest.last, characters.contains(last) { rest.removeLast() }
        return String(rest)
    }
}
