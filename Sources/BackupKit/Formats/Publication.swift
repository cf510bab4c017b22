/// Publications as records. BibTeX fields keep their names in lower case; what is not a BibTeX field has a capital letter
/// in its name (`citeKey`, `entryType`, `linkedFiles`, `rawBibTeX`), so the two cannot collide.
public enum Publication {
    static let citeKey = "citeKey"
    static let entryType = "entryType"
    static let linkedFiles = "linkedFiles"
    /// The entry's text as it was written; `rawBase64` instead when its bytes are not UTF-8.
    static let raw = RawText.plain
    static let rawBase64 = RawText.base64
    private static let own: Set<String> = [citeKey, entryType, linkedFiles, raw, rawBase64]

    static func isBibTeXField(_ name: String) -> Bool { !own.contains(name) }

    /// Whether a field is the entry's own text, which all its other fields are made of.
    static func isText(_ name: String) -> Bool { RawText.holds(name) }

    static func isText(_ name: UnsafeRawBufferPointer) -> Bool {
        name.count == 9 && (name.elementsEqual(raw.utf8) || name.elementsEqual(rawBase64.utf8))
    }

    /// The record's fields for an entry, as JSON text; `value` tells what the field of that number says. The pen MUST be
    /// clear.
    static func write(
        _ block: BibBlock, links: [String] = [], with pen: inout JSONPen, value: (Int) -> String
    ) {
        let isUTF8 = BibText.isUTF8(block.raw)
        func text(_ bytes: UnsafeRawBufferPointer, _ pen: inout JSONPen) {
            if isUTF8 { pen.string(bytes) } else { pen.string(BibText.decode(bytes).text) }
        }
        pen.write("{")
        pen.member(citeKey) { text(block.keyBytes, &$0) }
        pen.member(entryType) { text(block.typeBytes, &$0) }
        var seen = NamesSeen(areUTF8: isUTF8)
        for (index, field) in block.fields.enumerated() {
            let name = block.nameBytes(of: field)
            guard name.count > 0, seen.insert(name, after: block.fields[..<index], of: block) else { continue }
            pen.beginMember()
            if !pen.lowercaseName(name) { pen.string(BibText.lowercased(name)) }
            pen.endName()
            let written = block.rawValue(of: field)
            if isUTF8, field.style == .braces || field.style == .quotes, written.count >= 2 {
                pen.string(UnsafeRawBufferPointer(rebasing: written[1..<written.count - 1]))
            } else if field.style == .bare, written.allSatisfy(BibByte.isDigit) {
                pen.string(written)
            } else {
                pen.string(value(index))
            }
            pen.endMember()
        }
        write(raw: block.raw, isUTF8: isUTF8, with: &pen)
        if !links.isEmpty { pen.member(linkedFiles) { $0.write(json: JSON.array(links.map { .string($0) }).compact) } }
        pen.write("}")
    }

    fileprivate static func write(raw bytes: UnsafeRawBufferPointer, isUTF8: Bool, with pen: inout JSONPen) {
        pen.member(isUTF8 ? raw : rawBase64) { pen in
            if isUTF8 { pen.string(bytes) } else { pen.string(BibBase64.encode(Array(bytes))) }
        }
    }

    /// The names of an entry's fields so far, whatever their case.
    private struct NamesSeen {
        /// So many are compared one by one, which is quickest for what people write.
        private static let few = 64

        /// Two spellings of one name in an entry that is not UTF-8 can be other bytes.
        let areUTF8: Bool
        private var bits: UInt64 = 0
        private var names: Set<[UInt8]> = []

        init(areUTF8: Bool) { self.areUTF8 = areUTF8 }

