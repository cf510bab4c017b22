/// Parses one entry while its bytes go by, as far as its format is known.
struct FormatParser {
    private let role: Layout.Role
    private let path: String
    private var lines: LineReader?
    private var bibliography: BibReader?
    private var document: [UInt8] = []
    private let lineLimit: Int
    private var isTooLarge = false
    private var malformedCount = 0
    private(set) var counts = Counts()
    private(set) var digest = ContentDigest()
    private(set) var findings: [Finding] = []
    /// The records of the lines so far, by their hashes.
    private var records: Set<Int> = []

    init(role: Layout.Role, path: String, lineLimit: Int) {
        self.role = role
        self.path = path
        self.lineLimit = lineLimit
        lines = LineReader(limit: lineLimit)
        if role == .bibliography { bibliography = BibReader() }
        if role == .records { counts.hasRecords = true }
    }

    mutating func feed(_ chunk: UnsafeRawBufferPointer) {
        switch role {
        case .bibliography:
            // Taken out while it works, so that its buffer is not copied.
            var reader = bibliography.take()
            reader?.feed(chunk) { block($0) }
            bibliography = reader
        case .records, .events, .damaged:
            var reader = lines.take()
            reader?.feed(chunk) { line($0) }
            lines = reader
        case .notes, .settings:
            isTooLarge = isTooLarge || document.count + chunk.count > lineLimit
            if isTooLarge { document = [] } else { document += chunk }
        default: break
        }
    }

    mutating func finish() {
        var blocks = bibliography.take()
        blocks?.finish { block($0) }
        var reader = lines.take()
        reader?.finish { line($0) }
        guard role == .notes || role == .settings else { return }
        if isTooLarge { return malformed("is larger than any file of its kind should be") }
        do { try checkDocument() } catch let error as BackupError { malformed(error.message) } catch {
            malformed("\(error)")
        }
    }

    /// Looks at every byte and builds no document, however the document is nested.
    private mutating func checkDocument() throws {
        let isNotes = role == .notes
        let count = try document.withUnsafeBytes { document in
            let bytes = document.withoutByteOrderMark
            var count = 0
            var scanner = JSONScanner(bytes)
            if isNotes {
                try scanner.forEachElement { _, _ in count += 1 }
            } else {
                try scanner.forEachMember { key, _, value in
                    count += 1
                    let text = String(decoding: UnsafeRawBufferPointer(rebasing: bytes[value]), as: UTF8.self)
                    try digest.addSetting(jsonUnescape(bytes, key), text)
                }
            }
            try scanner.expectEnd()
            return count
        }
        if isNotes { counts.notes = count } else { (counts.settings, counts.hasSettings) = (count, true) }
    }

    private mutating func malformed(_ message: String, line: Int? = nil) {
        let place = line.map { "\(path):\($0)" } ?? path
        malformedCount += 1
        guard malformedCount <= Finding.toldOneByOne else { return }
        findings.append(Finding(.malformed, .damage, place, message))
    }

    private mutating func block(_ block: BibBlock) {
        if block.kind == .entry { counts.entries += 1 }
        // What was imported with problems is kept as it was, problems included: that is no damage of the backup.
        for problem in block.problems where problem.code != .encoding {
            findings.append(Finding(.keptAsWritten, .note, "\(path):\(problem.line)", problem.message))
        }
    }

    private mutating func line(_ line: LineReader.Line) {
        guard let bytes = line.bytes else { return malformed("the line is too long", line: line.number) }
        guard bytes.count > 0 else { return }
        do {
            if role == .events {
                _ = try Fields.parse(bytes)
                counts.events += 1
                return
            }
            if role == .damaged {
                return digest.addDamaged(try DamagedRow(line: String(decoding: bytes, as: UTF8.self)).line)
            }
            let record = try Record(parsing: bytes)
            _ = try Fields.parse(record.fields)
            try record.refuseRemains()
            try digest.add(record)
            if !records.insert(record.id.hashValue).inserted {
                malformed("\(record.id) is there twice", line: line.number)
            }
            if record.isDeleted {
                counts.tombstones += 1
            } else if RecordType.isCounted(record.type) {
                counts.records[Kind(recordType: record.type), default: 0] += 1
            }
        } catch let error as BackupError {
            malformed(error.message, line: line.number)
        } catch {
            malformed("\(error)", line: line.number)
        }
    }
}
