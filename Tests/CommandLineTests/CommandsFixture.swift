import BackupKit
import Glibc
import TestSupport
import Testing

/// A folder of its own for one test, with the tool and its peers run in it.
final class Workbench {
    let folder: String
    private let environment: [String: String]

    init(_ more: [String: String] = [:]) throws {
        var template = Array("/tmp/backup-tool-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw BackupError(.failed, "no folder: errno \(errno)") }
        folder = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        environment = testEnvironment(
            ["TMPDIR": "\(folder)/tmp", "BACKUP_TOOL_STORE": "store.db"].merging(more) { $1 })
        try Directory.create("\(folder)/tmp")
    }

    deinit {
        // A test may have taken permissions away.
        _ = try? runProcess(["chmod", "-R", "u+rwX", folder])
        try? Directory.removeTree(folder)
    }

    /// Runs the tool in the folder; its two streams stay apart.
    @discardableResult func tool(
        _ arguments: String..., environment more: [String: String] = [:], stdin: [UInt8] = []
    ) throws -> ProcessResult {
        try runTool(arguments, environment: environment.merging(more) { $1 }, stdin: stdin, in: folder, timeout: 120)
    }

    @discardableResult func tool(_ arguments: [String], environment more: [String: String] = [:]) throws
        -> ProcessResult
    {
        try runTool(arguments, environment: environment.merging(more) { $1 }, in: folder, timeout: 120)
    }

    /// Runs the tool and insists on the exit code.
    @discardableResult func tool(
        exit code: Int32, _ arguments: String..., environment more: [String: String] = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> ProcessResult {
        let result = try tool(arguments, environment: more)
        #expect(result.status == code, "\(arguments): \(result.stderr)\(result.stdout)", sourceLocation: sourceLocation)
        return result
    }

    @discardableResult func tool(
        exit code: Int32, _ arguments: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> ProcessResult {
        let result = try tool(arguments)
        #expect(result.status == code, "\(arguments): \(result.stderr)\(result.stdout)", sourceLocation: sourceLocation)
        return result
    }

    /// Runs the tool with `--json` and gives its last object.
    func json(
        exit code: Int32, _ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> JSON {
        let result = try tool(arguments + ["--json"])
        #expect(result.status == code, "\(arguments): \(result.stderr)\(result.stdout)", sourceLocation: sourceLocation)
        return try JSON(parsing: result.stdoutLines.last ?? "null")
    }

    /// Runs a shell script in the folder; a line that fails ends it. The tool is `$T`.
    @discardableResult func shell(
        _ script: String, timeout: Double = 120, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> String {
        let more = ["T": try productsDirectory() + "/backup-tool", "SAMPLES": Workbench.samples]
        let result = try runProcess(
            ["bash", "-euo", "pipefail", "-c", script], environment: environment.merging(more) { $1 }, in: folder,
            timeout: timeout)
        #expect(result.status == 0, "\(script)\n\(result.stderr)\(result.stdout)", sourceLocation: sourceLocation)
        return result.stdout
    }

    func python(_ script: String, _ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation) throws {
        let result = try runProcess(
            ["python3", "-c", script] + arguments, environment: environment, in: folder, timeout: 120)
        #expect(result.status == 0, "\(result.stderr)\(result.stdout)", sourceLocation: sourceLocation)
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    func write(_ name: String, _ text: String) throws { try write(name, Array(text.utf8)) }

    func write(_ name: String, _ bytes: [UInt8]) throws {
        try Directory.createAll(BackupKit.parent(of: path(name)))
        unlink(path(name))
        try bytes.withUnsafeBytes { try FileHandle.create(path(name), mode: 0o644).write($0) }
    }

    func bytes(_ name: String) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try FileHandle.openForReading(path(name)).forEachChunk { bytes += $0 }
        return bytes
    }

    func text(_ name: String) throws -> String { String(decoding: try bytes(name), as: UTF8.self) }

    func exists(_ name: String) throws -> Bool { try FileStatus.ofName(path(name)) != nil }

    /// Kills the tool at each of these system calls, or, unless for torture, at some of them; each time the vault `v` is first
    /// as it is now, and `after` looks at what is left.
    func killed(
        at calls: String, times: Int? = nil, _ words: [String], test: String = #function,
        after: (_ place: String) throws -> Void
    ) throws {
        func run(_ options: [String]) throws {
            _ = try runProcess(
                ["strace", "-f", "-qq", "-o", "trace"] + options + [try productsDirectory() + "/backup-tool"] + words,
                environment: environment, in: folder)
        }
        try shell("rm -rf keep; cp -a v keep")
        try run(["-e", "trace=\(calls)"])
        let steps = TracedStep.all(in: try text("trace"))
        #expect(steps.count > 20)
        for step in times.map(steps.chosen) ?? steps {
            countRounds(1, test)
            try shell("rm -rf v; cp -a keep v")
            try run(step.kill)
            try after("\(step)")
        }
    }

    /// Every file below a folder, relative to it.
    func files(_ name: String) throws -> [String] {
        var files: [String] = []
        try Directory.walk(path(name)) { path, status in if !status.isDirectory { files.append(path) } }
        return files
    }

    func digest(_ store: String = "store.db") throws -> String {
        try tool(exit: 0, "store", "digest", "--store", store).stdout
    }

    /// Takes back the last batch where the last command changed nothing: then an undo asks for the batch by its number.
    func undoNamedBatch() throws {
        let refused = try tool(exit: 1, "undo")
        let batch = try #require(refused.stderr.firstMatch(of: /--batch (\d+)/)).1
        try tool(exit: 0, "undo", "--batch", String(batch))
    }

    /// What a store is, to the byte: its database and everything beside it.
    func state(_ store: String = "store.db") throws -> [String: [UInt8]] {
        var state = [store: try bytes(store)]
        // An empty log is left by a reader, and says nothing.
        if try exists(store + "-wal"), case let log = try bytes(store + "-wal"), !log.isEmpty { state["-wal"] = log }
        for file in try files("\(store).assets") { state[file] = try bytes("\(store).assets/\(file)") }
        return state
    }

    static let samples = "\(projectFolder)/samples"
    /// Real data that is kept beside the project; not everybody has it.
    static let corpora: String? = {
        let path = samples + "/../../shared/corpora"
        return access(path + "/bib", F_OK) == 0 ? path : nil
    }()
    static let isTorture = TestSupport.isTorture
    static let allKinds = "publications,notes,events,records,attachments,settings"

    /// A store with everything in samples/.
    func importSamples(into store: String = "store.db") throws {
        let library = "\(Self.samples)/library"
        try tool(
            exit: 3, "import", "--create", "--store", store, "--only", Self.allKinds, "\(library)/references.bib",
            "\(library)/latin1.bib", "\(library)/notes.json", "\(library)/settings.json", "\(Self.samples)/events",
            "--attachments", "\(library)/Attachments")
    }
}
