/// One entry of a folder, as restic's trees hold it.
public struct TreeNode: Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        case file, folder, symlink, device, characterDevice, fifo, socket
        /// A word that means nothing to us.
        case other(String)

        static let words: [(word: String, kind: Kind)] = [
            ("file", .file), ("dir", .folder), ("symlink", .symlink), ("dev", .device), ("chardev", .characterDevice),
            ("fifo", .fifo), ("socket", .socket),
        ]

        init(word: String) { self = Self.words.first { $0.word == word }?.kind ?? .other(word) }

        public var word: String {
            if case .other(let word) = self { return word }
            return Self.words.first { $0.kind == self }?.word ?? ""
        }
    }

    /// Go's `os.FileMode`: the permissions are POSIX's, the rest is not.
    public enum Mode {
        public static let folder: UInt32 = 1 << 31
        public static let symlink: UInt32 = 1 << 27
        public static let permissions: UInt32 = 0o777
    }

    /// The name's own bytes, which need not be UTF-8.
    public var name: [UInt8]
    public var kind: Kind
    public var mode: UInt32 = 0
    public var modified = GoTime(seconds: 0)
    public var accessed = GoTime(seconds: 0)
    public var changed = GoTime(seconds: 0)
    public var uid: UInt32 = 0
    public var gid: UInt32 = 0
    public var user = ""
    public var group = ""
    public var inode: UInt64 = 0
    public var device: UInt64 = 0
    public var size: UInt64 = 0
    public var links: UInt64 = 0
    public var linkTarget = ""
    /// The blobs of a file in order; nil for what is no file.
    public var content: [SHA256Digest]?
    public var subtree: SHA256Digest?
    /// Members that are seldom there and pass through as they are, and those that nobody has thought of yet.
    public var others: [JSON.Member] = []

    public init(name: [UInt8], kind: Kind) {
        self.name = name
        self.kind = kind
    }

    /// The name as text; nil when it is not UTF-8.
    public var text: String? { String(validating: name, as: UTF8.self) }

    /// Whether the name can be one of a single file: "", ".", ".." and names with '/' or NUL lead elsewhere.
    public var hasSafeName: Bool { Self.isSafe(name) }

    static func isSafe(_ name: [UInt8]) -> Bool {
        !name.isEmpty && name != [0x2E] && name != [0x2E, 0x2E] && !name.contains(0x2F) && !name.contains(0)
    }

    /// The keys of a node in the order in which restic writes them.
    static let keys = [
        "name", "type", "mode", "mtime", "atime", "ctime", "uid", "gid", "user", "group", "inode", "device_id", "size",
        "links", "linktarget", "linktarget_raw", "extended_attributes", "generic_attributes", "device", "content",
        "subtree", "error",
    ]
    private static let table = KeyTable(keys)

    init(reading scanner: inout JSONScanner, _ json: UnsafeRawBufferPointer) throws {
        self.init(name: [], kind: .other(""))
        var hint = 0
        var hasName = false
        try scanner.readMembers { scanner, key in
            let number = Self.table.find(json, key, hint: &hint)
            switch number {
            case 0:
                name = []
                try Self.appendName(&scanner, json, to: &name)
                hasName = true
            case 1: kind = Kind(word: jsonUnescape(json, try scanner.readString()))
            case 2: mode = try scanner.readNumber(UInt32.self)
            case 3: modified = try Self.time(&scanner, json)
            case 4: accessed = try Self.time(&scanner, json)
            case 5: changed = try Self.time(&scanner, json)
            case 6: uid = try scanner.readNumber(UInt32.self)
            case 7: gid = try scanner.readNumber(UInt32.self)
            case 8: user = jsonUnescape(json, try scanner.readString())
            case 9: group = jsonUnescape(json, try scanner.readString())
            case 10: inode = try scanner.readNumber(UInt64.self)
            case 11: device = try scanner.readNumber(UInt64.self)
            case 12: size = try scanner.readNumber(UInt64.self)
            case 13: links = try scanner.readNumber(UInt64.self)
            case 14: linkTarget = jsonUnescape(json, try scanner.readString())
            case 19: content = try Self.content(&scanner)
            case 20: subtree = try scanner.takeNull() ? nil : scanner.readDigest()
            default:
                let (_, range) = try scanner.value()
                let value = try JSON(parsing: UnsafeRawBufferPointer(rebasing: json[range]))
                others.append(JSON.Member(number.map { Self.keys[$0] } ?? jsonUnescape(json, key), value))
            }
        }
        guard hasName else { throw scanner.problem("a node without 'name'") }
    }

    private static func appendName(
        _ scanner: inout JSONScanner, _ json: UnsafeRawBufferPointer, to out: inout [UInt8]
    ) throws {
        let range = try scanner.readString()
        let body = UnsafeRawBufferPointer(rebasing: json[range])
        guard body.contains(UInt8(ascii: "\\")) else { return out += body }
        var quoted = jsonUnescape(json, range)
        guard let name = quoted.withUTF8({ GoText.unquoted(UnsafeRawBufferPointer($0)) }) else {
            throw scanner.problem("a name that is not quoted as it should be")
        }
        out += name
    }

    /// As much of a node as it takes to find it again.
    struct Outline {
        private(set) var kind = Kind.other("")
        private(set) var size: UInt64 = 0
        private(set) var subtree: SHA256Digest?
        /// Where the node stands.
        private(set) var range = 0..<0

        /// Appends the name to `name`.
        init(reading scanner: inout JSONScanner, _ json: UnsafeRawBufferPointer, name: inout [UInt8]) throws {
            scanner.skipSpace()
            let (start, nameStart) = (scanner.position, name.count)
            var hint = 0
            var hasName = false
            try scanner.readMembers { scanner, key in
                switch TreeNode.table.find(json, key, hint: &hint) {
                case 0:
                    name.removeLast(name.count - nameStart)
                    try TreeNode.appendName(&scanner, json, to: &name)
                    hasName = true
                case 1:
                    let word = UnsafeRawBufferPointer(rebasing: json[try scanner.readString()])
                    let known = Kind.words.prefix(2).first { word.elementsEqual($0.word.utf8) }
                    kind = known?.kind ?? .other("")
                case 12: size = try scanner.readNumber(UInt64.self)
                case 20: subtree = try scanner.takeNull() ? nil : scanner.readDigest()
                default: _ = try scanner.value()
                }
            }
            guard hasName else { throw scanner.problem("a node without 'name'") }
            range = start..<scanner.position
        }
    }

    private static func time(_ scanner: inout JSONScanner, _ json: UnsafeRawBufferPointer) throws -> GoTime {
        let range = try scanner.readString()
        guard let time = GoTime(parsing: UnsafeRawBufferPointer(rebasing: json[range])) else {
            throw scanner.problem("a time was expected")
        }
        return time
    }

    private static func content(_ scanner: inout JSONScanner) throws -> [SHA256Digest]? {
        if try scanner.takeNull() { return nil }
        var content: [SHA256Digest] = []
        try scanner.readElements { content.append(try $0.readDigest()) }
        return content
    }

    func append(to out: inout [UInt8]) {
        out += "{\"name\":".utf8
        name.withUnsafeBytes { GoText.appendName($0, to: &out) }
        func text(_ key: StaticString, _ value: String) {
            key.withUTF8Buffer { out += $0 }
            GoText.appendString(value, to: &out)
        }
        func number(_ key: StaticString, _ value: UInt64) {
            key.withUTF8Buffer { out += $0 }
            appendDecimal(value, to: &out)
        }
        func time(_ key: StaticString, _ time: GoTime) {
            key.withUTF8Buffer { out += $0 }
            time.append(to: &out)
            out.append(UInt8(ascii: "\""))
        }
        text(",\"type\":", kind.word)
        if mode != 0 { number(",\"mode\":", UInt64(mode)) }
        time(",\"mtime\":\"", modified)
        time(",\"atime\":\"", accessed)
        time(",\"ctime\":\"", changed)
        number(",\"uid\":", UInt64(uid))
        number(",\"gid\":", UInt64(gid))
        if !user.isEmpty { text(",\"user\":", user) }
        if !group.isEmpty { text(",\"group\":", group) }
        if inode != 0 { number(",\"inode\":", inode) }
        if device != 0 { number(",\"device_id\":", device) }
        if size != 0 { number(",\"size\":", size) }
        if links != 0 { number(",\"links\":", links) }
        if !linkTarget.isEmpty { text(",\"linktarget\":", linkTarget) }
        appendOthers(["linktarget_raw", "extended_attributes", "generic_attributes", "device"], to: &out)
        appendContent(to: &out)
        appendOthers(["error"], to: &out)
        for member in others where !Self.keys.contains(member.key) { Self.append(member, to: &out) }
        out.append(UInt8(ascii: "}"))
    }

    private func appendContent(to out: inout [UInt8]) {
        guard let content else {
            out += ",\"content\":null".utf8
            return appendSubtree(to: &out)
        }
        out += ",\"content\":[".utf8
        for (number, id) in content.enumerated() {
            out += (number == 0 ? "\"" : ",\"").utf8
            id.appendHex(to: &out)
            out.append(UInt8(ascii: "\""))
        }
        out.append(UInt8(ascii: "]"))
        appendSubtree(to: &out)
    }

    private func appendSubtree(to out: inout [UInt8]) {
        guard let subtree else { return }
        out += ",\"subtree\":\"".utf8
        subtree.appendHex(to: &out)
        out.append(UInt8(ascii: "\""))
    }

    private func appendOthers(_ names: [String], to out: inout [UInt8]) {
        if others.isEmpty { return }
        for name in names {
            if let member = others.first(where: { $0.key == name }) { Self.append(member, to: &out) }
        }
    }

    private static func append(_ member: JSON.Member, to out: inout [UInt8]) {
        out.append(UInt8(ascii: ","))
        GoText.appendString(member.key, to: &out)
        out.append(UInt8(ascii: ":"))
        GoText.append(member.value, to: &out)
    }
}
