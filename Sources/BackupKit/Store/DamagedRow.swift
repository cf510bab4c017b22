import Synchronization

/// A row of the store that cannot be read as what it should be, with the values that it holds.
public struct DamagedRow: Error, Sendable, Hashable {
    public enum Table: String, Sendable { case record, asset, setting }

    public let table: Table
    /// What a person calls it: `zone/name`, a path, a key; as much of it as can be read.
    public let subject: String
    public let reason: String
    /// What `--only` counts it as.
    public let kind: Kind
    /// Its line in `damaged.jsonl`: every value as it is.
    public let line: String

    init(_ table: Table, _ subject: String, _ reason: String, kind: Kind, columns: [String], of row: Statement) {
        (self.table, self.subject, self.reason, self.kind) = (table, subject, reason, kind)
        let values = columns.enumerated().compactMap { index, name in
            name == "change" ? nil : JSON.Member(name, Self.value(Int32(index), of: row))
        }
        line = JSON.object([.init("row", .object(values)), .init("table", .string(table.rawValue))]).compact
    }

    /// A record that an index names and whose row cannot be found.
    init(lost change: Int64) {
        (table, subject, kind) = (.record, "record \(change)", .records)
        reason = "cannot be found, though an index of the store names it"
        line = JSON.object([.init("row", ["change": JSON(change)]), .init("table", .string("record"))]).compact
    }

    /// A row of attachments or settings that differs from what was noted of it; nil where it is of another table.
    init?(changed row: ChangedRow) {
        guard let table = Table(rawValue: row.table) else { return nil }
        (self.table, subject, reason) = (table, row.key, row.reason)
        kind = table == .asset ? .attachments : .settings
        let key = table == .asset ? "path" : "key"
        line = JSON.object([.init("row", [key: .string(row.key)]), .init("table", .string(row.table))]).compact
    }

    /// A line of `damaged.jsonl`. Throws when it is none.
    public init(line text: String) throws {
        let json = try JSON(parsing: text)
        guard let name = json["table"]?.string, let table = Table(rawValue: name), let row = json["row"],
            row.members != nil
        else { throw BackupError(.damaged, "is not a line of damaged rows") }
        self.table = table
        line = text
        reason = "is damaged since an earlier backup or repair"
        switch table {
        case .record:
            kind = Kind(recordType: row["type"]?.string ?? "")
            subject =
                "\(Self.shown(row["zone"]))/\(Self.shown(row["name"]?.string.map { .string($0) } ?? row["local_id"]))"
        case .asset: (kind, subject) = (.attachments, Self.shown(row["path"]))
        case .setting: (kind, subject) = (.settings, Self.shown(row["key"]))
        }
    }

    private static func shown(_ value: JSON?) -> String { value?.string ?? value?.compact ?? "?" }

    /// A value without loss: what JSON has no word for is an object that names its type.
    private static func value(_ column: Int32, of row: Statement) -> JSON {
        switch row.type(column) {
        case .null: .null
        case .integer: JSON(row.integer(column))
        case .text: row.validText(column).map { .string($0) } ?? ["text": .string(hexText(row.bytes(column)))]
        case .blob: ["blob": .string(hexText(row.bytes(column)))]
        case .real: ["real": .string(String(row.real(column).bitPattern, radix: 16))]
        }
    }

    /// The type and the local id of a record, as far as they can be read.
    var work: (type: String, localID: String) {
        let row = (try? JSON(parsing: line))?["row"]
        return (row?["type"]?.string ?? "", row?["local_id"]?.string ?? "")
    }

    /// The identity in a sync, as far as it can be read.
    var id: RecordID {
        if table == .asset { return RecordID(zone: Store.assetZone, name: subject) }
        guard let slash = subject.utf8.firstIndex(of: FilePath.slash) else { return RecordID(zone: subject, name: "") }
        let name = subject[subject.utf8.index(after: slash)...]
        return RecordID(zone: String(subject[..<slash]), name: String(name))
    }

    /// What to type next.
    public static let remedy =
        "'backup-tool store repair --from BACKUP' brings it back from a backup; 'backup-tool store check' lists all damage"

    public var finding: Finding {
        Finding(.recordDamaged, .damage, subject, "\(reason); it was left out", remedy: Self.remedy)
    }

    public var problem: BackupError { BackupError(.damaged, reason, at: subject, remedy: Self.remedy) }
}

private func hexText(_ bytes: UnsafeRawBufferPointer) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}

/// The damaged rows that somebody met while reading a store: they were left out, and have to be named.
public final class DamageLog: Sendable {
    private struct State {
        var rows: [String: DamagedRow] = [:]
        var told: Set<String> = []
        var gone: Finding?
        /// By what they are called.
        var changed: [String: Finding] = [:]
    }

    private let state = Mutex(State())

    public init() {}

    func note(_ row: DamagedRow) { state.withLock { $0.rows[row.line] = row } }

    /// It is sound again.
    func forget(_ row: DamagedRow) { state.withLock { _ = $0.rows.removeValue(forKey: row.line) } }

    /// A row that was read as it is now, and that the store has not written so.
    func noteChanged(_ subject: String) {
        let finding = Finding(.recordChanged, .warning, subject, DamagedRow.changed, remedy: Self.howMended)
        state.withLock { $0.changed[subject] = finding }
    }

    private static let howMended = "'backup-tool store check' says how it is mended"

    /// Records that are gone from the store at `path`.
    func noteGone(_ count: Int, from path: String) {
        guard count > 0 else { return }
        let gone = Finding(
            .recordDamaged, .damage, path, GoneRecord.message(count),
            remedy: "'backup-tool store repair --from BACKUP' brings back what a backup has")
        state.withLock { $0.gone = gone }
    }

    public var isEmpty: Bool { state.withLock { $0.rows.isEmpty && $0.gone == nil && $0.changed.isEmpty } }

    /// A finding for each row that nobody was told of yet, by their names.
    public func tell() -> [Finding] {
        state.withLock { state in
            let news = state.rows.values.filter { !state.told.contains($0.line) }
            state.told.formUnion(news.map(\.line))
            let gone = state.gone.flatMap { state.told.insert($0.sentence).inserted ? $0 : nil }
            let unreadable = Set(state.rows.values.map(\.subject))
            let changed = state.changed.values.filter {
                !unreadable.contains($0.subject) && state.told.insert($0.sentence).inserted
            }
            return news.sorted { ($0.subject, $0.line) < ($1.subject, $1.line) }.map(\.finding)
                + changed.sorted { precedesBytewise($0.subject, $1.subject) } + [gone].compactMap(\.self)
        }
    }
}
