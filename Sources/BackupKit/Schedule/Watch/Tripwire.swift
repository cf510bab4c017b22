/// How much of what a backup holds: what a loss that nobody intended would show in.
public struct LibraryCensus: Sendable, Equatable {
    public enum Measure: String, Sendable, CaseIterable {
        case publications, notes, events, records
        case noteBytes = "note-bytes"
        /// Fields that have a value; a bug that empties fields leaves the records standing.
        case filledFields = "filled-fields"
        case attachments
        case attachmentBytes = "attachment-bytes"
        case settings
        case tombstones

        /// As a sentence begins: "publications", "the text of the notes".
        var text: String {
            switch self {
            case .noteBytes: "the text of the notes"
            case .filledFields: "fields with a value"
            case .attachmentBytes: "the files of attachments"
            default: rawValue
            }
        }

        /// How that sentence goes on.
        func loss(_ old: Int, _ new: Int) -> String {
            let isOfBytes = self == .noteBytes || self == .attachmentBytes
            return isOfBytes ? "shrank from \(old) bytes to \(new)" : "fell from \(old) to \(new)"
        }
    }

    private var counts: [Measure: Int] = [:]
    /// How many records have a value in a field, by kind and field: "publications.abstract".
    public private(set) var fields: [String: Int] = [:]
    /// More names than this, and longer ones, are not told apart.
    private static let (mostFields, longestField) = (1000, 200)
    /// Of what is not in `fields` nobody knows whether it was counted.
    fileprivate var isFull: Bool { fields.count >= Self.mostFields }

    public init(_ counts: [Measure: Int] = [:], fields: [String: Int] = [:]) {
        self.counts = counts.filter { $0.value != 0 }
        self.fields = fields
    }

    public subscript(measure: Measure) -> Int { counts[measure] ?? 0 }

    private mutating func add(_ count: Int, to measure: Measure) {
        if count != 0 { counts[measure] = self[measure].addingReportingOverflow(count).partialValue }
    }

    /// Nothing that somebody could miss.
    public var isEmpty: Bool { Measure.allCases.allSatisfy { $0 == .tombstones || self[$0] == 0 } }

    /// What a restore that brings everything back has to be told.
    public struct Loss: Sendable {
        /// Restores leave settings out unless they are named.
        public let isOfSettings: Bool
        /// Restores bring nothing back that was deleted since, unless they are told to.
        public let isByDeletes: Bool
        /// The records are there, and what they say is gone: a restore overwrites nothing newer, unless it replaces all.
        public let isOfValues: Bool

        init(of before: LibraryCensus?, in now: LibraryCensus) {
            func isLess(_ measure: Measure) -> Bool { (before?[measure] ?? 0) > now[measure] }
            let isOfRecords = [.publications, .notes, .events, .records, .attachments].contains(where: isLess)
            isOfValues = !isOfRecords && (isLess(.filledFields) || isLess(.noteBytes))
            isOfSettings = isLess(.settings)
            isByDeletes = now[.tombstones] > (before?[.tombstones] ?? 0)
        }
    }

    // MARK: Counting

    /// Counts what a backup holds, by reading its records; `path` is a folder or an archive.
    public static func of(_ path: String, limits: ReadLimits = ReadLimits()) throws -> LibraryCensus {
        let layout = try OpenedLayout.open(path, limits: limits)
        guard layout.isLayout else {
            throw BackupError(.notFound, "is not a library of backup-tool or imbib", at: path)
        }
        var census = LibraryCensus()
        for entry in layout.entries {
            switch layout.role(of: entry.path) {
            case .attachment:
                census.add(1, to: .attachments)
                census.add(Int(clamping: entry.size), to: .attachmentBytes)
            case .settings:
                let bytes = try OpenedLayout.contents(of: entry.path, size: entry.size, layout.reader)
                census.add(try bytes.withUnsafeBytes(memberCount), to: .settings)
            case .records:
                // A record that is longer than the lines that somebody accepts from logs counts, too.
                var lines = LineReader(limit: max(limits.lineBytes, ReadLimits().lineBytes))
                try layout.reader.read(entry.path) { try lines.feed($0) { try census.add(line: $0.bytes) } }
                try lines.finish { try census.add(line: $0.bytes) }
            default: break
            }
        }
        return census
    }

