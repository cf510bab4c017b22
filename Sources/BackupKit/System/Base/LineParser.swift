import CSimdjson

/// Finds the members of a line of JSON with simdjson. All pointers of the library stay in this file.
final class LineParser {
    /// One member; its pointers last until the next line.
    struct Member {
        let key: UnsafeRawBufferPointer
        /// The text of a string.
        let text: UnsafeRawBufferPointer?
        let isNull: Bool
    }

    static let padding = csimdjson_padding()
    /// More members than this are the strict scanner's.
    private static let limit = 48

    private let parser: OpaquePointer?
    private let found = UnsafeMutablePointer<csimdjson_member>.allocate(capacity: limit)

    /// What is nested deeper is the strict scanner's, too.
    init() { parser = csimdjson_new(JSONScanner.maximumDepthOfRecord) }

    deinit {
        csimdjson_free(parser)
        found.deallocate()
    }

    /// Calls `body` with every member; false when the strict scanner has to decide. `padding` bytes behind the line MUST be
    /// readable.
    func forEachMember(of line: UnsafeRawBufferPointer, _ body: (Member) -> Void) -> Bool {
        guard let parser, let text = line.assumingMemoryBound(to: CChar.self).baseAddress else { return false }
        let count = Int(csimdjson_members(parser, text, line.count, found, Int32(Self.limit)))
        guard count >= 0 else { return false }
        for index in 0..<count {
            let member = found[index]
            body(
                Member(
                    key: UnsafeRawBufferPointer(start: member.key, count: Int(member.key_length)),
                    text: member.kind == CSIMDJSON_STRING
                        ? UnsafeRawBufferPointer(start: member.text, count: Int(member.text_length)) : nil,
                    isNull: member.kind == CSIMDJSON_NULL))
        }
        return true
    }
}
