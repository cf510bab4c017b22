import Glibc

/// Text of another encoding to UTF-8, piece by piece, by iconv(3). Its pointers stay in this file.
final class CharacterDecoder {
    private let descriptor: iconv_t
    /// The first bytes of a character that the last piece cut apart.
    private var rest: [UInt8] = []

    /// Nil for an encoding that nobody knows, and for one in which ASCII is written in other bytes: what names its own
    /// encoding in ASCII is not written in it. `name` may be Java's name of it.
    init?(of name: String) {
        let opened = Self.candidates(for: name).lazy.compactMap { iconv_open("UTF-8", $0) }
        guard let descriptor = opened.first(where: { Int(bitPattern: $0) != -1 }) else { return nil }
        self.descriptor = descriptor
        let ascii = (0x20..<0x7F).map { UInt8($0) } + [0x09, 0x0A, 0x0D]
        var text: [UInt8] = []
        guard ascii.withUnsafeBytes({ decode($0, into: &text) }), finish(into: &text), text == ascii else { return nil }
    }

    deinit { iconv_close(descriptor) }

    /// Whether an encoding is one of those that are read without any declaration.
    static func isUsual(_ name: String) -> Bool {
        ["WINDOWS-1252", "CP1252", "ISO8859-1", "ISO-8859-1", "LATIN1", "LATIN-1"].contains(plain(name))
    }

    /// Appends what the bytes say; false where they are no text of this encoding.
    func decode(_ bytes: UnsafeRawBufferPointer, into text: inout [UInt8]) -> Bool {
        var piece = rest + bytes
        var used = 0
        let isText = piece.withUnsafeMutableBytes { convert($0, used: &used, into: &text) }
        rest = Array(piece[used...])
        return isText
    }

    /// What is left at the end of the text.
    func finish(into text: inout [UInt8]) -> Bool {
        guard rest.isEmpty else { return false }
        var used = 0
        return convert(UnsafeMutableRawBufferPointer(start: nil, count: 0), used: &used, into: &text)
    }

    private func convert(_ bytes: UnsafeMutableRawBufferPointer, used: inout Int, into text: inout [UInt8]) -> Bool {
        var source = bytes.bindMemory(to: CChar.self).baseAddress
        var left = bytes.count
        var result = 0
        var reason: Int32 = 0
        repeat {
            let room = 4 * left + 64
            text += [UInt8](unsafeUninitializedCapacity: room) { space, count in
                var target = UnsafeMutableRawBufferPointer(space).bindMemory(to: CChar.self).baseAddress
                var free = room
                result = iconv(descriptor, &source, &left, &target, &free)
                reason = errno
                count = room - free
            }
        } while result == -1 && reason == E2BIG
        used = bytes.count - left
        // A character that is not whole yet waits for the next piece; none is longer than a few bytes.
        return result != -1 || reason == EINVAL && left < 16
    }

    /// Names that Java and others write, and glibc writes in another way or means another table by.
    private static let aliases = [
        "SHIFT-JIS": "CP932", "SJIS": "CP932", "WINDOWS-31J": "CP932", "MACROMAN": "MACINTOSH",
        "MACCENTRALEUROPE": "MAC-CENTRALEUROPE", "MACCYRILLIC": "MAC-CYRILLIC", "GB2312": "GBK",
    ]

    private static func plain(_ name: String) -> String {
        let name = name.uppercased().split(separator: "_", omittingEmptySubsequences: false).joined(separator: "-")
        return name.hasPrefix("X-") ? String(name.dropFirst(2)) : name
    }

    private static func candidates(for name: String) -> [String] {
        // An empty name is the encoding of the terminal for iconv, and a slash begins its own options.
        guard (1...40).contains(name.utf8.count), name.utf8.allSatisfy(isPlainCharacter) else { return [] }
        let plain = plain(name)
        let windows = plain.hasPrefix("WINDOWS-") ? ["CP" + plain.dropFirst("WINDOWS-".count)] : []
        return (aliases[plain].map { [$0] } ?? []) + [name, plain] + windows
    }

    private static func isPlainCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "-_.:+".utf8.contains(byte)
        }
    }
}
