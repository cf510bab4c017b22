/// Writes JSON text into memory of its own, for whoever writes many short strings: appending to an array asks for room
/// and ownership each time, which costs more than the copying.
struct JSONPen: ~Copyable {
    private var memory = UnsafeMutableRawPointer.allocate(byteCount: 1 << 16, alignment: 8)
    private var capacity = 1 << 16
    private var count = 0
    /// Where the name of a member lies, without its quotes, and where its value.
    typealias Member = (name: Range<Int>, value: Range<Int>)
    /// The members that were marked as they were written, so that nobody has to look for them again.
    private(set) var members: [Member] = []
    private var name = 0..<0

    deinit { memory.deallocate() }

    /// Holds until the next writing.
    var written: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory, count: count) }

    mutating func clear() {
        count = 0
        members.removeAll(keepingCapacity: true)
    }

    /// Marks a member: `beginMember`, its name as a string, `endName`, its value, `endMember`.
    mutating func beginMember() {
        if count > 1 { write(",") }
        name = count + 1..<count + 1
    }

    mutating func endName() {
        name = name.lowerBound..<count - 1
        write(":")
    }

    mutating func endMember() { members.append((name, name.upperBound + 2..<count)) }

    mutating func member(_ name: String, _ value: (inout JSONPen) -> Void) {
        beginMember()
        string(name)
        endName()
        value(&self)
        endMember()
    }

    mutating func write(_ byte: UInt8) {
        makeRoom(1)
        memory.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count += 1
    }

    mutating func write(_ text: StaticString) {
        write(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Text that is JSON already.
    mutating func write(json text: String) {
        var text = text
        text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
    }

    private mutating func write(_ bytes: UnsafeRawBufferPointer) {
        makeRoom(bytes.count)
        UnsafeMutableRawBufferPointer(start: memory + count, count: bytes.count).copyMemory(from: bytes)
        count += bytes.count
    }

    /// A string of UTF-8 text.
    mutating func string(_ text: UnsafeRawBufferPointer) {
        write(UInt8(ascii: "\""))
        let blockBytes = 1 << 12
        var start = 0
        while start < text.count {
            let end = min(start + blockBytes, text.count)
            makeRoom((end - start) * 6 + 8)
            let room = UnsafeMutableRawBufferPointer(start: memory + count, count: capacity - count)
            count += copyEscaped(UnsafeRawBufferPointer(rebasing: text[start..<end]), into: room)
            start = end
        }
        write(UInt8(ascii: "\""))
    }

    mutating func string(_ text: String) {
        var text = text
        text.withUTF8 { string(UnsafeRawBufferPointer($0)) }
    }

    /// An instant as a string.
    mutating func time(_ time: Timestamp) {
        write(UInt8(ascii: "\""))
        makeRoom(Timestamp.textLength)
        time.write(to: UnsafeMutableRawBufferPointer(start: memory + count, count: Timestamp.textLength))
        count += Timestamp.textLength
        write(UInt8(ascii: "\""))
    }

    /// A string of printable ASCII without quotes and backslashes, in lower case; nothing, and false, of other text.
    mutating func lowercaseName(_ name: UnsafeRawBufferPointer) -> Bool {
        makeRoom(name.count + 2)
        let room = UnsafeMutableRawBufferPointer(start: memory + count, count: name.count + 2)
        room[0] = UInt8(ascii: "\"")
        for index in 0..<name.count {
            let byte = name[index]
            guard 0x20...0x7E ~= byte, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") else { return false }
            room[index + 1] = 0x41...0x5A ~= byte ? byte | 0x20 : byte
        }
        room[name.count + 1] = UInt8(ascii: "\"")
        count += name.count + 2
        return true
    }

    private mutating func makeRoom(_ more: Int) {
        guard capacity - count < more else { return }
        capacity = max(capacity * 2, count + more)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
        larger.copyMemory(from: memory, byteCount: count)
        memory.deallocate()
        memory = larger
    }
}
