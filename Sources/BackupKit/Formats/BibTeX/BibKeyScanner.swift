extension BibBodyScanner {
    /// From after the opening delimiter to where the fields begin. A key may hold spaces, be missing, or lack its comma.
    mutating func readKey() -> Outcome? {
        skipGapBeforeKey()
        let keyStart = at
        var depth = 0
        while at < bytes.end {
            let byte = bytes[at]
            switch byte {
            case BibByte.comma where depth == 0:
                at += 1
                setKey(keyStart, at - 1, itemEnd: at)
                return nil
            case BibByte.openBrace: depth += 1
            case BibByte.closeBrace where depth > 0: depth -= 1
            case BibByte.closeBrace, closer:
                guard depth == 0 else { break }
                setKey(keyStart, at, itemEnd: nil)
                return nil
            case BibByte.at where startsBlockHere(): return .cut(at)
            case BibByte.percent where at > keyStart && BibByte.isWhite(bytes[at - 1]) && depth == 0:
                return keyBeforeComment(keyStart)
            case BibByte.equals where depth == 0:
                if endKeyAtEquals(keyStart) { return nil }
            default: break
            }
            at += 1
        }
        return .ranOut
    }

    /// White space and comments. BibTeX knows no comment here: a `%` begins a key where that gives BibTeX a sound entry.
    private mutating func skipGapBeforeKey() {
        while at < bytes.end {
            if BibByte.isWhite(bytes[at]) {
                at += 1
            } else if bytes[at] == BibByte.percent, !beginsKey() {
                at = bytes.lineEnd(from: at)
            } else {
                return
            }
        }
    }

    /// Whether BibTeX reads a key here: all up to white space, a comma or the end of the entry, which follow it.
    private func beginsKey() -> Bool {
        var index = at
        while index < bytes.end, !BibByte.isWhite(bytes[index]), !endsKey(bytes[index]) { index += 1 }
        while index < bytes.end, BibByte.isWhite(bytes[index]) { index += 1 }
        return index < bytes.end && endsKey(bytes[index])
    }

    private func endsKey(_ byte: UInt8) -> Bool {
        byte == BibByte.comma || byte == BibByte.closeBrace || byte == closer
    }

    private mutating func keyBeforeComment(_ keyStart: Int) -> Outcome? {
        let keyEnd = at
        skipGap()
        guard at < bytes.end else { return .ranOut }
        let hasComma = bytes[at] == BibByte.comma
        if hasComma { at += 1 }
        setKey(keyStart, keyEnd, itemEnd: hasComma ? at : nil)
        return nil
    }

    /// At an `=`: either there is no key, or its comma is missing, or (false) the `=` is part of the key.
    private mutating func endKeyAtEquals(_ keyStart: Int) -> Bool {
        let equals = at
        var nameEnd = equals
        while nameEnd > keyStart, BibByte.isWhite(bytes[nameEnd - 1]) { nameEnd -= 1 }
        var nameStart = nameEnd
        while nameStart > keyStart, BibByte.isName(bytes[nameStart - 1]) { nameStart -= 1 }
        guard nameStart < nameEnd else { return false }
        if nameStart > keyStart {
            guard BibByte.isWhite(bytes[nameStart - 1]) else { return false }
            setKey(keyStart, nameStart, itemEnd: nil)
            at = start + Int(head.keyEnd)
            note(.missingComma, "expected ',' after the key '\(name(keyStart, at))'")
        } else {
            guard equals + 1 < bytes.end else { return false }
            let next = bytes[equals + 1]
            let isField =
                nameEnd < equals || BibByte.isWhite(next) || BibByte.isDigit(next) || next == BibByte.openBrace
                || next == BibByte.quote
            guard isField else { return false }
            setKey(keyStart, keyStart, itemEnd: nil)
        }
        at = nameStart
        return true
    }

    private mutating func setKey(_ from: Int, _ to: Int, itemEnd: Int?) {
        var keyEnd = to
        while keyEnd > from, BibByte.isWhite(bytes[keyEnd - 1]) { keyEnd -= 1 }
        head.keyStart = relative(from)
        head.keyEnd = relative(keyEnd)
        head.keyItemEnd = itemEnd.map { relative($0) } ?? head.keyEnd
    }
}