        /// Whether the name is none of those of `fields`, which come before it.
        mutating func insert(
            _ name: UnsafeRawBufferPointer, after fields: Slice<UnsafeBufferPointer<BibField>>, of block: BibBlock
        ) -> Bool {
            func lowercase(_ name: UnsafeRawBufferPointer) -> [UInt8] {
                areUTF8 ? name.map(BibText.lowercase) : Array(BibText.lowercased(name).utf8)
            }
            guard fields.count < Self.few, areUTF8 else {
                if names.isEmpty { names = Set(fields.map { lowercase(block.nameBytes(of: $0)) }) }
                return names.insert(lowercase(name)).inserted
            }
            let last = BibText.lowercase(name[name.count - 1])
            let bit: UInt64 =
                1 << ((UInt64(BibText.lowercase(name[0])) &+ UInt64(last) &* 7 &+ UInt64(name.count)) & 63)
            defer { bits |= bit }
            return bits & bit == 0 || !fields.contains { sameName(block.nameBytes(of: $0), name) }
        }
    }

    private static func sameName(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        left.count == right.count && zip(left, right).allSatisfy { BibText.lowercase($0) == BibText.lowercase($1) }
    }

    /// The entry's bytes for a `.bib` file: as it was written, or made from its fields when it never was.
    static func bytes(of fields: [Field]) throws -> [UInt8] {
        if let bytes = writtenBytes(of: fields) { return bytes }
        let values = fields.filter { isBibTeXField($0.name) }.compactMap { field in
            Fields.string(field.name, in: fields).map { (name: field.name, value: $0) }
        }
        return try BibWriter.entry(
            type: Fields.string(entryType, in: fields) ?? "misc", key: Fields.string(citeKey, in: fields) ?? "",
            fields: values)
    }

    /// The bytes as somebody wrote them; what stands between entries has no others.
    static func writtenBytes(of fields: [Field]) -> [UInt8]? {
        if let text = Fields.string(raw, in: fields) { return Array(text.utf8) }
        return Fields.string(rawBase64, in: fields).flatMap(BibBase64.decode)
    }

    /// After a merge: the raw text of the side that the merged fields agree with, or the local text with just the fields
    /// edited that the merge changed.
    static func derive(merged: [Field], local: [Field], other: [Field]) throws -> [Field] {
        let bibTeX = merged.filter { isSource($0.name) }
        if same(bibTeX, local), same(bibTeX, other) {
            // The two say the same in other words: the merge has chosen the newer text.
            return merged.contains { isText($0.name) } ? merged : replaceRaw(in: merged, by: local)
        }
        if same(bibTeX, local), !same(local.filter { isSource($0.name) }, other) {
            return replaceRaw(in: merged, by: local)
        }
        // An app that changed a field and not the text has left that to us.
        if same(bibTeX, other), text(of: other) != text(of: local) { return replaceRaw(in: merged, by: other) }
        var changes: [BibEditor.Change] = []
        // Where both texts are one, a macro has got another meaning: the entry names it as before.
        let macroFields = text(of: other) == text(of: local) ? fieldsWithMacros(try bytes(of: local)) : []
        for name in Set(bibTeX.map(\.name) + local.map(\.name)).sorted()
        where isSource(name) && !macroFields.contains(name) {
            let before = Fields.string(name, in: local)
            let after = Fields.string(name, in: merged)
            guard before != after else { continue }
            switch name {
            case citeKey: changes.append(.setKey(after ?? ""))
            case entryType: changes.append(.setType(after ?? "misc"))
            default: changes.append(after.map { .set(field: name, value: $0) } ?? .remove(field: name))
            }
        }
        if changes.isEmpty { return replaceRaw(in: merged, by: local) }
        let rest = merged.filter { !isText($0.name) }
        // A text that cannot be edited (it came damaged) is written afresh from the fields at the next export.
        guard let edited = try? BibEditor.apply(changes, to: bytes(of: local)) else { return rest }
        let (text, isUTF8) = BibText.decode(edited)
        return rest + [isUTF8 ? Field(raw, .string(text)) : Field(rawBase64, .string(BibBase64.encode(edited)))]
    }

    private static func fieldsWithMacros(_ entry: [UInt8]) -> Set<String> {
        var names: Set<String> = []
        entry.withUnsafeBytes { raw in
            BibParser.parse(raw) { block in
                for field in block.fields where field.style == .bare || field.style == .joined {
                    var pieces = BibValuePieces(block.rawValue(of: field))
                    while let piece = pieces.next() {
                        if piece.isMacro { names.insert(block.lowercaseName(of: field)) }
                    }
                }
            }
        }
        return names
    }

