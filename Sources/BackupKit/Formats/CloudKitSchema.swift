/// Reads CloudKit's own schema language, the `.ckdb` files of `cktool export-schema`, and checks what only they say.
extension DataSchema {
    /// Whether a text begins as such a file does.
    static func looksLikeCloudKit(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var tokens = CloudKitTokens(bytes)
        return (try? tokens.next())?.text.uppercased() == "DEFINE"
    }

    init(cloudKit bytes: UnsafeRawBufferPointer, _ findings: inout [Finding]) throws {
        var reader = try CloudKitReader(bytes)
        try reader.read()
        (version, form, entities) = (0, .cloudKit, reader.entities)
        findings += reader.findings
    }
}

/// A word, a name in quotes or a sign, and its line.
private struct CloudKitToken {
    var text: String
    var line: Int
    var isQuoted = false
}

private struct CloudKitTokens {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    private(set) var line = 1

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    private func sees(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { bytes[position...].starts(with: $0) }
    }

    private mutating func skip(to end: StaticString) {
        while position < bytes.count, !sees(end) {
            if bytes[position] == UInt8(ascii: "\n") { line += 1 }
            position += 1
        }
    }

    private mutating func skipBlanks() throws {
        while position < bytes.count {
            if bytes[position] == UInt8(ascii: "\n") { line += 1 }
            if bytes[position] <= 0x20 {
                position += 1
            } else if sees("//") || sees("--") {
                skip(to: "\n")
            } else if sees("/*") {
                let start = line
                skip(to: "*/")
                guard position < bytes.count else {
                    throw BackupError(.damaged, "line \(start): the comment has no end")
                }
                position += 2
            } else {
                return
            }
        }
    }

    mutating func next() throws -> CloudKitToken? {
        try skipBlanks()
        guard position < bytes.count else { return nil }
        let start = position
        if bytes[position] == UInt8(ascii: "\"") {
            position += 1
            while position < bytes.count, bytes[position] != UInt8(ascii: "\""), bytes[position] >= 0x20 {
                position += 1
            }
            guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else {
                throw BackupError(.damaged, "line \(line): the name in quotes has no end")
            }
            position += 1
            return CloudKitToken(text: text(start + 1, position - 1), line: line, isQuoted: true)
        }
        let signs = Array("(),;<>".utf8)
        position += 1
        if !signs.contains(bytes[start]) {
            while position < bytes.count, bytes[position] > 0x20, bytes[position] != UInt8(ascii: "\""),
                !signs.contains(bytes[position])
            {
                position += 1
            }
        }
        return CloudKitToken(text: text(start, position), line: line)
    }

    private func text(_ start: Int, _ end: Int) -> String { String(decoding: bytes[start..<end], as: UTF8.self) }
}

private struct CloudKitReader {
    private var tokens: CloudKitTokens
    private var token: CloudKitToken?
    private(set) var entities: [DataSchema.Entity] = []
    private(set) var findings: [Finding] = []

    private static let types: Set<String> = [
        "ASSET", "BYTES", "DOUBLE", "INT64", "LOCATION", "NUMBER", "REFERENCE", "STRING", "TIMESTAMP",
    ]
    private static let encryptable: Set<String> = ["BYTES", "STRING", "DOUBLE", "INT64", "LOCATION", "TIMESTAMP"]
    private static let indexes: Set<String> = ["QUERYABLE", "SORTABLE", "SEARCHABLE"]

    init(_ bytes: UnsafeRawBufferPointer) throws {
        tokens = CloudKitTokens(bytes)
        token = try tokens.next()
    }

    private mutating func advance() throws -> CloudKitToken {
        guard let found = token else { throw problem("a name or a type") }
        token = try tokens.next()
        return found
    }

    private func sees(_ word: String) -> Bool { token?.isQuoted == false && token?.text.uppercased() == word }

    private mutating func takes(_ word: String) throws -> Bool {
        guard sees(word) else { return false }
        token = try tokens.next()
        return true
    }

    private mutating func expect(_ words: String...) throws {
        for word in words where try !takes(word) { throw problem("'\(word)'") }
    }

    private func problem(_ wanted: String) -> BackupError {
        let found = token.map { "'\(printable($0.text))'" } ?? "the end"
        return BackupError(
            .damaged,
            "line \(token?.line ?? tokens.line): is not CloudKit's schema language: expected \(wanted), found \(found)")
    }

