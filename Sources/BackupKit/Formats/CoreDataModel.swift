/// Reads the `contents` of a `.xcdatamodel`: the schema as Xcode keeps it, in XML.
extension DataSchema {
    public static func looksLikeCoreData(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.first { $0 > 0x20 && $0 < 0x80 } == UInt8(ascii: "<")
    }

    public init(coreData bytes: UnsafeRawBufferPointer, _ findings: inout [Finding]) throws {
        var reader = CoreDataReader()
        try XMLTags.forEach(in: bytes) { tag in try reader.take(tag) }
        guard reader.isModel else { throw BackupError(.damaged, "is XML, but no Core Data model") }
        version = reader.version
        form = .coreData
        entities = reader.entities
        findings += reader.findings
    }
}

extension DataSchema {
    /// The model that a `.xccurrentversion` of an `.xcdatamodeld` names: "Library 2.xcdatamodel".
    static func currentModel(of propertyList: [UInt8]) -> String? {
        let text = String(decoding: propertyList, as: UTF8.self)
        let parts = text.split(
            separator: "<key>_XCCurrentVersionName</key>", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2,
            let start = parts[1].split(separator: "<string>", maxSplits: 1, omittingEmptySubsequences: false)
                .dropFirst().first,
            let name = start.split(separator: "</string>", maxSplits: 1, omittingEmptySubsequences: false).first
        else { return nil }
        return XMLTags.unescape(String(name))
    }
}

/// Puts entities together from the tags of a model.
private struct CoreDataReader {
    private(set) var isModel = false
    private(set) var version = 0
    private(set) var entities: [DataSchema.Entity] = []
    private(set) var findings: [Finding] = []
    private var name: String?
    private var renamedFrom: String?
    private var attributes: [DataSchema.Attribute] = []
    private var relationships: [DataSchema.Relationship] = []
    private var unique: [[String]] = []

    mutating func take(_ tag: XMLTag) throws {
        switch (tag.name, tag.opens) {
        case ("model", true):
            isModel = true
            version = tag["userDefinedModelVersionIdentifier"].flatMap { Int($0) } ?? 0
        case ("entity", true):
            name = tag["name"] ?? ""
            (renamedFrom, attributes, relationships, unique) = (tag["elementID"], [], [], [])
            if let parent = tag["parentEntity"] {
                findings.append(
                    Finding(
                        .schemaInvalid, .note, name ?? "", "inherits from \(parent), whose fields are checked there"))
            }
            if tag.closes { finishEntity() }
        case ("entity", false): finishEntity()
        // What is not stored does not sync.
        case ("attribute", true) where tag["transient"] != "YES": attributes.append(attribute(tag))
        case ("relationship", true) where tag["transient"] != "YES": relationships.append(relationship(tag))
        case ("uniquenessConstraint", true): unique.append([])
        case ("constraint", true):
            if let value = tag["value"], !unique.isEmpty { unique[unique.count - 1].append(value) }
        default: break
        }
    }

    private mutating func finishEntity() {
        guard let name else { return }
        entities.append(
            DataSchema.Entity(
                name: name, attributes: attributes, relationships: relationships, unique: unique.filter { !$0.isEmpty },
                renamedFrom: renamedFrom))
        self.name = nil
    }

    private func attribute(_ tag: XMLTag) -> DataSchema.Attribute {
        let written = tag["attributeType"] ?? "Undefined"
        let type =
            switch written {
            case "String": "string"
            case "Integer 16", "Integer 32", "Integer 64": "integer"
            case "Double", "Float": "double"
            case "Decimal": "decimal"
            case "Boolean": "boolean"
            case "Date": "date"
            case "UUID": "uuid"
            case "URI": "uri"
            case "Binary", "Transformable": "binary"
            // CloudKit has neither of the two that are left, "Undefined" and "Object ID".
            default: written
            }
        return DataSchema.Attribute(
            name: tag["name"] ?? "", type: type, isOptional: tag["optional"] == "YES",
            defaultValue: standard(tag, type), isUnique: false, renamedFrom: tag["elementID"])
    }

    private func standard(_ tag: XMLTag, _ type: String) -> JSON? {
        if let seconds = tag["defaultDateTimeInterval"].flatMap({ Double($0) }) {
            return Timestamp(appleReference: seconds).map { .string($0.iso8601) }
        }
        guard let text = tag["defaultValueString"] else { return .none }
        switch type {
        case "boolean": return .bool(text == "YES")
        case "integer", "double", "decimal": return Double(text) == nil ? .string(text) : .number(text)
        default: return .string(text)
        }
    }

