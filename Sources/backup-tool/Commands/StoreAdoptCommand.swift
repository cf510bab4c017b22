import BackupKit

extension Command {
    static let storeAdopt = Command(
        "adopt", "Take in files changed in the store's folder", in: .store,
        discussion: """
            Attachments lie in the folder STORE.assets under their own names. When you or an app changed one of them, an \
            export has the file as it is now and ends with 3, because the store still remembers the old one. This command \
            makes the changed file the attachment. It also puts back a removed file whose bytes the store still keeps for \
            an undo, and names those that are lost. 'undo' takes it back; where the store has no copy of the old bytes, \
            it names the file, which keeps its new ones.

            A file whose bytes changed and whose time did not is damaged, and only taken in where you name it as PATH. A file \
            that the store does not know is named, and taken in with --new or where you name it.
            """,
        options: [.store, .flag("new", "Also take in files that the store does not know"), .dryRun],
        arguments: [Argument("PATH", "An attachment, by its path below the folder", .text, .any)],
        examples: [
            Example("backup-tool store adopt --dry-run", "See which files were changed or removed"),
            Example("backup-tool store adopt --new", "Take in files that you have put there, too"),
            Example("backup-tool store adopt Attachments/smith2020.pdf", "Take in the notes in one PDF"),
        ],
        reports: true,
        run: { call in
            let isRehearsal = call.flag("dry-run")
            let store = try call.store(.write)
            let result = try store.adopt(
                call.arguments("PATH"), takesNew: call.flag("new"), dryRun: isRehearsal)
            if call.output.isJSON {
                call.output.report([
                    "message_type": "store-adopt", "dryRun": .bool(isRehearsal),
                    "adopted": .array(result.adopted.map { .string($0) }),
                    "putBack": .array(result.putBack.map { .string($0) }),
                    "batch": result.batch.map { .int(Int($0)) } ?? .null,
                    "findings": .array(result.findings.map(\.json)),
                ])
            } else {
                let would = isRehearsal ? "would be " : ""
                for path in result.adopted { call.output.print("\(printable(path)) \(would)adopted") }
                for path in result.putBack { call.output.print("\(printable(path)) \(would)put back") }
                call.say(result.findings)
                if result.adopted.isEmpty && result.putBack.isEmpty && result.findings.isEmpty {
                    call.output.note("Every file is what the store remembers.")
                } else if result.batch != nil {
                    call.output.note("'backup-tool undo' takes this back.")
                }
            }
            return result.findings.isEmpty ? .done : .incomplete
        })
}
