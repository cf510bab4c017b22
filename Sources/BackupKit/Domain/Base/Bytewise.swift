/// A name or a path as a key, told by its bytes. `String` takes two spellings of "é" for one; to Linux they are two files.
struct ByteName: Hashable, Sendable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (left: Self, right: Self) -> Bool { sameBytes(left.text, right.text) }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// Whether one text comes before another byte by byte, which is how every list we write is sorted. Eight bytes at a
/// time: the standard library's way takes one after the other through iterators, and long lists are mostly comparing.
func precedesBytewise(_ left: String, _ right: String) -> Bool {
    let quick = left.utf8.withContiguousStorageIfAvailable { left in
        right.utf8.withContiguousStorageIfAvailable { right in
            precedesBytewise(UnsafeRawBufferPointer(left), UnsafeRawBufferPointer(right))
        }
    }
    if let quick, let answer = quick { return answer }
    return left.utf8.lexicographicallyPrecedes(right.utf8)
}

func precedesBytewise(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    let shared = min(left.count, right.count)
    var index = 0
    while shared - index >= 8 {
        let one = UInt64(bigEndian: left.loadUnaligned(fromByteOffset: index, as: UInt64.self))
        let two = UInt64(bigEndian: right.loadUnaligned(fromByteOffset: index, as: UInt64.self))
        if one != two { return one < two }
        index += 8
    }
    while index < shared {
        if left[index] != right[index] { return left[index] < right[index] }
        index += 1
    }
    return left.count < right.count
}

func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.withUnsafeBytes { left in right.withUnsafeBytes { precedesBytewise(left, $0) } }
}

/// The first of the numbers below `count` for which `isBehind` is true, which it MUST then be for all that follow; else
/// `count`.
func firstIndex(below count: Int, _ isBehind: (Int) throws -> Bool) rethrows -> Int {
    var (low, high) = (0, count)
    while low < high {
        let middle = low + (high - low) / 2
        if try isBehind(middle) { high = middle } else { low = middle + 1 }
    }
    return low
}
