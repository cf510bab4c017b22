/// Which names a file of a layout may have. The name decides where a restore writes, so a name that could lead out of
/// the target, or that a terminal, a shell or another file system would take for something else, is refused.
public enum EntryName {
    public static let componentBytes = 255
    public static let pathBytes = 4096
    public static let depth = 64

    /// The files that every layout has at its top, in lower case: no attachment may have their names, also where a file
    /// system folds case.
    static let reserved: Set<String> = [
        "readme.txt", "library.bib", "notes.json", "settings.json", "records.jsonl", "manifest.json", "sha256sums",
    ]

    /// What macOS, its archiver and Windows leave behind.
    static func isClutter(_ path: String) -> Bool {
        let name = lastComponent(of: path)
        return path.hasPrefix("__MACOSX/") || path.contains("/__MACOSX/") || name.hasPrefix("._")
            || [".DS_Store", "Thumbs.db", "desktop.ini"].contains(name)
    }

    static func isReserved(_ path: String) -> Bool {
        let top = path.utf8.prefix { $0 != slash }
        return top.count <= 16 && reserved.contains(String(decoding: top, as: UTF8.self).lowercased())
    }

    /// Throws `.refused` with the reason when `path` is no relative path of plain names.
    public static func check(_ path: String) throws {
        var path = path
        if let reason = path.withUTF8({ problem(in: UnsafeRawBufferPointer($0)) }) {
            throw BackupError(.refused, "is not a name that a backup may hold: \(reason)", at: path)
        }
    }

    /// The name as text, once it has passed `check`.
    static func checked(_ bytes: UnsafeRawBufferPointer) throws -> String {
        guard let path = String(utf8: bytes) else {
            throw BackupError(
                .refused, "is not a name that a backup may hold: it is not UTF-8",
                at: String(decoding: bytes, as: UTF8.self))
        }
        if let reason = problem(in: bytes) {
            throw BackupError(.refused, "is not a name that a backup may hold: \(reason)", at: path)
        }
        return path
    }

    /// What is wrong with a name, or nil.
    static func problem(in path: UnsafeRawBufferPointer) -> String? {
        guard path.count > 0 else { return "it is empty" }
        guard path.count <= pathBytes else { return "it is longer than \(pathBytes) bytes" }
        guard path[0] != slash && path[0] != backslash else { return "it is an absolute path" }
        if path.count >= 2 && path[1] == colon && isLetter(path[0]) {
            if path.count == 2 || path[2] == slash || path[2] == backslash { return "it begins with a drive letter" }
        }
        var start = 0
        var pieceStart = 0
        var components = 1
        for index in 0...path.count {
            let byte = index < path.count ? path[index] : slash
            if byte < 0x20 || byte == 0x7F { return "it holds a control character" }
            // U+0080 to U+009F, the other control characters, are C2 80 to C2 9F.
            if byte == 0xC2 && index + 1 < path.count && path[index + 1] < 0xA0 {
                return "it holds a control character"
            }
            guard byte == slash || byte == backslash else { continue }
            if let reason = problem(inPiece: path, pieceStart..<index) { return reason }
            pieceStart = index + 1
            guard byte == slash else { continue }
            if index - start > componentBytes { return "a part of it is longer than \(componentBytes) bytes" }
            start = index + 1
            if index < path.count { components += 1 }
        }
        return components > depth ? "it is more than \(depth) folders deep" : nil
    }

    /// Backslashes may be part of a name, but what they part is looked at too: `..\x` climbs on some systems.
    private static func problem(inPiece path: UnsafeRawBufferPointer, _ piece: Range<Int>) -> String? {
        switch piece.count {
        case 0: "it has an empty part"
        case 1 where path[piece.lowerBound] == dot: "'.' is part of it"
        case 2 where path[piece.lowerBound] == dot && path[piece.lowerBound + 1] == dot: "'..' is part of it"
        default: nil
        }
    }

    private static let slash = UInt8(ascii: "/")
    private static let backslash = UInt8(ascii: "\\")
    private static let colon = UInt8(ascii: ":")
    private static let dot = UInt8(ascii: ".")

    private static func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte & 0xDF) }
}

/// A name as archives store it: folders end in a slash, and packers of "." put "./" in front of everything.
struct StoredName {
    /// Checked; "." for the folder that was packed.
    let path: String
    let isFolder: Bool

    init(_ bytes: some Collection<UInt8>) throws {
        var rest = bytes[...]
        while rest.starts(with: [UInt8(ascii: "."), UInt8(ascii: "/")]) { rest = rest.dropFirst(2) }
        let isRoot = rest.isEmpty && !bytes.isEmpty
        isFolder = isRoot || Array(rest.suffix(1)) == [UInt8(ascii: "/")]
        let name = isFolder ? Array(rest.dropLast()) : Array(rest)
        path = try isRoot ? "." : name.withUnsafeBytes { try EntryName.checked($0) }
    }
}

