/// A file that an entry names. The path is as written: nothing was looked up on disk.
public struct BibFileLink: Sendable, Equatable {
    public var path: String
    public var description: String?
    /// As written: "PDF" by JabRef, "application/pdf" by Zotero.
    public var mediaType: String?

    public init(path: String, description: String? = nil, mediaType: String? = nil) {
        (self.path, self.description, self.mediaType) = (path, description, mediaType)
    }

    /// What the path may mean: itself, and what it says where it was written in LaTeX (`{\_}`, `\&`, `{\"u}`).
    public var readings: [String] {
        let plain = LaTeXText.plain(path)
        return sameBytes(plain, path) ? [path] : [path, plain]
    }
}

/// What attachments an entry names, in the ways of BibDesk, JabRef, Zotero and plain paths.
public enum BibFileLinks {
    /// All links of an entry, in the order of its fields, each path once.
    public static func links(in block: BibBlock, macros: BibMacros = .standard) -> [BibFileLink] {
        var links: [BibFileLink] = []
        for field in block.fields where mayName(block.nameBytes(of: field)) {
            for link in self.links(field: block.name(of: field), value: block.value(of: field, macros: macros)) {
                if !links.contains(where: { sameBytes($0.path, link.path) }) { links.append(link) }
            }
        }
        return links
    }

    /// The links of one field; none if the field is not of a kind that names files.
    public static func links(field name: String, value: String) -> [BibFileLink] {
        let name = name.lowercased()
        if name.hasPrefix(bibDeskPrefix) {
            guard case .path(let path) = BibDeskFile(value) else { return [] }
            return [BibFileLink(path: slashed(path))]
        }
        switch name {
        case "file": return list(value)
        case "pdf", "localfile", "local-url", "file-path":
            let path = trimmed(value)
            return path.isEmpty || isRemote(path) ? [] : [BibFileLink(path: slashed(localPath(path)))]
        default: return []
        }
    }

    /// The `Bdsk-File-n` fields of an entry that name no path, and why.
    static func unreadable(in block: BibBlock, macros: BibMacros = .standard) -> [(field: String, reason: String)] {
        block.fields.compactMap { field in
            let name = block.name(of: field)
            guard name.lowercased().hasPrefix(bibDeskPrefix),
                let reason = BibDeskFile(block.value(of: field, macros: macros)).problem
            else { return nil }
            return (name, reason)
        }
    }

    /// The value of a `Bdsk-File-n` field.
    public static func bibDeskValue(relativePath: String) -> String {
        BibBase64.encode(BibBinaryPlist.withRelativePath(relativePath))
    }

    static let bibDeskPrefix = "bdsk-file-"

    private static let names: [StaticString] = ["file", "pdf", "localfile", "local-url", "file-path", "bdsk-file-"]

    /// Whether a field is of a kind that names files; asked of every field, so no text is made.
    private static func mayName(_ name: UnsafeRawBufferPointer) -> Bool {
        names.contains { known in
            let isBibDesk = known.utf8CodeUnitCount == bibDeskPrefix.utf8.count
            guard isBibDesk ? name.count > known.utf8CodeUnitCount : name.count == known.utf8CodeUnitCount else {
                return false
            }
            return (0..<known.utf8CodeUnitCount).allSatisfy { BibText.lowercase(name[$0]) == known.utf8Start[$0] }
        }
    }
}

// MARK: - The `file` field

extension BibFileLinks {
    /// A part between two colons: as written, and with its escapes taken away.
    private struct Part {
        var raw = ""
        var text = ""
    }

    /// What an item says, and which of its parts are the path.
    private struct Found {
        let link: BibFileLink
        let path: Range<Int>
    }

    /// `description:path:type;…`, `name:path:media/type;…`, or paths alone, with `\:`, `\;` and `\\` escaped.
    private static func list(_ value: String) -> [BibFileLink] { items(of: value).compactMap { find($0)?.link } }

    /// The value with other paths: `place` gets what a link's path may mean, and says where the file lies. The rest stays
    /// as it is written.
    static func replacing(field name: String, value: String, place: ([String]) -> String?) -> String {
        let name = name.lowercased()
        if name != "file" {
            guard let link = links(field: name, value: value).first, let path = place(link.readings),
                !sameBytes(path, link.path)
            else { return value }
            return name.hasPrefix(bibDeskPrefix) ? bibDeskValue(relativePath: path) : path
        }
        return items(of: value).map { parts in
            var written = parts.map(\.raw)
            if let found = find(parts), let path = place(found.link.readings), !sameBytes(path, found.link.path) {
                written.replaceSubrange(found.path, with: [escaped(path)])
            }
            return written.joined(separator: ":")
        }.joined(separator: ";")
    }

    /// A backslash before anything else is a backslash: people write Windows paths unescaped.
    private static func items(of value: String) -> [[Part]] {
        var items = [[Part()]]
        var escape: String?
        var rest = value.unicodeScalars[...]
        func add(_ raw: String, _ text: String) {
            items[items.count - 1][items[items.count - 1].count - 1].raw += raw
            items[items.count - 1][items[items.count - 1].count - 1].text += text
        }
        while let scalar = rest.first {
            let backslash = spelledBackslash(rest)
            let written = backslash ?? String(Character(scalar))
            rest = rest.dropFirst(written.unicodeScalars.count)
            if let before = escape {
                let isEscaped = backslash != nil || scalar == ":" || scalar == ";"
                add(before + written, (isEscaped ? "" : "\\") + (backslash == nil ? written : "\\"))
                escape = nil
            } else if backslash != nil {
                escape = written
            } else if scalar == ":" {
                items[items.count - 1].append(Part())
            } else if scalar == ";" {
                items.append([Part()])
            } else {
                add(written, written)
            }
        }
        if let escape { add(escape, "\\") }
        return items
    }