    private static func memberCount(_ bytes: UnsafeRawBufferPointer) throws -> Int {
        var count = 0
        var scanner = JSONScanner(bytes)
        try scanner.forEachMember { _, _, _ in count += 1 }
        return count
    }

    private mutating func add(line: UnsafeRawBufferPointer?) throws {
        guard let line, line.count > 0 else { return }
        let record = try Record(parsing: line)
        let kind = Kind(recordType: record.type)
        let measure = Measure(rawValue: kind.rawValue) ?? .records
        if record.isDeleted {
            add(1, to: .tombstones)
            return count("\(Self.deleted)\(measure.rawValue)")
        }
        guard RecordType.isCounted(record.type) else { return }
        add(1, to: measure)
        var filled = 0
        var noteBytes = 0
        var text = record.fields
        try text.withUTF8 { utf8 in
            var scanner = JSONScanner(UnsafeRawBufferPointer(utf8))
            try scanner.forEachMember { key, kind, range in
                // "", [] and {} have two bytes.
                guard kind != .null, range.count > 2 || kind == .number || kind == .bool else { return }
                filled += 1
                if key.count <= Self.longestField {
                    count("\(measure.rawValue).\(String(decoding: utf8[key], as: UTF8.self))")
                }
                if kind == .string { noteBytes += range.count - 2 }
            }
        }
        add(filled, to: .filledFields)
        if kind == .notes { add(noteBytes, to: .noteBytes) }
    }

    /// Before the kind, in `fields`: those that were deleted.
    fileprivate static let deleted = "deleted."

    private mutating func count(_ name: String) {
        if !isFull || fields[name] != nil { fields[name, default: 0] += 1 }
    }

    // MARK: As JSON

    public var json: JSON {
        var members: [JSON.Member] = Measure.allCases.filter { self[$0] != 0 }.map {
            .init($0.rawValue, JSON(self[$0]))
        }
        let fields = fields.sorted { precedesBytewise($0.key, $1.key) }.map { JSON.Member($0.key, JSON($0.value)) }
        if !fields.isEmpty { members.append(.init("fields", .object(fields))) }
        return .object(members)
    }

    public init(_ json: JSON) {
        for measure in Measure.allCases {
            if let count = json[measure.rawValue]?.integer, count >= 0 { counts[measure] = Int(clamping: count) }
        }
        for field in json["fields"]?.members ?? [] {
            if let count = field.value.integer, count >= 0 { fields[field.key] = Int(clamping: count) }
        }
    }
}

/// Notices that a backup holds much less than the one before: the apps lost something, and the good old snapshots must
/// not be thinned out now.
public struct Tripwire: Sendable, Equatable {
    /// More than so many percent gone is suspicious…
    public var percent = 20
    /// …when it is at least so many.
    public var atLeast = 10
    /// Other percentages for single measures.
    public var percentOf: [LibraryCensus.Measure: Int] = [:]

    public init() {}

    /// What is suspicious about `now`, by measure. Without a good one before it, only emptiness is.
    public func compare(_ now: LibraryCensus, with before: LibraryCensus?) -> [Finding] {
        guard let before else {
            guard now.isEmpty else { return [] }
            return [suspect("the library", "holds nothing at all")]
        }
        var findings: [Finding] = []
        for measure in LibraryCensus.Measure.allCases where measure != .tombstones {
            let (old, new) = (before[measure], now[measure])
            let isGone = old > 0 && new == 0
            guard isGone || isSuspicious(old - new, of: old, measure) else { continue }
            findings.append(suspect(measure.text, measure.loss(old, new)))
        }
        // Where all of them fell, their number says it.
        if findings.isEmpty { findings += emptied(now, before) }
        let live = Self.sum { before[$0] }
        let (old, new) = (before[.tombstones], now[.tombstones])
        if isSuspicious(new - old, of: live, .tombstones) {
            findings.append(suspect("deleted records", "rose from \(old) to \(new), with \(live) alive before"))
        } else if isSuspicious(lostTombstones(now, before), of: old, .tombstones) {
            findings.append(
                suspect("deleted records", "fell from \(old) to \(new): what was deleted could come back"))
        }
        return findings
    }

