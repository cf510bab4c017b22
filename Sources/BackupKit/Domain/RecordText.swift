/// Some lines of `records.jsonl`.
struct RecordLines: Sendable {
    private(set) var bytes: [UInt8] = []
    /// Where each line lies, without its end, and the fields in it.
    private(set) var places: [(line: Range<Int>, fields: Range<Int>)] = []

    /// Whether there are enough of them to be worth handing over.
    var isFull: Bool { bytes.count >= 1 << 17 }

    /// Returns how long the line is.
    mutating func append(_ record: Record) -> Int {
        let start = bytes.count
        let fields = record.appendJSON(to: &bytes)
        let line = start..<bytes.count
        bytes.append(0x0A)
        places.append((line, fields))
        return line.count
    }
}

/// A record as one line of `records.jsonl`. The members stand in alphabetical order, so that the canonical form, which
/// the content digest is made of, is the same line with canonical fields.
extension Record {
    /// Appends the record's JSON object, without a line end, and returns where its fields lie.
    @discardableResult func appendJSON(to out: inout [UInt8]) -> Range<Int> {
        func member(_ name: String, _ text: String) {
            out += (out.last == UInt8(ascii: "{") ? "\"" : ",\"").utf8
            out += name.utf8
            out += "\":".utf8
            appendJSONString(text, to: &out)
        }
        func time(_ name: String, _ time: Timestamp) {
            out += (out.last == UInt8(ascii: "{") ? "\"" : ",\"").utf8
            out += name.utf8
            out += "\":\"".utf8
            withUnsafeTemporaryAllocation(byteCount: Timestamp.textLength, alignment: 1) {
                time.write(to: $0)
                out += $0
            }
            out.append(UInt8(ascii: "\""))
        }
        out.append(UInt8(ascii: "{"))
        if deletedAt == nil { time("createdAt", createdAt) }
        if let deletedAt { time("deletedAt", deletedAt) }
        if let deviceID { member("deviceId", deviceID) }
        if !fieldTimes.isEmpty {
            out += (out.last == UInt8(ascii: "{") ? "\"fieldTimes\":" : ",\"fieldTimes\":").utf8
            out.append(UInt8(ascii: "{"))
            for (name, time) in fieldTimes.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
                if out.last != UInt8(ascii: "{") { out.append(UInt8(ascii: ",")) }
                appendJSONString(name, to: &out)
                out.append(UInt8(ascii: ":"))
                appendJSONString(time.iso8601, to: &out)
            }
            out.append(UInt8(ascii: "}"))
        }
        out += ",\"fields\":".utf8
        let start = out.count
        out += fields.utf8
        let end = out.count
        member("localId", localID)
        if isLocalOnly { out += ",\"localOnly\":true".utf8 }
        time("modifiedAt", modifiedAt)
        member("recordName", id.name)
        member("recordType", type)
        out += ",\"schemaVersion\":\(schemaVersion)".utf8
        member("zone", id.zone)
        out.append(UInt8(ascii: "}"))
        return start..<end
    }

    /// Reads one line of `records.jsonl`; members in any order, unknown ones are refused (they would be lost).
    public init(parsing line: UnsafeRawBufferPointer) throws {
        var texts: [String: String] = [:]
        var fields: String?
        var fieldTimes: [String: Timestamp] = [:]
        var schemaVersion: Int?
        var localOnly = false
        var scanner = JSONScanner(line)
        try scanner.forEachMember { key, kind, range in
            let name = jsonUnescape(line, key)
            let value = UnsafeRawBufferPointer(rebasing: line[range])
            switch (name, kind) {
            case ("fields", .object): fields = String(decoding: value, as: UTF8.self)
            case ("fieldTimes", .object): fieldTimes = try Self.times(value)
            case ("schemaVersion", .number): schemaVersion = Int(String(decoding: value, as: UTF8.self))
            case ("localOnly", .bool): localOnly = value.first == UInt8(ascii: "t")
            case ("createdAt", .string), ("deletedAt", .string), ("deviceId", .string), ("localId", .string),
                ("modifiedAt", .string), ("recordName", .string), ("recordType", .string), ("zone", .string):
                guard texts.updateValue(jsonUnescape(value, 1..<value.count - 1), forKey: name) == nil else {
                    throw BackupError(.damaged, "holds '\(name)' twice")
                }
            default:
                let shown = printable(name)
                throw BackupError(.damaged, "holds a member '\(shown)' of a kind that this version does not know")
            }
        }
        try scanner.expectEnd()
        func text(_ name: String) throws -> String {
            guard let text = texts[name], !text.isEmpty else { throw BackupError(.damaged, "has no '\(name)'") }
            return text
        }
        func time(_ name: String) throws -> Timestamp? {
            guard let text = texts[name] else { return nil }
            guard let time = Timestamp(iso8601: text) else {
                throw BackupError(.damaged, "'\(name)' is no time: \(printable(text))")
            }
            return time
        }
        guard let modifiedAt = try time("modifiedAt") else { throw BackupError(.damaged, "has no 'modifiedAt'") }
        guard let schemaVersion else { throw BackupError(.damaged, "has no 'schemaVersion'") }
        guard let fields else { throw BackupError(.damaged, "has no 'fields'") }
        let deletedAt = try time("deletedAt")
        self.init(
            id: RecordID(zone: try text("zone"), name: try text("recordName")), type: try text("recordType"),
            localID: try text("localId"), fields: fields, fieldTimes: fieldTimes,
            createdAt: try time("createdAt") ?? deletedAt ?? modifiedAt, modifiedAt: modifiedAt,
            deviceID: texts["deviceId"], schemaVersion: schemaVersion, isLocalOnly: localOnly, deletedAt: deletedAt)
    }

    private static func times(_ object: UnsafeRawBufferPointer) throws -> [String: Timestamp] {
        var times: [String: Timestamp] = [:]
        for field in try Fields.parse(object) {
            guard let text = try JSON(parsing: field.value).string, let time = Timestamp(iso8601: text) else {
                throw BackupError(.damaged, "the field time of '\(printable(field.name))' is no time")
            }
            times[field.name] = time
        }
        return times
    }
}
