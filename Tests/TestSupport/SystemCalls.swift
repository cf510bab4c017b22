import BackupKit

/// A system call as strace writes it with `-f -y -xx`.
public struct SystemCall: Sendable {
    public let name: String
    /// The arguments with `""` for each text and `<>` for each path of a descriptor.
    public let arguments: [String]
    public let texts: [[UInt8]]
    /// The paths of the descriptors among the arguments, in their order.
    public let places: [String]
    public let result: Int

    /// The calls that change what lies on a disk, and those that make it durable.
    public static let thatWrite =
        "openat,openat2,creat,write,pwrite64,writev,pwritev,pwritev2,lseek,copy_file_range,sendfile,ftruncate,fallocate,"
        + "fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat"

    /// strace's options for `parse`.
    public static let options = ["-f", "-qq", "-y", "-xx", "-s", "100000000", "-e", "trace=\(thatWrite)"]

    /// Reads a trace. Calls that another thread interrupted are put together; those that failed are left out.
    public static func parse(_ trace: [UInt8]) -> [SystemCall] {
        var calls: [SystemCall] = []
        var unfinished: [[UInt8]: [UInt8]] = [:]
        let cut = Array(" <unfinished ...>".utf8)
        let resumed = Array(" resumed>".utf8)
        for line in trace.split(separator: 0x0A) {
            guard let space = line.firstIndex(of: 0x20) else { continue }
            let process = Array(line[..<space])
            var text = line[space...].drop { $0 == 0x20 }
            if text.first == UInt8(ascii: "<"), let end = text.firstRange(of: resumed)?.upperBound {
                text = ((unfinished.removeValue(forKey: process) ?? []) + text[end...])[...]
            } else if text.suffix(cut.count).elementsEqual(cut) {
                unfinished[process] = Array(text.dropLast(cut.count))
                continue
            }
            if let call = SystemCall(text), call.result >= 0 { calls.append(call) }
        }
        return calls
    }

    private init?(_ line: ArraySlice<UInt8>) {
        guard let open = line.firstIndex(of: UInt8(ascii: "(")), line.first != UInt8(ascii: "-") else { return nil }
        name = String(decoding: line[..<open], as: UTF8.self)
        var skeleton: [UInt8] = []
        var (texts, places): ([[UInt8]], [String]) = ([], [])
        var rest = line[line.index(after: open)...]
        while let byte = rest.popFirst() {
            skeleton.append(byte)
            guard byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "<") else { continue }
            let close = UInt8(ascii: byte == UInt8(ascii: "<") ? ">" : "\"")
            guard let end = rest.firstIndex(of: close) else { return nil }
            let text = Self.decoded(rest[..<end])
            if close == UInt8(ascii: ">") {
                places.append(String(decoding: text, as: UTF8.self))
            } else {
                texts.append(text)
            }
            skeleton.append(close)
            rest = rest[rest.index(after: end)...]
        }
        guard let (end, value) = Self.result(skeleton) else { return nil }
        arguments = String(decoding: skeleton[..<end], as: UTF8.self).split(separator: ", ").map(String.init)
        result = value
        (self.texts, self.places) = (texts, places)
    }

    /// Where the arguments end, and the number after `) =`, before which there may be more spaces.
    private static func result(_ line: [UInt8]) -> (end: Int, value: Int)? {
        for index in line.indices.reversed() where line[index] == UInt8(ascii: ")") {
            let rest = line[(index + 1)...].drop { $0 == 0x20 }
            guard rest.starts(with: Array("= ".utf8)) else { continue }
            let digits = rest.dropFirst(2).prefix { $0 == UInt8(ascii: "-") || 48...57 ~= $0 }
            return (index, Int(String(decoding: digits, as: UTF8.self)) ?? -1)
        }
        return nil
    }

    /// `\x41\x42` is AB.
    private static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
        func digit(_ byte: UInt8) -> UInt8 { byte < 58 ? byte &- 48 : (byte | 32) &- 87 }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4)
        text.withUnsafeBufferPointer { text in
            var index = 0
            while index < text.count {
                if text[index] == UInt8(ascii: "\\"), index + 3 < text.count {
                    bytes.append(digit(text[index + 2]) << 4 | digit(text[index + 3]))
                    index += 4
                } else {
                    bytes.append(text[index])
                    index += 1
                }
            }
        }
        return bytes
    }

    /// The number that an argument begins with.
    public func number(_ argument: Int) -> Int {
        guard arguments.indices.contains(argument) else { return 0 }
        return Int(arguments[argument].prefix { $0 == "-" || $0.isNumber }) ?? 0
    }

    public func says(_ word: String) -> Bool { arguments.contains { $0.contains(word) } }
}

extension Collection where Element == UInt8 {
    fileprivate func firstRange(of word: [UInt8]) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start] == word[0], self[start...].starts(with: word) {
                return start..<index(start, offsetBy: word.count)
            }
            start = index(after: start)
        }
        return nil
    }
}
