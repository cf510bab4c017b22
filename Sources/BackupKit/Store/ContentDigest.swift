/// What a store or a layout holds, as one number (`docs/formats.md`, "Content digest"): the SHA-256 of the sorted list
/// of its items' SHA-256 values, one line of hexadecimal digits each. An item is a canonical line of text, so the order of
/// arrival, change numbers and machines do not matter, and `sort` and `sha256sum` can check it.
public struct ContentDigest {
    private(set) var items: [SHA256Digest] = []
    private var line: [UInt8] = []
    private let hasher = SHA256Hasher()

    public init() {}

    public mutating func add(_ record: Record) throws {
        var line = RecordLines()
        var pen = JSONPen()
        _ = line.append(record, &pen)
        try add(line)
    }

    /// The canonical form of a record is its line with canonical fields.
    mutating func add(_ lines: RecordLines) throws {
        try lines.bytes.withUnsafeBytes { bytes in
            for (_, whole, fields) in lines.places {
                line.removeAll(keepingCapacity: true)
                line += "record ".utf8
                line += UnsafeRawBufferPointer(rebasing: bytes[whole.lowerBound..<fields.lowerBound])
                try CanonicalJSON.append(UnsafeRawBufferPointer(rebasing: bytes[fields]), to: &line)
                line += UnsafeRawBufferPointer(rebasing: bytes[fields.upperBound..<whole.upperBound])
                addLine()
            }
        }
    }

    /// Takes in what another digest was made of.
    mutating func add(_ others: [SHA256Digest]) { items += others }

    /// `asset <sha256> <size> <path as JSON>`, with ` local` at the end of one that is kept from the cloud.
    public mutating func add(_ asset: Asset) {
        line.removeAll(keepingCapacity: true)
        line += "asset \(asset.digest.hex) \(asset.size) ".utf8
        appendJSONString(asset.path, to: &line)
        if asset.isLocalOnly { line += " local".utf8 }
        addLine()
    }

    /// `setting <key as JSON> <canonical value>`
    public mutating func addSetting(_ key: String, _ value: String) throws {
        line.removeAll(keepingCapacity: true)
        line += "setting ".utf8
        appendJSONString(key, to: &line)
        line.append(UInt8(ascii: " "))
        line += try Fields.canonical(value)
        addLine()
    }

    /// `damaged <line of damaged.jsonl>`
    mutating func addDamaged(_ row: String) {
        line.removeAll(keepingCapacity: true)
        line += "damaged \(row)".utf8
        addLine()
    }

    private mutating func addLine() {
        line.withUnsafeBytes { hasher.update($0) }
        items.append(hasher.finish())
    }

    public func finish() -> SHA256Digest {
        let total = SHA256Hasher()
        var text: [UInt8] = []
        for item in items.sorted() {
            item.appendHex(to: &text)
            text.append(0x0A)
            if text.count > 1 << 16 {
                text.withUnsafeBytes { total.update($0) }
                text.removeAll(keepingCapacity: true)
            }
        }
        text.withUnsafeBytes { total.update($0) }
        return total.finish()
    }
}

/// A content digest that is made on another core while its owner goes on.
final class BackgroundContentDigest {
    /// Written by the lane, read when it has finished.
    private final class Result: @unchecked Sendable {
        var digest = ContentDigest()
    }

    private let result = Result()
    private let lane: Lane<RecordLines>

    init() {
        let result = result
        lane = Lane(ahead: 4) { try result.digest.add($0) }
    }

    func add(_ lines: RecordLines) throws { try lane.add(lines) }

    /// The digest of the records, to which the rest may be added.
    func finish() throws -> ContentDigest {
        try lane.finish()
        return result.digest
    }
}

extension Store {
    /// The content digest of the whole store, or of some kinds of it. Must run inside `read` to be of one moment.
    public func contentDigest(kinds: Set<Kind> = Set(Kind.allCases)) throws -> SHA256Digest {
        let background = BackgroundContentDigest()
        var lines = RecordLineWriter()
        let damaged = try DamagedRows(self, kinds)
        var tally = RowTally()
        try forEachStored(order: .change, tally: &tally, damaged: { damaged.add($0) }) { stored in
            try Interrupt.check()
            guard kinds.contains(stored.record.kind) else { return }
            if !stored.isAsWritten { damage.noteChanged("\(stored.record.id)") }
            _ = try lines.write(stored.record, background.add)
        }
        damage.noteGone(try goneRecords(besides: tally).count, from: path)
        for row in try changedSmallRows() {
            guard let changed = DamagedRow(changed: row), kinds.contains(changed.kind) else { continue }
            if row.isGone { damage.note(changed) } else { damage.noteChanged(changed.subject) }
        }
        try lines.finish(background.add)
        var digest = try background.finish()
        if kinds.contains(.attachments) { try forEachAsset(damaged: { damaged.add($0) }) { digest.add($0) } }
        if kinds.contains(.settings) {
            for setting in try settings(damaged: { damaged.add($0) }) {
                try digest.addSetting(setting.name, setting.value)
            }
        }
        for row in damaged.lines { digest.addDamaged(row) }
        return digest.finish()
    }
}
