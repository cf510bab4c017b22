/// What stood between the entries of all files, as `library.bib` shows it: in UTF-8, each file's in its order.
struct BibliographyParts {
    struct Part {
        let file: String
        let localID: String
        let fields: [Field]
        /// As it is written.
        let bytes: [UInt8]
        let isText: Bool
        let isString: Bool
        fileprivate let place: Int
    }

    /// All that is written. An entry that never ends would swallow what comes after it, so it is not; and neither is what a
    /// file says in another way by now (`BibliographyPart.slot`).
    private(set) var shown: [Part] = []
    /// What stood in each file, in its order, the files by their names.
    private(set) var orders: [[String]] = []
    /// The beginnings of what is not written for it is no BibTeX.
    private(set) var unreadable: [String] = []

    init(_ records: [Record]) throws {
        var listed: [String: Set<String>] = [:]
        var places: [String: Int] = [:]
        var found: [(file: String, localID: String, fields: [Field], kind: String)] = []
        var ordered: [String: (time: Timestamp, items: [String])] = [:]
        for record in records {
            let fields = try record.fieldsWithOneText()
            let file = BibliographyPart.file(of: fields)
            let kind = Fields.string("kind", in: fields) ?? ""
            guard kind == BibliographyPart.order else {
                found.append((file, record.localID, fields, kind))
                continue
            }
            if let other = ordered[file], other.time > record.modifiedAt { continue }
            ordered[file] = (record.modifiedAt, Fields.strings("items", in: fields))
        }
        for (file, order) in ordered {
            for (index, item) in order.items.enumerated() where item.hasPrefix(BibliographyPart.item) {
                places[item] = index
                listed[file, default: []].insert(item)
            }
        }
        orders = ordered.sorted { $0.key < $1.key }.map(\.value.items)
        var parts: [(part: Part, slot: String?)] = []
        for (file, localID, fields, kind) in found {
            let raw = Publication.writtenBytes(of: fields) ?? []
            if kind == BibBlock.Kind.unreadable.rawValue {
                unreadable.append(String(decoding: raw.prefix { $0 != 0x0A }.prefix(60), as: UTF8.self))
                continue
            }
            let bytes = BibliographyPart.shown(raw, isText: kind == BibBlock.Kind.text.rawValue)
            if bytes.isEmpty { continue }
            let part = Part(
                file: file, localID: localID, fields: fields, bytes: bytes, isText: kind == BibBlock.Kind.text.rawValue,
                isString: kind == BibBlock.Kind.string.rawValue,
                place: places[BibliographyPart.item + localID] ?? .max)
            parts.append((part, BibliographyPart.slot(of: raw, kind: kind).map { "\(file)\n\(kind)\n\($0)" }))
        }
        func isListed(_ part: Part) -> Bool {
            listed[part.file]?.contains(BibliographyPart.item + part.localID) == true
        }
        let current = Set(parts.compactMap { isListed($0.part) ? $0.slot : nil })
        shown = parts.filter { part, slot in isListed(part) || !(slot.map(current.contains) ?? false) }.map(\.part)
            .sorted { ($0.file, $0.place, $0.localID) < ($1.file, $1.place, $1.localID) }
    }
}

/// The order of the files: each entry and part where it stood.
extension BibliographyWriter {
    func writeAsInSources(to sink: TextSink) throws {
        var writer = macros.writer()
        var head = BibliographyHead()
        var parts = Dictionary(
            self.parts.shown.map { (BibliographyPart.item + $0.localID, $0) }, uniquingKeysWith: { first, _ in first })
        // The first of each key that came in last, where it is taken from.
        var entries = Dictionary(grouping: self.entries.reversed(), by: \.key)
        func write(_ part: BibliographyParts.Part) throws {
            guard part.isString else { return try head.append(part, to: sink) }
            for definition in writer.definitions(of: part) { try Self.append(definition, to: sink) }
            head.passEntry()
        }
        func write(_ entry: Entry) throws {
            for definition in writer.definitions(for: contested[entry.choice]) { try Self.append(definition, to: sink) }
            try copy(entry, isSaid: writer.isInForce(contested[entry.choice]), to: sink)
            head.passEntry()
        }
        for item in self.parts.orders.joined() {
            if let part = parts.removeValue(forKey: item) {
                try write(part)
            } else if item.hasPrefix(BibliographyPart.keyItem),
                let entry = entries[String(item.dropFirst(BibliographyPart.keyItem.count))]?.popLast()
            {
                try write(entry)
            }
        }
        for part in self.parts.shown where parts[BibliographyPart.item + part.localID] != nil { try write(part) }
        let left = Set(entries.values.joined().filter { !$0.text.isEmpty }.map(\.text.lowerBound))
        for entry in try sortedEntries() where left.contains(entry.text.lowerBound) { try write(entry) }
    }
}

/// What `--mode replace` leaves of an export's parts: the store has them already, so they do not come again.
extension BibliographyIntake {
    func keep(_ parts: [String]) throws {
        guard intake.overwrite else { return }
        for stored in try parts.flatMap({ try store.soundRecords(localID: $0) })
        where stored.record.type == RecordType.bibliographyPart {
            intake.touched.insert(stored.record.id)
        }
    }

    /// An export does not say which files its entries and parts stood in: the orders of these stay.
    func keepOrders(of items: Set<String>) throws {
        guard intake.overwrite else { return }
        try store.forEachLive(type: RecordType.bibliographyPart) { stored in
            let fields = try Fields.parse(stored.record.fields)
            guard Fields.string("kind", in: fields) == BibliographyPart.order,
                !items.isDisjoint(with: Fields.strings("items", in: fields))
            else { return }
            intake.touched.insert(stored.record.id)
        }
    }
}
