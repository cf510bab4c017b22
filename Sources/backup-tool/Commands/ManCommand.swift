import BackupKit
import Glibc

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
    guard mkdir(folder, 0o777) == 0 || errno == EEXIST else { throw failure("cannot be made", folder) }
    let pages = Command.root.everyCommand().map { ManPage($0.command, path: $0.path) }
    for page in pages {
        let path = folder + "/" + page.fileName
        try replaceFile(path, with: Array(page.text.utf8))
        output.detail("wrote \(printable(path))")
    }
    output.note("\(HumanText.count(pages.count, "page")) in \(printable(folder))")
}

/// Old or new, never half. These files can be made again at any time, so they are not forced to the disk.
private func replaceFile(_ path: String, with bytes: [UInt8]) throws {
    let temporary = "\(path).tmp-\(getpid())"
    let file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
    guard file >= 0 else { throw failure("cannot be written", path) }
    var written = 0
    while written < bytes.count {
        let count = bytes[written...].withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        if count < 0, errno != EINTR { break }
        written += max(0, count)
    }
    let problem = written < bytes.count ? failure("cannot be written", path) : nil
    guard close(file) == 0, problem == nil, rename(temporary, path) == 0 else {
        let problem = problem ?? failure("cannot be written", path)
        unlink(temporary)
        throw problem
    }
}

private func failure(_ what: String, _ path: String) -> BackupError {
    let code: ErrorCode = errno == ENOSPC || errno == EDQUOT ? .destinationFull : .failed
    return BackupError(code, "\(what): \(String(cString: strerror(errno)))", at: path)
}