    private static func spelledBackslash(_ text: Substring.UnicodeScalarView) -> String? {
        guard let first = text.first, first == "\\" || first == "{" || first == "$" else { return nil }
        for spelling in LaTeXText.backslashes where text.starts(with: spelling.unicodeScalars) { return spelling }
        return first == "\\" ? "\\" : nil
    }

    private static func find(_ written: [Part]) -> Found? {
        let parts = written.map { trimmed($0.text) }
        let whole = parts.joined(separator: ":")
        if isRemote(whole) || whole.isEmpty { return nil }
        if parts.count == 1 || isDrive(parts[0], parts[1]) && !isType(parts[parts.count - 1])
            || whole.hasPrefix("file://")
        {
            return Found(link: BibFileLink(path: slashed(localPath(whole))), path: 0..<parts.count)
        }
        if parts.count == 2 {
            let isPathFirst = isType(parts[1])
            let (path, other) = isPathFirst ? (parts[0], parts[1]) : (parts[1], parts[0])
            guard !path.isEmpty else { return nil }
            let link = BibFileLink(
                path: slashed(path), description: isPathFirst ? nil : some(other),
                mediaType: isPathFirst ? some(other) : nil)
            return Found(link: link, path: isPathFirst ? 0..<1 : 1..<2)
        }
        // Colons beyond the two that separate belong to the path ("C:/x.pdf"); without a description the drive is first.
        let noDescription = isDrive(parts[0], parts[1])
        let place = (noDescription ? 0 : 1)..<(parts.count - 1)
        let path = parts[place].joined(separator: ":")
        guard !path.isEmpty, !isRemote(path) else { return nil }
        let link = BibFileLink(
            path: slashed(localPath(path)), description: noDescription ? nil : some(parts[0]),
            mediaType: some(parts[parts.count - 1]))
        return Found(link: link, path: place)
    }

    private static func some(_ text: String) -> String? { text.isEmpty ? nil : text }

    /// "PDF", "application/pdf": no path looks like that.
    private static func isType(_ text: String) -> Bool {
        let families = ["application/", "text/", "image/", "audio/", "video/"]
        if families.contains(where: { text.lowercased().hasPrefix($0) }) { return true }
        return text.isEmpty
            || (text.utf8.count <= 12 && text.utf8.allSatisfy { BibByte.isLetter($0) || $0 == BibByte.space })
    }

    private static func isDrive(_ letter: String, _ rest: String) -> Bool {
        letter.utf8.count == 1 && letter.utf8.allSatisfy { BibByte.isLetter($0) }
            && (rest.hasPrefix("\\") || FilePath.isAbsolute(rest))
    }

    private static func isRemote(_ text: String) -> Bool {
        ["http://", "https://", "ftp://"].contains { text.lowercased().hasPrefix($0) }
    }

    private static func escaped(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            if [":", ";", "\\"].contains(scalar) { out.unicodeScalars.append("\\") }
            out.unicodeScalars.append(scalar)
        }
        return out
    }

    private static func trimmed(_ text: String) -> String {
        let bytes = Array(text.utf8)
        guard let first = bytes.firstIndex(where: { !BibByte.isWhite($0) }),
            let last = bytes.lastIndex(where: { !BibByte.isWhite($0) })
        else { return "" }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }
}

// MARK: - Paths

extension BibFileLinks {
    /// The path of a `file://` URL (Local-Url of old BibDesk files); anything else is a path already.
    private static func localPath(_ text: String) -> String {
        guard text.hasPrefix("file://") else { return text }
        let rest = Array(text.utf8.dropFirst("file://".utf8.count))
        guard let slash = rest.firstIndex(of: 0x2F) else { return text }
        var out: [UInt8] = []
        var index = slash
        while index < rest.count {
            let hex =
                index + 2 < rest.count
                ? UInt8(String(decoding: rest[(index + 1)...(index + 2)], as: UTF8.self), radix: 16) : nil
            if rest[index] == BibByte.percent, let hex {
                out.append(hex)
                index += 3
            } else {
                out.append(rest[index])
                index += 1
            }
        }
        return BibText.decode(out).text
    }

    /// `\` becomes `/` where it clearly separates folders: behind a drive letter or `\\server`, or in a path without any
    /// `/` whose backslashes are not LaTeX's (`\_`, `\&`).
    static func slashed(_ path: String) -> String {
        let bytes = Array(path.utf8)
        let backslash = UInt8(ascii: "\\")
        guard bytes.contains(backslash) else { return path }
        let hasDrive =
            bytes.count > 2 && BibByte.isLetter(bytes[0]) && bytes[1] == UInt8(ascii: ":") && bytes[2] == backslash
        let hasServer = bytes.starts(with: [backslash, backslash])
        let isRelative =
            !bytes.contains(UInt8(ascii: "/"))
            && bytes.indices.allSatisfy { index in
                guard bytes[index] == backslash else { return true }
                guard index + 1 < bytes.count else { return false }
                return BibByte.isLetter(bytes[index + 1]) || BibByte.isDigit(bytes[index + 1])
                    || bytes[index + 1] >= 0x80
            }
        guard hasDrive || hasServer || isRelative else { return path }
        return String(decoding: bytes.map { $0 == backslash ? UInt8(ascii: "/") : $0 }, as: UTF8.self)
    }
}
