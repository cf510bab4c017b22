import BackupKit
import Glibc

/// What a traced command did to the files of one folder, in its order, and what of it is certain to survive a loss of power:
/// content whose file was synced after the write, and names whose folder was synced after the change. POSIX promises no
/// more, so everything else may be there or not, in any combination.
public final class DiskModel {
    /// A file or a folder, under whatever names.
    final class Node {
        let isFolder: Bool
        /// What it held before the command began.
        let content: [UInt8]
        var names: [String: Node] = [:]

        init(isFolder: Bool, content: [UInt8] = []) { (self.isFolder, self.content) = (isFolder, content) }
    }

    enum Change {
        case write(Node, at: Int, [UInt8])
        case truncate(Node, to: Int)
        /// Names that change in one step; nil takes the name away.
        case names([(folder: Node, name: String, node: Node?)])

        func touches(_ node: Node) -> Bool {
            switch self {
            case .write(let file, _, _), .truncate(let file, _): file === node
            case .names(let parts): parts.contains { $0.folder === node }
            }
        }
    }

    private enum Step {
        case change(Change)
        case sync(Node)
    }

    private let folder: String
    private let root: Node
    private var steps: [Step] = []
    /// How the names are while the trace is read.
    private var names: [ObjectIdentifier: [String: Node]] = [:]
    private var sizes: [ObjectIdentifier: Int] = [:]
    /// Changes that are not durable yet, by their step.
    private var pending: [Int: Change] = [:]
    private var positions: [Int: Int] = [:]
    /// Where the rules were broken.
    public private(set) var defects: [String] = []
    public var count: Int { steps.count }

    /// The folder as it is now, before the command.
    public init(_ folder: String) throws {
        self.folder = folder
        root = try Self.read(folder)
        learn(root)
    }

    private static func read(_ path: String) throws -> Node {
        let node = Node(isFolder: true)
        for name in try Directory.names(in: path) where name != "tmp" && name != "trace" {
            let inner = "\(path)/\(name)"
            let isFolder = try FileStatus.ofName(inner)?.isDirectory == true
            node.names[name] = isFolder ? try read(inner) : Node(isFolder: false, content: try readFile(inner))
        }
        return node
    }

    private func learn(_ node: Node) {
        names[ObjectIdentifier(node)] = node.names
        sizes[ObjectIdentifier(node)] = node.content.count
        for inner in node.names.values { learn(inner) }
    }

    // MARK: Reading a trace

    /// Plays the calls, made in the folder, and notes where a rule is broken.
    public func play(_ calls: [SystemCall]) {
        for call in calls { play(call) }
        for change in pending.values {
            if let text = describe(change) { defects.append("at the end: \(text)") }
        }
        defects.sort()
    }

    private func play(_ call: SystemCall) {
        switch call.name {
        case "openat", "openat2", "creat": open(call)
        case "lseek": positions[call.number(0)] = call.result
        case "write", "writev", "pwrite64", "pwritev", "pwritev2", "copy_file_range", "sendfile": write(call)
        case "ftruncate": if let file = file(call) { note(.truncate(file, to: call.number(1))) }
        case "fallocate":
            if call.arguments.count > 3, let file = file(call) { grow(file, call.number(2) + call.number(3)) }
        case "fsync", "fdatasync": if let node = file(call) { sync(node) }
        case "rename", "renameat", "renameat2": rename(call)
        case "link", "linkat": link(call)
        case "unlink", "unlinkat", "rmdir": remove(call)
        case "mkdir", "mkdirat": make(call)
        default: defects.append("\(call.name) is a call that this model does not know")
        }
    }

    /// The path of the text number `index`, relative to the folder; nil outside of it.
    private func path(_ call: SystemCall, _ index: Int = 0) -> String? {
        guard call.texts.indices.contains(index) else { return nil }
        var path = String(decoding: call.texts[index], as: UTF8.self)
        if !path.hasPrefix("/") {
            // Calls without a folder of their own are relative to the folder that the command runs in.
            let base = call.places.indices.contains(index) && call.name.hasSuffix("at") || call.name.hasSuffix("at2")
            path = "\(base && call.places.indices.contains(index) ? call.places[index] : folder)/\(path)"
        }
        return inside(path)
    }

    private func inside(_ path: String) -> String? {
        var parts: [Substring] = []
        for part in path.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        let own = folder.split(separator: "/")
        guard parts.starts(with: own), parts.count > own.count, !["tmp", "trace"].contains(parts[own.count]) else {
            return parts == own ? "" : nil
        }
        return parts[own.count...].joined(separator: "/")
    }

