import BackupKit

extension Command {
    static let man = Command(
        "man", "Print the manual page of the tool or of a command",
        discussion: """
            The page is roff for man(1) and goes to standard output. With --all, the pages of the tool and of every \
            command are written into a folder, which is made if it is not there.
            """,
        options: [
            .value("all", "DIR", "Write all pages into this folder", .directory)
        ],
        arguments: [Argument("COMMAND", "The command; none for the tool itself", .command, .any)],
        examples: [
            Example("backup-tool man | man -l -", "Read the manual of the tool"),
            Example("backup-tool man version | man -l -", "Read the manual of a command"),
            Example("backup-tool man --all /usr/local/share/man/man1", "Install all pages"),
        ],
        run: { call in
            guard let folder = call.value("all") else {
                let page = ManPage(try findCommand(call.arguments, for: call), path: call.arguments)
                call.output.write(page.text)
                return .done
            }
            guard call.arguments.isEmpty else { throw call.usage("--all writes every page and takes no COMMAND") }
            try writePages(to: folder, call.output)
            return .done
        })
}

private func writePages(to folder: String, _ output: Output) throws {
    try Directory.createAll(folder, mode: 0o755)
    let pages = Command.root.everyCommand().map { ManPage($0.command, path: $0.path) }
    for page in pages {
        let path = try OutputPlace.behindLinks(folder + "/" + page.fileName)
        try AtomicFile.write(path, replace: true, mode: 0o644) { try $0.write(page.text) }
        output.detail("wrote \(printable(path))")
    }
    output.note("\(HumanText.count(pages.count, "page")) in \(printable(folder))")
}
