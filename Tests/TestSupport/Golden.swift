import Glibc

/// How a text differs from the file `Tests/Goldens/NAME`, or nil when it does not. With RECORD_GOLDENS=1 the file is
/// written anew, and that counts as a difference, so that nobody records by accident.
///
///     #expect(goldenDifference(result.stdout, "help.txt") == nil)
public func goldenDifference(_ text: String, _ name: String) -> String? {
    let path = goldenPath(name)
    if getenv("RECORD_GOLDENS").map({ String(cString: $0) }) == "1" {
        guard let file = fopen(path, "w") else { return "\(path) cannot be written" }
        fputs(text, file)
        fclose(file)
        return "recorded \(path); look at it, and run again without RECORD_GOLDENS"
    }
    guard let expected = readText(path) else { return "\(path) is missing; RECORD_GOLDENS=1 writes it" }
    return text == expected ? nil : "\(name) differs:\n\(lineDifference(expected, text))"
}

/// A file of a test as text, or nil.
public func readText(_ path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
        let count = fread(&buffer, 1, buffer.count, file)
        if count == 0 { return String(decoding: bytes, as: UTF8.self) }
        bytes += buffer[..<count]
    }
}

private func lineDifference(_ old: String, _ new: String) -> String {
    let before = old.split(separator: "\n", omittingEmptySubsequences: false)
    let after = new.split(separator: "\n", omittingEmptySubsequences: false)
    var lines: [(order: Int, text: String)] = []
    for change in after.difference(from: before) {
        switch change {
        case .remove(let offset, let line, _): lines.append((offset * 2, "\(offset + 1)\t- \(line)"))
        case .insert(let offset, let line, _): lines.append((offset * 2 + 1, "\(offset + 1)\t+ \(line)"))
        }
    }
    return lines.sorted { $0.order < $1.order }.map(\.text).joined(separator: "\n")
}

/// Where a golden file lies that is not written by the tests themselves.
public func goldenPath(_ name: String) -> String { "\(projectFolder)/Tests/Goldens/\(name)" }