    private func node(_ path: String) -> Node? {
        var node = root
        for part in path.split(separator: "/") {
            guard let next = names[ObjectIdentifier(node)]?[String(part)] else { return nil }
            node = next
        }
        return node
    }

    /// What the first argument is a descriptor of.
    private func file(_ call: SystemCall) -> Node? {
        guard let place = call.places.first, !(call.arguments.first?.contains("deleted") ?? true) else { return nil }
        return inside(place).flatMap(node)
    }

    private func spot(_ path: String) -> (folder: Node, name: String)? {
        node(parent(of: path) == "." ? "" : parent(of: path)).map { ($0, lastComponent(of: path)) }
    }

    private func open(_ call: SystemCall) {
        positions[call.result] = 0
        guard call.says("O_CREAT") || call.name == "creat" || call.says("O_TRUNC"), let path = path(call) else {
            return
        }
        if let known = node(path) {
            if call.says("O_TRUNC") { note(.truncate(known, to: 0)) }
            if call.says("O_APPEND") { positions[call.result] = .max }
        } else if let spot = spot(path) {
            note(.names([(spot.folder, spot.name, Node(isFolder: false))]))
            if call.says("O_APPEND") { positions[call.result] = .max }
        }
    }

    private func write(_ call: SystemCall) {
        guard let file = file(call), !file.isFolder else { return }
        guard call.name == "write" || call.name == "pwrite64", let bytes = call.texts.first else {
            return defects.append("\(call.name) is a call that this model does not know")
        }
        let written = Array(bytes.prefix(call.result))
        if call.name == "pwrite64" { return note(.write(file, at: call.number(3), written)) }
        let end = sizes[ObjectIdentifier(file)] ?? 0
        let position = min(positions[call.number(0)] ?? 0, end)
        let isAppending = positions[call.number(0)] == .max
        note(.write(file, at: isAppending ? end : position, written))
        if !isAppending { positions[call.number(0)] = position + written.count }
    }

    private func grow(_ file: Node, _ size: Int) {
        if size > sizes[ObjectIdentifier(file)] ?? 0 { note(.truncate(file, to: size)) }
    }

    private func make(_ call: SystemCall) {
        guard let path = path(call), let spot = spot(path) else { return }
        note(.names([(spot.folder, spot.name, Node(isFolder: true))]))
    }

    private func rename(_ call: SystemCall) {
        guard let from = path(call, 0), let to = path(call, 1), let node = node(from), let old = spot(from),
            let new = spot(to)
        else { return }
        expectWhole(node, as: to)
        let other = call.says("RENAME_EXCHANGE") ? self.node(to) : nil
        note(.names([(old.folder, old.name, other), (new.folder, new.name, node)]))
    }

    private func link(_ call: SystemCall) {
        guard let from = path(call, 0), let to = path(call, 1), let node = node(from), let new = spot(to) else {
            return
        }
        expectWhole(node, as: to)
        note(.names([(new.folder, new.name, node)]))
    }

    /// What gets a name for all to see is synced, with all that is in it.
    private func expectWhole(_ node: Node, as path: String) {
        guard isVisible(path) else { return }
        for change in pending.values where reaches(node, change) {
            defects.append("before \(path) got its name: \(words(change))")
        }
        // What names other files is the last to be there.
        if path.contains("snapshots/") || path.contains("/index/") { expectDurable(before: "\(path) was put in place") }
    }

    private func remove(_ call: SystemCall) {
        guard let path = path(call), let spot = spot(path), node(path) != nil else { return }
        let isFolder = call.name == "rmdir" || call.says("AT_REMOVEDIR")
        if !isFolder, isVisible(path) { expectDurable(before: "\(path) was removed") }
        note(.names([(spot.folder, spot.name, nil)]))
        if isFolder { pending[steps.count - 1] = nil }
    }

    /// What took a name before must be durable before something else is taken away or relies on it.
    private func expectDurable(before what: String) {
        for change in pending.values {
            guard case .names(let parts) = change, parts.contains(where: { $0.node != nil }) else { continue }
            if let text = describe(change) { defects.append("before \(what): \(text)") }
        }
    }

    private func note(_ change: Change) {
        switch change {
        case .write(let file, let offset, let bytes):
            sizes[ObjectIdentifier(file)] = max(sizes[ObjectIdentifier(file)] ?? 0, offset + bytes.count)
        case .truncate(let file, let size): sizes[ObjectIdentifier(file)] = size
        case .names(let parts):
            for part in parts {
                names[ObjectIdentifier(part.folder), default: [:]][part.name] = part.node
                if let node = part.node, names[ObjectIdentifier(node)] == nil { learn(node) }
            }
        }
        pending[steps.count] = change
        steps.append(.change(change))
    }

