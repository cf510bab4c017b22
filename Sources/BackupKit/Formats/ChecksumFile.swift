/// `SHA256SUMS`, as coreutils' `sha256sum -c` reads it.
public enum ChecksumFile {
    public static let fileName = "SHA256SUMS"

    /// The lines come in the order of `files`, which is by the bytes of their names in what we write.
    static func text(_ files: some Collection<(key: String, value: SHA256Digest)>) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(files.reduce(0) { $0 + 67 + $1.key.utf8.count })
        for (path, digest) in files {
            // "Escape backslash and newline, and start the line with a backslash": coreutils' rule.
            let escaped = path.utf8.contains(UInt8(ascii: "\\"))
            if escaped { out.append(UInt8(ascii: "\\")) }
            digest.appendHex(to: &out)
            out += "  ".utf8
            if escaped {
                for byte in path.utf8 { out += repeatElement(byte, count: byte == UInt8(ascii: "\\") ? 2 : 1) }
            } else {
                out += path.utf8
            }
            out.append(0x0A)
        }
        return out
    }

    /// Reads such a file; nil when a line is none of its lines.
    public static func parse(_ text: [UInt8]) -> [String: SHA256Digest]? {
        var digests: [String: SHA256Digest] = [:]
        digests.reserveCapacity(text.count / 100)
        let isSound = text.withUnsafeBytes { text in
            forEachLine(text) { line in digests[line.path(in: text)] = line.digest }
        }
        return isSound ? digests : nil
    }

    /// A line of such a file.
    struct Line {
        let digest: SHA256Digest
        /// Where the path stands.
        let place: Range<Int>
        let isEscaped: Bool

        func path(in text: UnsafeRawBufferPointer) -> String {
            let path = String(decoding: UnsafeRawBufferPointer(rebasing: text[place]), as: UTF8.self)
            return isEscaped ? ChecksumFile.unescaped(path) : path
        }
    }

    /// False when a line is none; files come by the ten thousand, so the lines are looked at as bytes.
    static func forEachLine(_ text: UnsafeRawBufferPointer, _ body: (Line) -> Void) -> Bool {
        var start = 0
        while start < text.count {
            let end = text[start...].firstIndex(of: 0x0A) ?? text.count
            defer { start = end + 1 }
            if end == start { continue }
            let isEscaped = text[start] == UInt8(ascii: "\\")
            let first = isEscaped ? start + 1 : start
            guard end - first > 66, let digest = SHA256Digest(hexBytes: text[first..<first + 64]),
                text[first + 64] == UInt8(ascii: " "),
                text[first + 65] == UInt8(ascii: " ") || text[first + 65] == UInt8(ascii: "*")
            else { return false }
            body(Line(digest: digest, place: first + 66..<end, isEscaped: isEscaped))
        }
        return true
    }

    fileprivate static func unescaped(_ name: String) -> String {
        var result = ""
        var pending = false
        for character in name {
            if pending {
                result.append(character == "n" ? "\n" : character)
                pending = false
            } else if character == "\\" {
                pending = true
            } else {
                result.append(character)
            }
        }
        return result
    }
}

/// What a `SHA256SUMS` says, found by path: sixteen bytes a file besides the text.
struct ChecksumList: Sendable {
    private let text: [UInt8]
    /// Where the paths stand, in the order of their bytes. Each has its digest 66 bytes before.
    private var places: [Range<UInt32>] = []
    /// Lines whose paths are written with escapes.
    private var others: [String: SHA256Digest] = [:]

    /// Empty when a line is none.
    init(_ text: [UInt8] = []) {
        self.text = text
        guard text.count < Int(UInt32.max) else { return }
        let isSound = text.withUnsafeBytes { text in
            ChecksumFile.forEachLine(text) { line in
                if line.isEscaped {
                    others[line.path(in: text)] = line.digest
                } else {
                    places.append(UInt32(line.place.lowerBound)..<UInt32(line.place.upperBound))
                }
            }
        }
        if !isSound { (places, others) = ([], [:]) }
        text.withUnsafeBytes { text in
            func precedes(_ left: Range<UInt32>, _ right: Range<UInt32>) -> Bool {
                precedesBytewise(Self.path(left, in: text), Self.path(right, in: text))
            }
            let isSorted = zip(places, places.dropFirst()).allSatisfy(precedes)
            if !isSorted { places.sort(by: precedes) }
        }
    }

    var isEmpty: Bool { places.isEmpty && others.isEmpty }

    private static func path(_ place: Range<UInt32>, in text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: text[Int(place.lowerBound)..<Int(place.upperBound)])
    }

    subscript(path: String) -> SHA256Digest? {
        var path = path
        let found: SHA256Digest? = path.withUTF8 { utf8 in
            let path = UnsafeRawBufferPointer(utf8)
            return text.withUnsafeBytes { text in
                let index = firstIndex(below: places.count) {
                    !precedesBytewise(Self.path(places[$0], in: text), path)
                }
                guard index < places.count, sameBytes(Self.path(places[index], in: text), path) else { return nil }
                let start = Int(places[index].lowerBound) - 66
                return SHA256Digest(hexBytes: text[start..<start + 64])
            }
        }
        return found ?? (others.isEmpty ? nil : others[path])
    }

    /// The paths of which `isWanted` says so of the bytes; where there are many, few should be.
    func paths(where isWanted: (UnsafeRawBufferPointer) -> Bool) -> [String] {
        text.withUnsafeBytes { text in
            places.lazy.map { Self.path($0, in: text) }.filter(isWanted).map { String(decoding: $0, as: UTF8.self) }
        } + others.keys.filter { Array($0.utf8).withUnsafeBytes(isWanted) }
    }
}