    private func relationship(_ tag: XMLTag) -> DataSchema.Relationship {
        let rule = (tag["deletionRule"] ?? "Nullify").lowercased()
        return DataSchema.Relationship(
            name: tag["name"] ?? "", target: tag["destinationEntity"] ?? "", isToMany: tag["toMany"] == "YES",
            isOptional: tag["optional"] == "YES", isOrdered: tag["ordered"] == "YES", inverse: tag["inverseName"],
            deleteRule: rule == "no action" ? "none" : rule, renamedFrom: tag["elementID"])
    }
}

/// One tag of an XML document.
struct XMLTag {
    var name = ""
    var attributes: [(name: String, value: String)] = []
    var opens = true
    /// `<x/>` opens and closes.
    var closes = false

    subscript(name: String) -> String? { attributes.first { $0.name == name }?.value }
}

/// The tags of an XML document that has no text worth reading, which is what models are. Not a parser for XML at large:
/// there are no entities but the five that XML has itself and numbers, and a document type is refused.
struct XMLTags {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    static func forEach(in bytes: UnsafeRawBufferPointer, _ body: (XMLTag) throws -> Void) throws {
        var tags = XMLTags(bytes: bytes)
        var open: [String] = []
        var hasRoot = false
        while let tag = try tags.next() {
            if !tag.opens {
                guard open.popLast() == tag.name else { throw tags.problem("</\(tag.name)> closes nothing") }
            } else {
                if open.isEmpty, hasRoot { throw tags.problem("a second document begins") }
                hasRoot = true
                if !tag.closes { open.append(tag.name) }
            }
            try body(tag)
        }
        if let name = open.last { throw tags.problem("</\(name)> is missing") }
    }

    private init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    private func problem(_ what: String) -> BackupError {
        BackupError(.damaged, "is not XML: \(what) at byte \(position)")
    }

    private func sees(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { bytes[position...].starts(with: $0) }
    }

    /// Moves behind the next `end`.
    private mutating func skip(past end: StaticString) throws {
        while position < bytes.count {
            if sees(end) { return position += end.utf8CodeUnitCount }
            position += 1
        }
        throw problem("the text ends too early")
    }

    private mutating func next() throws -> XMLTag? {
        while position < bytes.count {
            guard bytes[position] == UInt8(ascii: "<") else {
                position += 1
                continue
            }
            if sees("<!--") {
                try skip(past: "-->")
            } else if sees("<?") {
                try skip(past: "?>")
            } else if sees("<!") {
                throw problem("a document type or a section that no model has")
            } else {
                return try tag()
            }
        }
        return nil
    }

    private mutating func tag() throws -> XMLTag {
        var tag = XMLTag()
        position += 1
        if sees("/") {
            (tag.opens, tag.closes) = (false, true)
            position += 1
        }
        tag.name = word()
        while true {
            skipSpace()
            if sees(">") {
                position += 1
                return tag
            }
            if sees("/>") {
                tag.closes = true
                position += 2
                return tag
            }
            let name = word()
            skipSpace()
            guard !name.isEmpty, sees("=") else { throw problem("an attribute without its value") }
            position += 1
            skipSpace()
            guard sees("\"") || sees("'") else { throw problem("a value without quotes") }
            let quote = bytes[position]
            let start = position + 1
            guard let end = bytes[start...].firstIndex(of: quote) else { throw problem("a value that does not end") }
            position = end + 1
            tag.attributes.append((name, Self.unescape(String(decoding: bytes[start..<end], as: UTF8.self))))
        }
    }

    private mutating func skipSpace() {
        while position < bytes.count, bytes[position] <= 0x20 { position += 1 }
    }

    private mutating func word() -> String {
        let start = position
        let ends = Array("=/>\"'<".utf8)
        while position < bytes.count, bytes[position] > 0x20, !ends.contains(bytes[position]) { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    static func unescape(_ text: String) -> String {
        guard text.contains("&") else { return text }
        var result = ""
        var rest = text[...]
        while let start = rest.firstIndex(of: "&"), let end = rest[start...].firstIndex(of: ";") {
            result += rest[..<start]
            let name = rest[rest.index(after: start)..<end]
            let known: [Substring: String] = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]
            if let character = known[name] ?? scalar(name) {
                result += character
            } else {
                result += rest[start...end]
            }
            rest = rest[rest.index(after: end)...]
        }
        return result + rest
    }

    private static func scalar(_ name: Substring) -> String? {
        guard name.hasPrefix("#") else { return nil }
        let digits = name.dropFirst()
        let number = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return number.flatMap(Unicode.Scalar.init).map { String(Character($0)) }
    }
}