    private static func sum(_ count: (LibraryCensus.Measure) -> Int) -> Int {
        [LibraryCensus.Measure.publications, .notes, .events, .records].reduce(0) { sum, measure in
            let (more, isTooMany) = sum.addingReportingOverflow(count(measure))
            return isTooMany ? .max : more
        }
    }

    /// Tombstones that are gone although their records did not come back, as an undo of a delete brings them.
    private func lostTombstones(_ now: LibraryCensus, _ before: LibraryCensus) -> Int {
        func back(_ measure: LibraryCensus.Measure) -> Int { max(0, now[measure] - before[measure]) }
        // Censuses of older versions do not tell of what kind the deleted records were.
        guard before.fields.keys.contains(where: { $0.hasPrefix(LibraryCensus.deleted) }) else {
            let lost = max(0, before[.tombstones] - now[.tombstones])
            return lost - min(lost, Self.sum(back))
        }
        return Self.sum { measure in
            let name = LibraryCensus.deleted + measure.rawValue
            let lost = max(0, (before.fields[name] ?? 0) - (now.fields[name] ?? 0))
            return lost - min(lost, back(measure))
        }
    }

    /// Fields that lost their values while their records stayed.
    private func emptied(_ now: LibraryCensus, _ before: LibraryCensus) -> [Finding] {
        before.fields.sorted { precedesBytewise($0.key, $1.key) }.compactMap { name, old in
            guard !name.hasPrefix(LibraryCensus.deleted), let new = now.fields[name] ?? (now.isFull ? nil : 0) else {
                return nil
            }
            // What went with its record is that measure's business.
            let measure = LibraryCensus.Measure(rawValue: String(name.prefix { $0 != "." })) ?? .records
            let tombstones = LibraryCensus.deleted + measure.rawValue
            let deleted = (now.fields[tombstones] ?? 0) - (before.fields[tombstones] ?? 0)
            let gone = max(0, deleted, before[measure].subtractingReportingOverflow(now[measure]).partialValue)
            guard old > new, isSuspicious(max(0, old - new - gone), of: old, .filledFields) else { return nil }
            return suspect("'\(name)'", "has a value in \(new) records, and had in \(old)")
        }
    }

    private func isSuspicious(_ lost: Int, of all: Int, _ measure: LibraryCensus.Measure) -> Bool {
        guard lost >= max(1, atLeast), all > 0 else { return false }
        return Double(lost) * 100 > Double(all) * Double(percentOf[measure] ?? percent)
    }

    private func suspect(_ what: String, _ message: String) -> Finding {
        Finding(.suspiciousLoss, .warning, what, message)
    }
}

/// Which part of a vault is read and checked tonight. It follows from the date alone, so nothing has to be remembered. Every
/// part has its turn once in `parts` days; where the next `parts` begin is drawn by lot, or runs every other night would
/// never come by half of them.
public struct CheckSubset: Sendable, Equatable {
    /// From 1 to `parts`.
    public let part: Int
    public let parts: Int

    public init(on day: CivilDate, parts: Int) {
        let (quotient, remainder) = day.daysSinceEpoch.quotientAndRemainder(dividingBy: Int64(max(1, parts)))
        self.parts = max(1, parts)
        let turn = remainder < 0 ? remainder + Int64(self.parts) : remainder
        let lot = Self.lot(remainder < 0 ? quotient - 1 : quotient) % UInt64(self.parts)
        part = Int((UInt64(turn) + lot) % UInt64(self.parts)) + 1
    }

    /// A number that looks drawn, the same on every machine. (Two rounds of multiplying and folding.)
    private static func lot(_ number: Int64) -> UInt64 {
        var lot = UInt64(bitPattern: number)
        for factor: UInt64 in [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93] {
            lot = lot &* factor
            lot ^= lot >> 32
        }
        return lot
    }

    /// `7/30`, as restic writes it.
    public var text: String { "\(part)/\(parts)" }
}
