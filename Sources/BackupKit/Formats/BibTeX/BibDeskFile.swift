/// What the value of a `Bdsk-File-n` field says: base64 of a property list, which BibDesk writes in binary and other
/// programs as XML.
enum BibDeskFile {
    case path(String)
    /// A property list that names no path; BibDesk's own bookmarks say something to macOS alone.
    case withoutPath
    case damaged
    /// An empty field names nothing, and nobody misses anything.
    case empty

    init(_ value: String) {
        guard let bytes = BibBase64.decode(value) else {
            self = .damaged
            return
        }
        if bytes.isEmpty {
            self = .empty
        } else if let plist = BibBinaryPlist(bytes) {
            self = plist.relativePath.map { .path($0) } ?? (plist.isDictionary ? .withoutPath : .damaged)
        } else if let plist = BibXMLPlist(bytes) {
            self = plist.relativePath.map { .path($0) } ?? .withoutPath
        } else {
            self = .damaged
        }
    }

    /// Why it names no file that can be looked for, as the end of a sentence.
    var problem: String? {
        switch self {
        case .path, .empty: nil
        case .withoutPath: "names its file by a bookmark of macOS only, not by a path"
        case .damaged: "is damaged, so the file that it names is unknown"
        }
    }
}

/// The little of Apple's XML property lists that a file link needs: one text in a dictionary.
struct BibXMLPlist {
    private let text: String

    init?(_ bytes: [UInt8]) {
        guard bytes.count <= BibBinaryPlist.largest, let text = String(validating: bytes, as: UTF8.self),
            text.firstRange(of: "<plist") != nil, text.firstRange(of: "</plist>") != nil
        else { return nil }
        self.text = text
    }

    var relativePath: String? {
        guard let key = text.firstRange(of: "<key>relativePath</key>") else { return nil }
        let rest = text[key.upperBound...].drop { $0.isWhitespace }
        guard rest.hasPrefix("<string>"), let end = rest.firstRange(of: "</string>") else { return nil }
        return Self.plain(rest[..<end.lowerBound].dropFirst("<string>".count))
    }

    private static let entities = ["lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'"]

    /// The text with its entities replaced; nil where one is unknown.
    private static func plain(_ written: Substring) -> String? {
        var (plain, rest) = ("", written)
        while let start = rest.firstIndex(of: "&") {
            guard let end = rest[start...].firstIndex(of: ";") else { return nil }
            let name = rest[rest.index(after: start)..<end]
            guard let meaning = entities[String(name)] ?? character(name) else { return nil }
            plain += rest[..<start] + meaning
            rest = rest[rest.index(after: end)...]
        }
        return plain + rest
    }

    /// `#233` and `#xE9`
    private static func character(_ name: Substring) -> String? {
        guard name.hasPrefix("#") else { return nil }
        let isHex = name.hasPrefix("#x")
        let number = UInt32(name.dropFirst(isHex ? 2 : 1), radix: isHex ? 16 : 10)
        return number.flatMap { Unicode.Scalar($0) }.map { String(Character($0)) }
    }
}