    private mutating func note(
        _ subject: String, _ message: String, _ remedy: String? = nil, _ severity: Finding.Severity = .error
    ) {
        findings.append(Finding(.schemaCloudKit, severity, subject, message, remedy: remedy))
    }

    mutating func read() throws {
        try expect("DEFINE", "SCHEMA")
        while token != nil {
            if try takes("CREATE") {
                try expect("ROLE")
                _ = try advance()
            } else {
                try expect("RECORD", "TYPE")
                try readType()
            }
            try expect(";")
        }
        var seen: Set<String> = []
        for entity in entities where !seen.insert(entity.name.lowercased()).inserted {
            note(entity.name, "is defined twice (names that differ only in case are the same)")
        }
    }

    private mutating func readType() throws {
        let name = try advance()
        checkName(name, name.text)
        try expect("(")
        var attributes: [DataSchema.Attribute] = []
        var seen: Set<String> = []
        while !sees(")") {
            if sees("GRANT") {
                while token != nil, !sees("TO") { _ = try advance() }
                try expect("TO")
                _ = try advance()
            } else {
                let field = try advance()
                let subject = "\(name.text).\(field.text)"
                if !seen.insert(field.text.lowercased()).inserted { note(subject, "is defined twice") }
                let type = try readFieldType(subject)
                // Every record type has these.
                let isSystem = field.text.hasPrefix("___")
                if !isSystem { checkName(field, subject) }
                if !isSystem {
                    attributes.append(
                        DataSchema.Attribute(
                            name: field.text, type: type, isOptional: true, defaultValue: nil, isUnique: false,
                            renamedFrom: nil))
                }
            }
            if try !takes(","), !sees(")") { throw problem("',' or ')'") }
        }
        try expect(")")
        entities.append(
            DataSchema.Entity(
                name: name.text, attributes: attributes, relationships: [], unique: [], renamedFrom: nil))
    }

    /// The type as it is compared with another version's, and the indexes behind it.
    private mutating func readFieldType(_ subject: String) throws -> String {
        let isList = try takes("LIST")
        if isList { try expect("<") }
        let isEncrypted = try takes("ENCRYPTED")
        let type = try advance().text.uppercased()
        if !Self.types.contains(type) {
            let hint = didYouMean(type, among: Self.types.sorted())
            note(subject, "is of type '\(printable(type))', which CloudKit does not have", hint)
        }
        var name = type
        if type == "NUMBER" {
            if try takes("PREFERRED") {
                try expect("AS")
                name = try advance().text.uppercased()
            } else {
                note(subject, "is a NUMBER, whose kind CloudKit guesses", "write INT64 or DOUBLE", .warning)
            }
        }
        if isEncrypted, !Self.encryptable.contains(type) {
            note(subject, "is of type \(printable(type)), which cannot be ENCRYPTED", "take ENCRYPTED away")
        }
        if isList { try expect(">") }
        while let index = token?.text.uppercased(), token?.isQuoted == false, Self.indexes.contains(index) {
            _ = try advance()
            if isEncrypted {
                note(
                    subject, "is ENCRYPTED and \(index); CloudKit cannot search what it cannot read",
                    "take \(index) away")
            } else if type == "ASSET" {
                note(subject, "is an ASSET and \(index); CloudKit has no index of assets", "take \(index) away")
            } else if index == "SEARCHABLE", type != "STRING" {
                note(subject, "is SEARCHABLE and no STRING", "take SEARCHABLE away")
            } else if index == "SORTABLE", isList {
                note(subject, "is a LIST and SORTABLE; lists have no order among each other", "take SORTABLE away")
            }
        }
        name = isEncrypted ? "ENCRYPTED \(name)" : name
        return isList ? "LIST<\(name)>" : name
    }

    private mutating func checkName(_ name: CloudKitToken, _ subject: String) {
        let bytes = Array(name.text.utf8)
        let isPlain =
            bytes.allSatisfy { BibByte.isLetter($0) || BibByte.isDigit($0) || $0 == UInt8(ascii: "_") }
            && bytes.first.map { BibByte.isLetter($0) } == true
        if !isPlain {
            let place = subject.isEmpty ? "\"\"" : subject
            note(place, "is not a name that CloudKit takes", "use a-z, A-Z, 0-9 and _, a letter first")
        }
    }
}
