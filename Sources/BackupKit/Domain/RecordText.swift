/// Some lines of `records.jsonl`.
struct RecordLines: Sendable {
    /// Whose a line is, where it lies, without its end, and the fields in it.
    typealias Place = (id: RecordID, line: Range<Int>, fields: Range<Int>)

    private(set) var bytes = Self.room()
    private(set) var places: [Place] = []

    /// So much is worth handing over.
    fileprivate static let size = 1 << 17

    /// Room for that, and a line that reaches beyond.
    fileprivate static func room() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size + 1 << 14)
        return bytes
    }

    var isFull: Bool { bytes.count >= Self.size }

    /// Returns how long the line is. What `pen` holds is lost.
    mutating func append(_ record: Record, _ pen: inout JSONPen) -> Int {
        pen.clear()
        let fields = record.write(with: &pen)
        let (start, length) = (bytes.count, pen.written.count)
        pen.write(UInt8(ascii: "\n"))
        bytes += pen.written
        places.append((record.id, start..<start + length, start + fields.lowerBound..<start + fields.upperBound))
        return length
    }
}

/// Makes lines of records and hands them on when there are enough.
struct RecordLineWriter: ~Copyable {
    private var lines = RecordLines()
    private var pen = JSONPen()

    /// Returns how long the line is.
    mutating func write(_ record: Record, _ take: (RecordLines) throws -> Void) throws -> Int {
        let length = lines.append(record, &pen)
        if lines.isFull { try finish(take) }
        return length
    }

    mutating func finish(_ take: (RecordLines) throws -> Void) throws {
        try take(lines)
        lines = RecordLines()
    }
}

/// Lines that come in any order and leave in that of their records' identities.
struct RecordLineSorter {
    /// What is sorted: small, for whole identities would be copied and counted at every step.
    private struct Key {
        let zone: UInt32
        let batch: UInt32
        let line: UInt32
        /// The name's first eight bytes.
        let beginning: UInt64
    }

    private(set) var batches: [RecordLines] = []
    private var zones: [String: UInt32] = [:]
    private var keys: [Key] = []

    mutating func add(_ lines: RecordLines) {
        for (line, place) in lines.places.enumerated() {
            let zone = zones[place.id.zone] ?? UInt32(zones.count)
            if zone == zones.count { zones[place.id.zone] = zone }
            var name = place.id.name
            let beginning = name.withUTF8 {
                $0.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } << UInt64(8 * max(0, 8 - $0.count))
            }
            keys.append(Key(zone: zone, batch: UInt32(batches.count), line: UInt32(line), beginning: beginning))
        }
        batches.append(lines)
    }

    /// Hands the lines out, some at a time, each with its end.
    func forEachText(_ body: ([UInt8]) throws -> Void) rethrows {
        var ranks = [UInt32](repeating: 0, count: zones.count)
        let inOrder = zones.sorted { precedesBytewise($0.key, $1.key) }
        for (rank, zone) in inOrder.enumerated() { ranks[Int(zone.value)] = UInt32(rank) }
        let sorted = keys.sorted { left, right in
            if left.zone != right.zone { return ranks[Int(left.zone)] < ranks[Int(right.zone)] }
            if left.beginning != right.beginning { return left.beginning < right.beginning }
            return precedesBytewise(place(left).id.name, place(right).id.name)
        }
        var text = RecordLines.room()
        for key in sorted {
            let line = place(key).line
            text += batches[Int(key.batch)].bytes[line.lowerBound...line.upperBound]
            guard text.count >= RecordLines.size else { continue }
            try body(text)
            text = RecordLines.room()
        }
        try body(text)
    }

    private func place(_ key: Key) -> RecordLines.Place { batches[Int(key.batch)].places[Int(key.line)] }
}

/// A record as one line of `records.jsonl`. The members stand in alphabetical order, so that the canonical form, which
/// the content digest is made of, is the same line with canonical fields.
extension Record {
    /// The record's JSON object, without a line end.
    var jsonText: [UInt8] {
        var pen = JSONPen()
        _ = write(with: &pen)
        return Array(pen.written)
    }

    /// Writes the record's JSON object, without a line end, and returns where its fields lie.
    func write(with pen: inout JSONPen) -> Range<Int> {
        if let deletedAt {
            pen.write("{\"deletedAt\":")
            pen.time(deletedAt)
        } else {
            pen.write("{\"createdAt\":")
            pen.time(createdAt)
        }
        if let deviceID {
            pen.write(",\"deviceId\":")
            pen.string(deviceID)
        }
        if !fieldTimes.isEmpty { writeFieldTimes(with: &pen) }
        pen.write(",\"fields\":")
        let start = pen.written.count
        pen.write(json: fields)
        let end = pen.written.count
        pen.write(",\"localId\":")
        pen.string(localID)
        if isLocalOnly { pen.write(",\"localOnly\":true") }
        pen.write(",\"modifiedAt\":")
        pen.time(modifiedAt)
        pen.write(",\"recordName\":")
        pen.string(id.name)
        pen.write(",\"recordType\":")
        pen.string(type)
        pen.write(",\"schemaVersion\":")
        pen.write(json: String(schemaVersion))
        pen.write(",\"zone\":")
        pen.string(id.zone)
        pen.write(UInt8(ascii: "}"))
        return start..<end
    }

    private func writeFieldTimes(with pen: inout JSONPen) {
        pen.write(",\"fieldTimes\":")
        var separator = UInt8(ascii: "{")
        for (name, time) in fieldTimes.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
            pen.write(separator)
            separator = UInt8(ascii: ",")
            pen.string(name)
            pen.write(UInt8(ascii: ":"))
            pen.time(time)
        }
        pen.write(UInt8(ascii: "}"))
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