/// The names of one carrier, which must stay apart on every file system: also on one that folds case or Unicode forms.
/// Holds 8 bytes a name: keyed 64-bit hashes, which nobody outside can aim at.
public struct EntryNameSet {
    private var files: Set<UInt64> = []
    private var folders: Set<UInt64> = []
    /// The name at hand, folded.
    private var folded: [UInt8] = []
    /// The folder of the last name, slash included, and the hash so far: neighbours share it.
    private var lastFolder: [UInt8] = []
    private var lastHasher = Hasher()

    public init() {}

    /// Takes a name that has passed `EntryName.check`. Throws `.refused` when it is there already or would fall
    /// together with another one, and does not take it then. Folders may come again and again.
    public mutating func insert(_ path: String, isFolder: Bool = false) throws {
        let isASCII = fold(path)
        var hasher = Hasher()
        var start = 0
        let isNeighbour = liesInLastFolder
        if isNeighbour { (hasher, start) = (lastHasher, lastFolder.count) }
        while let end = folded[start...].firstIndex(of: UInt8(ascii: "/")) {
            combine(start..<end, isASCII, into: &hasher)
            start = end + 1
            let folder = Self.value(hasher)
            if folders.insert(folder).inserted && files.contains(folder) {
                folders.remove(folder)
                throw BackupError(.refused, "lies below a name that is also a file's", at: path)
            }
        }
        if start != lastFolder.count || !isNeighbour {
            lastFolder = Array(folded[..<start])
            lastHasher = hasher
        }
        combine(start..<folded.count, isASCII, into: &hasher)
        let name = Self.value(hasher)
        if isFolder {
            guard !files.contains(name) else {
                throw BackupError(.refused, "is the name of both a file and a folder", at: path)
            }
            folders.insert(name)
            return
        }
        guard files.insert(name).inserted else {
            throw BackupError(
                .refused, "is there twice, or differs from another name only in case or Unicode form", at: path)
        }
        guard !folders.contains(name) else {
            files.remove(name)
            throw BackupError(.refused, "is the name of both a file and a folder", at: path)
        }
    }

    /// Whether a name is there already, or would fall together with one that is.
    mutating func isTaken(_ path: String) -> Bool {
        let isASCII = fold(path)
        var hasher = Hasher()
        var start = 0
        while let end = folded[start...].firstIndex(of: UInt8(ascii: "/")) {
            combine(start..<end, isASCII, into: &hasher)
            start = end + 1
            if files.contains(Self.value(hasher)) { return true }
        }
        combine(start..<folded.count, isASCII, into: &hasher)
        let name = Self.value(hasher)
        return files.contains(name) || folders.contains(name)
    }

    /// Folds case, and returns whether the name is ASCII. Upper case first, because that is where ß and SS, ς and σ meet.
    private mutating func fold(_ path: String) -> Bool {
        folded.removeAll(keepingCapacity: true)
        folded += path.utf8
        let isASCII = folded.withUnsafeMutableBufferPointer { bytes in
            var all: UInt8 = 0
            for index in bytes.indices {
                let byte = bytes[index]
                all |= byte
                bytes[index] = byte &- 65 < 26 ? byte | 0x20 : byte
            }
            return all < 0x80
        }
        if !isASCII { folded = Array(path.uppercased().lowercased().utf8) }
        return isASCII
    }

    /// Whether the name at hand begins as the one before, up to its last slash.
    private var liesInLastFolder: Bool {
        folded.count >= lastFolder.count
            && folded.withUnsafeBytes { folded in
                lastFolder.withUnsafeBytes { sameBytes(UnsafeRawBufferPointer(rebasing: folded[..<$0.count]), $0) }
            }
    }

    /// Swift hashes canonically equivalent strings alike, so only case had to be folded; of ASCII it takes the bytes and
    /// 0xFF, which is many times as fast without a string.
    private func combine(_ part: Range<Int>, _ isASCII: Bool, into hasher: inout Hasher) {
        folded.withUnsafeBytes { bytes in
            let bytes = UnsafeRawBufferPointer(rebasing: bytes[part])
            guard isASCII else { return hasher.combine(String(decoding: bytes, as: UTF8.self)) }
            hasher.combine(bytes: bytes)
            hasher.combine(UInt8.max)
        }
    }

    private static func value(_ hasher: Hasher) -> UInt64 {
        let copy = hasher
        return UInt64(bitPattern: Int64(copy.finalize()))
    }
}