    private func sync(_ node: Node) {
        for (step, change) in pending where change.touches(node) { pending[step] = nil }
        steps.append(.sync(node))
    }

    // MARK: Rules

    /// Whether a change is one of this file, or of something in this folder.
    private func reaches(_ node: Node, _ change: Change) -> Bool {
        change.touches(node) || (names[ObjectIdentifier(node)] ?? [:]).values.contains { reaches($0, change) }
    }

    /// A name that people and other commands go by. SQLite's own helpers come and go by its rules, and so do locks and
    /// what waits for a transaction.
    private func isVisible(_ path: String) -> Bool {
        !path.contains(".tmp-") && !path.contains("/.incoming") && !path.hasSuffix(".placed")
            && !path.contains("locks/")
            && !["-shm", "-wal", "-journal"].contains(where: path.hasSuffix)
    }

    private func name(of node: Node) -> String? {
        func find(_ folder: Node, _ path: String) -> String? {
            if folder === node { return path }
            for (name, inner) in names[ObjectIdentifier(folder)] ?? [:] {
                if let found = find(inner, path.isEmpty ? name : "\(path)/\(name)") { return found }
            }
            return nil
        }
        return find(root, "")
    }

    /// What is not durable, where it matters to anybody; a folder that was removed empty is missed by nobody.
    private func describe(_ change: Change) -> String? {
        switch change {
        case .write(let file, _, _), .truncate(let file, _):
            // The log of SQLite is as much part of a database as its file.
            guard let path = name(of: file), isVisible(path) || path.hasSuffix("-wal") else { return nil }
        case .names(let parts):
            let seen = parts.contains { part in
                guard let folder = name(of: part.folder) else { return false }
                return isVisible("\(folder)/\(part.name)")
            }
            guard seen else { return nil }
        }
        return words(change)
    }

    private func words(_ change: Change) -> String {
        switch change {
        case .write(let file, _, _), .truncate(let file, _):
            return "\(name(of: file) ?? "a file without a name") was written and not synced"
        case .names(let parts):
            let part = parts.last
            let path = part.map { "\(name(of: $0.folder) ?? "a folder without a name")/\($0.name)" } ?? ""
            return "\(path) \(part?.node == nil ? "was removed" : "got its name"), and its folder was not synced"
        }
    }

    // MARK: Losing power

    /// Makes `target` what a disk may hold after the first `count` steps and a loss of power: all that is durable, and of
    /// the rest what `survives` says.
    public func lose(after count: Int, into target: String, survives: () -> Bool) throws {
        var isDurable = Set<Int>()
        for (index, step) in steps[..<count].enumerated() {
            guard case .sync(let node) = step else { continue }
            for (earlier, step) in steps[..<index].enumerated() {
                if case .change(let change) = step, change.touches(node) { isDurable.insert(earlier) }
            }
        }
        var contents: [ObjectIdentifier: [UInt8]] = [:]
        var folders: [ObjectIdentifier: [String: Node]] = [:]
        for (index, step) in steps[..<count].enumerated() {
            guard case .change(let change) = step, isDurable.contains(index) || survives() else { continue }
            switch change {
            case .write(let file, let offset, let bytes):
                var content = contents[ObjectIdentifier(file)] ?? file.content
                if content.count < offset { content += [UInt8](repeating: 0, count: offset - content.count) }
                content.replaceSubrange(offset..<min(offset + bytes.count, content.count), with: bytes)
                contents[ObjectIdentifier(file)] = content
            case .truncate(let file, let size):
                let content = contents[ObjectIdentifier(file)] ?? file.content
                contents[ObjectIdentifier(file)] =
                    size < content.count
                    ? Array(content.prefix(size)) : content + [UInt8](repeating: 0, count: size - content.count)
            case .names(let parts):
                for part in parts {
                    folders[ObjectIdentifier(part.folder), default: part.folder.names][part.name] = part.node
                }
            }
        }
        func write(_ folder: Node, _ path: String) throws {
            try Directory.createAll(path)
            for (name, node) in folders[ObjectIdentifier(folder)] ?? folder.names where !name.hasSuffix("-shm") {
                let inner = "\(path)/\(name)"
                if node.isFolder {
                    try write(node, inner)
                } else {
                    try (contents[ObjectIdentifier(node)] ?? node.content).withUnsafeBytes {
                        try FileHandle.create(inner).write($0)
                    }
                }
            }
        }
        try write(root, target)
    }
}