    private static func text(of side: [Field]) -> String? {
        side.first { isText($0.name) }?.value
    }

    /// What the entry's text is made of.
    private static func isSource(_ name: String) -> Bool {
        isBibTeXField(name) || name == citeKey || name == entryType
    }

    private static func same(_ bibTeX: [Field], _ side: [Field]) -> Bool {
        let theirs = side.filter { isSource($0.name) }
        return bibTeX.count == theirs.count && bibTeX.allSatisfy(theirs.contains)
    }

    private static func replaceRaw(in fields: [Field], by side: [Field]) -> [Field] {
        fields.filter { !isText($0.name) } + side.filter { isText($0.name) }
    }

    /// What an entry says, whatever it is called.
    static func withoutKey(_ fields: [Field]) -> [Field] {
        fields.filter { isBibTeXField($0.name) || $0.name == entryType }
    }

    /// The attachments that the entry's own fields name.
    static func links(in fields: [Field]) -> [BibFileLink] {
        let links = fields.flatMap { field -> [BibFileLink] in
            guard isBibTeXField(field.name), mayLink(field.name), let value = Fields.string(field.name, in: fields)
            else {
                return []
            }
            return BibFileLinks.links(field: field.name, value: value)
        }
        return links.isEmpty ? [] : links + repeatedLinks(in: fields)
    }

    /// Of a repeated field the record has the first; the entry as it was written has the others.
    private static func repeatedLinks(in fields: [Field]) -> [BibFileLink] {
        guard let bytes = try? bytes(of: fields) else { return [] }
        var links: [BibFileLink] = []
        bytes.withUnsafeBytes { raw in
            BibParser.parse(raw) { block in
                var names: Set<String> = []
                for field in block.fields {
                    let name = block.name(of: field).lowercased()
                    if names.insert(name).inserted || !mayLink(name) { continue }
                    links += BibFileLinks.links(field: name, value: block.value(of: field))
                }
            }
        }
        return links
    }

    private static func mayLink(_ name: String) -> Bool {
        name.hasPrefix("bdsk-file") || ["file", "pdf", "localfile", "local-url", "file-path"].contains(name)
    }
}

/// What stands between the entries of a `.bib` file, and in which order everything stood.
enum BibliographyPart {
    /// `kind` of the record that lists a file's keys and parts in their order.
    static let order = "order"
    /// How the items of that list begin: a part's local id follows, or an entry's cite key.
    static let item = "part:"
    static let keyItem = "key:"
    /// How the name of a file begins that we wrote: what it holds came from other files.
    static let exported = "exported "

    /// Whether a record is the order of a file.
    static func isOrder(_ record: Record) -> Bool {
        record.type == RecordType.bibliographyPart
            && (try? Fields.strings(named: ["kind"], of: record.fields).first) == order
    }

    /// The cite keys that an order lists.
    static func keys(in fields: [Field]) -> [String] {
        guard Fields.string("kind", in: fields) == order else { return [] }
        return Fields.strings("items", in: fields).filter { $0.hasPrefix(keyItem) }
            .map { String($0.dropFirst(keyItem.count)) }
    }

    /// What an order says without these cite keys; nil where the fields are no order, or list none of them.
    static func fields(_ text: String, withoutKeys keys: Set<String>) throws -> String? {
        var fields = try Fields.parse(text)
        guard Fields.string("kind", in: fields) == order, let place = fields.firstIndex(where: { $0.name == "items" })
        else { return nil }
        let items = Fields.strings("items", in: fields)
        let kept = self.items(items, withoutKeys: keys)
        guard kept.count < items.count else { return nil }
        fields[place] = Field("items", .array(kept.map { .string($0) }))
        return Fields.text(fields)
    }

    /// The items of an order without these cite keys.
    static func items(_ items: [String], withoutKeys keys: Set<String>) -> [String] {
        let gone = Set(keys.map { keyItem + $0 })
        return items.filter { !gone.contains($0) }
    }

