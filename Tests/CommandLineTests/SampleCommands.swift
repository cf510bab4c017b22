import BackupKit

@testable import backup_tool

/// A tool that has one of everything, so that the infrastructure is tested whatever the real commands need.
let sampleRoot = Command(
    "backup-tool", "Sample of a tool",
    subcommands: [
        Command(
            "export", "Write a library", in: .moveData,
            discussion: ".dots at a line's start, back\\slashes, it's \"quoted\" ~ ^ ` é.",
            options: [
                .store, .force, .output("Where to write"), .only,
                .value("format", short: "F", "FORMAT", "The format", .oneOf(["dir", "tar.zst", "zip"])),
                .value("level", "N", "How hard to compress, 1 to 19"),
                .value("exclude", "GLOB", "Leave [these]: out, it's allowed", repeated: true),
            ],
            arguments: [Argument("PATH", "More to take", .file, .any)],
            examples: [Example("backup-tool export -o x.zip", "Write a zip file")],
            reports: true, run: { _ in .done }),
        Command(
            "store", "Look after stores", in: .store,
            subcommands: [
                Command("init", "Make a store", options: [.store], run: { _ in .done }),
                Command(
                    "info", "Describe a store", arguments: [Argument("PATH", "The store", .directory, .optional)],
                    reports: true, run: { _ in .done }),
            ]),
        Command(
            "diff", "Compare two", in: .look,
            arguments: [
                Argument("A", "The old", .file), Argument("B", "The new", .file),
                Argument("ENTRY", "Only these", .text, .any),
            ], run: { _ in .done }),
    ])

func sampleCall(_ words: String...) throws -> Invocation {
    let line = try Parser.parse(words, root: sampleRoot)
    let environment = Environment([:], accountHome: { nil })
    return Invocation(line: line, environment: environment, output: Output(line: line, environment: environment))
}

/// "message / remedy" of the error that parsing gives, or "" when it gives none.
func sampleError(_ words: [String]) -> String {
    do {
        _ = try Parser.parse(words, root: sampleRoot)
        return ""
    } catch let error as BackupError {
        return error.code == .usage ? "\(error.message) / \(error.remedy ?? "")" : "not an error of usage: \(error)"
    } catch {
        return "not a BackupError: \(error)"
    }
}
