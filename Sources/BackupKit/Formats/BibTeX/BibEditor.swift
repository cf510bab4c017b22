/// Changes single fields of an entry and leaves every other byte as it is.
public enum BibEditor {
    public enum Change: Sendable, Equatable {
        /// Changes the first field of that name, in any case; adds one at the end if there is none.
        case set(field: String, value: String)
        /// Removes every field of that name.
        case remove(field: String)
        case setKey(String)
        case setType(String)
    }

    /// `macros` are those in force where the entry stands: a field that already says `value` stays as written.
    public static func apply(
        _ changes: [Change], to entry: [UInt8], macros: BibMacros = .standard
    ) throws(BackupError) -> [UInt8] {
        guard var layout = BibEntryLayout(entry) else {
            throw BackupError(.failed, "these bytes are not one readable BibTeX entry")
        }
        for change in changes {
            let before = layout
            guard let after = BibEntryLayout(try bytes(of: change, in: before, macros)) else {
                throw refusal(change, before)
            }
            guard did(change, from: before, to: after, macros) else { throw refusal(change, before) }
            layout = after
        }
        return layout.bytes
    }

    private static func bytes(
        of change: Change, in entry: BibEntryLayout, _ macros: BibMacros
    ) throws(BackupError) -> [UInt8] {
        switch change {
        case .setType(let type):
            return entry.replacing(Int(entry.head.typeStart), Int(entry.head.typeEnd), with: Array(type.utf8))
        case .setKey(let key):
            let hadNone = entry.key.isEmpty && entry.head.keyItemEnd == entry.head.keyEnd && !entry.fields.isEmpty
            let written = encode(key, for: entry) + (hadNone ? Array(", ".utf8) : [])
            return entry.replacing(Int(entry.head.keyStart), Int(entry.head.keyEnd), with: written)
        case .remove(let name):
            var entry = entry
            while let field = entry.fields.last(where: { entry.isNamed($0, name) }) {
                guard let next = BibEntryLayout(removing(field, from: entry)), next.fields.count < entry.fields.count
                else {
                    throw refusal(change, entry)
                }
                entry = next
            }
            return entry.bytes
        case .set(let name, let value):
            guard let field = entry.fields.first(where: { entry.isNamed($0, name) }) else {
                return try adding(name, value, to: entry)
            }
            if entry.value(of: field, macros: macros) == value, field.style != .empty { return entry.bytes }
            let written = try BibWriter.value(encode(value, for: entry), of: name, style: field.style)
            return entry.replacing(Int(field.valueStart), Int(field.valueEnd), with: written)
        }
    }

    private static func adding(_ name: String, _ value: String, to entry: BibEntryLayout) throws(BackupError) -> [UInt8]
    {
        let written = try BibWriter.value(encode(value, for: entry), of: name, style: entry.valueStyle)
        var field = entry.nameAndEquals(encode(name, for: entry)) + written
        let itemEnd = Int(entry.fields.last?.itemEnd ?? entry.head.keyItemEnd)
        let bareEnd = Int(entry.fields.last?.valueEnd ?? entry.head.keyEnd)
        let hasComma = itemEnd > bareEnd
        var end = max(Int(entry.head.close), itemEnd)
        while end > itemEnd, BibByte.isWhite(entry.bytes[end - 1]) { end -= 1 }
        var separator = entry.separator
        // A comment reaches to the end of its line: the new field must not become part of it.
        let followsComment = entry.slice(itemEnd, end).contains(BibByte.percent)
        if followsComment, separator.first.map({ BibByte.isBreak($0) }) != true {
            separator = entry.lineBreak + separator
        }
        if entry.fields.isEmpty {
            if end == Int(entry.head.close) { field += entry.lineBreak }
        } else if hasComma {
            field.append(BibByte.comma)
        }
        let needsComma = !hasComma && (!entry.fields.isEmpty || !entry.key.isEmpty)
        let comma = needsComma ? [BibByte.comma] : []
        return entry.slice(0, itemEnd) + comma + entry.slice(itemEnd, end) + separator + field
            + entry.slice(end, entry.bytes.count)
    }

    /// With its line, where it has its lines to itself.
    private static func removing(_ field: BibField, from entry: BibEntryLayout) -> [UInt8] {
        var (start, end) = (Int(field.nameStart), Int(field.itemEnd))
        while start > 0, BibByte.isBlank(entry.bytes[start - 1]) { start -= 1 }
        let startsLine = start > 0 && BibByte.isBreak(entry.bytes[start - 1])
        if startsLine {
            var lineEnd = end
            while lineEnd < entry.bytes.count, BibByte.isBlank(entry.bytes[lineEnd]) { lineEnd += 1 }
            let rest = entry.slice(lineEnd, lineEnd + 2)
            if let first = rest.first, BibByte.isBreak(first) {
                end = lineEnd + (rest.elementsEqual([BibByte.carriageReturn, BibByte.lineFeed]) ? 2 : 1)
            }
        }
        return entry.replacing(start, end, with: [])
    }

    /// Old files stay in the encoding they have.
    private static func encode(_ text: String, for entry: BibEntryLayout) -> [UInt8] {
        BibText.encode(text, asUTF8: BibText.decode(entry.bytes).wasUTF8)
    }

    /// Reads back what was written: the change is there, and nothing else is different.
    private static func did(
        _ change: Change, from before: BibEntryLayout, to after: BibEntryLayout, _ macros: BibMacros
    ) -> Bool {
        var (type, key) = (before.type, before.key)
        var expected = before.fields.map {
            (before.text($0.nameStart, $0.nameEnd), before.value(of: $0, macros: macros))
        }
        switch change {
        case .setType(let new): type = new
        case .setKey(let new): key = new
        case .remove(let name):
            let kept = before.fields.filter { !before.isNamed($0, name) }
            expected = kept.map { (before.text($0.nameStart, $0.nameEnd), before.value(of: $0, macros: macros)) }
        case .set(let name, let value):
            if let index = before.fields.firstIndex(where: { before.isNamed($0, name) }) {
                expected[index].1 = value
            } else {
                expected.append((name, value))
            }
        }
        let found = after.fields.map { (after.text($0.nameStart, $0.nameEnd), after.value(of: $0, macros: macros)) }
        return after.type == type && after.key == key && found.count == expected.count
            && zip(found, expected).allSatisfy { $0 == $1 }
    }

    private static func refusal(_ change: Change, _ entry: BibEntryLayout) -> BackupError {
        let subject = "entry '\(printable(entry.key))'"
        let what =
            switch change {
            case .setType(let type): "'\(printable(type))' cannot be the type of an entry"
            case .setKey(let key): "'\(printable(key))' cannot be a cite key"
            case .remove(let name): "field '\(printable(name))' cannot be removed without touching others"
            case .set(let name, _): "field '\(printable(name))' cannot be written so that it reads back the same"
            }
        return BackupError(.refused, what, at: subject)
    }
}