    /// The name of the file that a part or an order is of.
    static func file(of fields: [Field]) -> String { fileName(Fields.string("file", in: fields) ?? "") }

    /// A name as it is now. Once each import of an export put `exported` before its name again.
    static func fileName(_ name: String) -> String {
        var rest = name[...]
        while rest.hasPrefix(exported + exported) { rest = rest.dropFirst(exported.count) }
        return String(rest)
    }

    /// Whether that is the name of an export, also where its file has lost our first line; `base` is how the file is called.
    static func isExport(_ name: String, at base: String) -> Bool {
        name.hasPrefix(exported) && !name.hasPrefix(base + "#")
    }

    /// What a part of a file is the only one of there: the macros that it defines, the settings of JabRef or the groups of
    /// BibDesk that it holds, the head that BibDesk writes. Nil for all that stands for itself.
    static func slot(of raw: [UInt8], kind: String) -> String? { raw.withUnsafeBytes { slot(of: $0, kind: kind) } }

    static func slot(of raw: UnsafeRawBufferPointer, kind: String) -> String? {
        switch kind {
        case BibBlock.Kind.string.rawValue:
            var names: [String] = []
            BibParser.parse(raw) { block in names += block.fields.map { block.name(of: $0).lowercased() } }
            return names.isEmpty ? nil : names.joined(separator: ",")
        case BibBlock.Kind.comment.rawValue:
            guard let open = raw.firstIndex(where: { $0 == BibByte.openBrace || $0 == BibByte.openParenthesis }) else {
                return nil
            }
            let start = raw[(open + 1)...].drop { BibByte.isWhite($0) }.prefix(200)
            return settingsName(BibText.decode(Array(start)).text)
        // It names the encoding and the time of the last save.
        case BibBlock.Kind.text.rawValue: return BibEncoding.isBibDeskHead(raw) ? "bibdesk head" : nil
        default: return nil
        }
    }

    /// "jabref-meta: grouping", "jabref-entrytype: software", "BibDesk Static Groups".
    private static func settingsName(_ text: String) -> String? {
        func name(_ prefix: String, upTo end: Character) -> String? {
            guard text.lowercased().hasPrefix(prefix), let end = text.dropFirst(prefix.count).firstIndex(of: end) else {
                return nil
            }
            let words = text[..<end].split { $0.isWhitespace }
            return words.joined(separator: " ")
        }
        return name("jabref-meta:", upTo: ":") ?? name("jabref-entrytype:", upTo: ":")
            ?? name("bibdesk ", upTo: "{")
    }

    /// What `library.bib` shows of a part: in UTF-8, and without the line that says which encoding its file had.
    static func shown(_ raw: [UInt8], isText: Bool) -> [UInt8] {
        let (text, isUTF8) = BibText.decode(raw)
        let bytes = isUTF8 ? raw : Array(text.utf8)
        guard isText, bytes.starts(with: encodingStart) else { return bytes }
        let rest = bytes.drop { !BibByte.isBreak($0) }.drop { BibByte.isWhite($0) }
        return Array(rest)
    }

    private static let encodingStart = Array("% Encoding:".utf8)

    static func write(kind: String, file: String, raw: UnsafeRawBufferPointer, with pen: inout JSONPen) {
        writeStart(kind, file, &pen)
        Publication.write(raw: raw, isUTF8: BibText.isUTF8(raw), with: &pen)
        pen.write("}")
    }

    static func write(order items: [String], file: String, with pen: inout JSONPen) {
        writeStart(order, file, &pen)
        pen.write(",\"items\":[")
        for (index, item) in items.enumerated() {
            if index > 0 { pen.write(",") }
            pen.string(item)
        }
        pen.write("]}")
    }

    private static func writeStart(_ kind: String, _ file: String, _ pen: inout JSONPen) {
        pen.write("{\"kind\":")
        pen.string(kind)
        pen.write(",\"file\":")
        pen.string(file)
    }
}
