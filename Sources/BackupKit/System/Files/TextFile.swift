/// Text files as editors write them: UTF-8, or UTF-16 with a byte order mark.
extension FileHandle {
    /// Opens a text. One in UTF-16 with a mark is read as UTF-8, from a nameless copy. Throws `.damaged` where it is not
    /// valid UTF-16; what is in no such encoding is read byte for byte.
    static func openText(_ path: String) throws -> FileHandle {
        let file = try openForReading(path)
        guard var decoder = try UTF16Decoder(markOf: file) else { return file }
        let copy = try FileHandle.nameless(in: SpoolFile.folder(), toldAs: path)
        do {
            try file.forEachChunk { chunk in
                var text: [UInt8] = []
                try decoder.decode(chunk, into: &text)
                try copy.append(text)
            }
            try decoder.finish()
        } catch let error as BackupError where error.code == .damaged {
            throw BackupError(.damaged, error.message, at: path)
        }
        return copy
    }

    /// A copy of this file in UTF-8, which has no name; nil where its bytes are no text of that encoding.
    func copy(decodedBy decoder: CharacterDecoder) throws -> FileHandle? {
        struct OtherEncoding: Error {}
        let copy = try FileHandle.nameless(in: SpoolFile.folder(), toldAs: path)
        var text: [UInt8] = []
        do {
            try forEachChunk { chunk in
                text.removeAll(keepingCapacity: true)
                guard decoder.decode(chunk, into: &text) else { throw OtherEncoding() }
                try copy.append(text)
            }
            text.removeAll(keepingCapacity: true)
            guard decoder.finish(into: &text) else { return nil }
            try copy.append(text)
            return copy
        } catch is OtherEncoding {
            return nil
        }
    }

    private func append(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try write($0) }
    }

    /// Why a text cannot be read; nil when it can.
    static func refusal(ofText path: String) throws -> String? {
        do {
            _ = try openText(path)
            return nil
        } catch let error as BackupError where error.code == .damaged { return error.message }
    }

    /// Whether a small text has nothing but white space in it.
    static func isBlank(_ path: String) throws -> Bool {
        let text = try openText(path)
        guard try text.status().size <= 4096 else { return false }
        let bytes = try text.head(4096)
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        return bytes[start...].allSatisfy { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    }

    /// The first bytes of the file, at most `count`.
    func head(_ count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: count) { space, used in
            used = try read(into: UnsafeMutableRawBufferPointer(space), at: 0)
        }
    }
}

/// UTF-16 to UTF-8, piece by piece. The byte order mark goes.
struct UTF16Decoder {
    private let isBigEndian: Bool
    private var oddByte: UInt8?
    private var highSurrogate: UInt16?
    private var offset = 0
    private var isAtStart = true

    /// Nil for a file without the mark.
    init?(markOf file: FileHandle) throws {
        let mark = try file.head(2)
        guard mark == [0xFF, 0xFE] || mark == [0xFE, 0xFF] else { return nil }
        isBigEndian = mark[0] == 0xFE
    }

    mutating func decode(_ bytes: UnsafeRawBufferPointer, into text: inout [UInt8]) throws {
        for byte in bytes {
            guard let first = oddByte else {
                oddByte = byte
                continue
            }
            oddByte = nil
            let unit = isBigEndian ? UInt16(first) << 8 | UInt16(byte) : UInt16(byte) << 8 | UInt16(first)
            try take(unit, into: &text)
            offset += 2
        }
    }

    func finish() throws {
        if oddByte != nil || highSurrogate != nil { throw damage() }
    }

    private mutating func take(_ unit: UInt16, into text: inout [UInt8]) throws {
        defer { isAtStart = false }
        if isAtStart { return }
        var scalar = UInt32(unit)
        if let high = highSurrogate {
            guard UTF16.isTrailSurrogate(unit) else { throw damage() }
            scalar = 0x10000 + (UInt32(high) - 0xD800) << 10 + (UInt32(unit) - 0xDC00)
            highSurrogate = nil
        } else if UTF16.isLeadSurrogate(unit) {
            highSurrogate = unit
            return
        }
        // No text holds a NUL; UTF-32 does, in every character.
        guard unit != 0, let character = Unicode.Scalar(scalar) else { throw damage() }
        text += Unicode.UTF8.encode(character).map(Array.init) ?? []
    }

    private func damage() -> BackupError {
        BackupError(.damaged, "is not valid UTF-16 (byte \(offset)); save it as UTF-8")
    }
}
