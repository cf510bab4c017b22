import CCurl
import Glibc

/// One request to a web server, and its answer.
public struct HTTPRequest: Sendable {
    public var method = "GET"
    public var url: String
    /// `name: value` each.
    public var headers: [String] = []
    public var body: [UInt8] = []
    public var seconds = 10.0
    /// A longer answer is an error.
    public var answerLimit = 1 << 20

    public init(_ url: String) { self.url = url }

    public struct Answer: Sendable {
        public let status: Int
        public let body: [UInt8]

        public var isSuccess: Bool { 200...299 ~= status }
    }

    private final class Collected {
        var bytes: [UInt8] = []
        let limit: Int

        init(limit: Int) { self.limit = limit }
    }

    /// Throws `.temporary` when no answer came: the line, the name, the certificate. An answer of any status is an answer.
    public func send() throws -> Answer {
        guard !url.utf8.contains(0), !headers.contains(where: { $0.utf8.contains { $0 < 0x20 } }) else {
            throw BackupError(.usage, "a control character stands in the address or a header", at: shownURL)
        }
        let collected = Collected(limit: answerLimit)
        var message = [CChar](repeating: 0, count: Int(CCURL_ERROR_SIZE))
        let status = withExtendedLifetime(collected) {
            withCStrings([method, url] + headers) { words in
                body.withUnsafeBytes { bytes in
                    perform(words, bytes, Unmanaged.passUnretained(collected).toOpaque(), &message)
                }
            }
        }
        guard status >= 0 else {
            let reason = message.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            throw BackupError(.temporary, "no answer: \(reason)", at: shownURL)
        }
        return Answer(status: status, body: collected.bytes)
    }

    /// `words` are the method, the address and the headers, with nil at the end.
    private func perform(
        _ words: [UnsafePointer<CChar>?], _ bytes: UnsafeRawBufferPointer, _ context: UnsafeMutableRawPointer,
        _ message: inout [CChar]
    ) -> Int {
        Array(words.dropFirst(2)).withUnsafeBufferPointer { headers in
            var request = ccurl_request()
            request.method = words[0]
            request.url = words[1]
            request.headers = headers.baseAddress
            request.body = bytes.baseAddress
            request.body_size = bytes.count
            request.timeout_ms = Int(max(0.001, min(seconds, 86_400)) * 1000)
            request.context = context
            request.take = { context, bytes, count in
                guard let context, let bytes else { return 1 }
                let collected = Unmanaged<Collected>.fromOpaque(context).takeUnretainedValue()
                guard collected.bytes.count + count <= collected.limit else { return 1 }
                collected.bytes += UnsafeRawBufferPointer(start: bytes, count: count)
                return 0
            }
            return ccurl_perform(&request, &message)
        }
    }

    private var shownURL: String { Address.host(url) }
}

/// Calls `body` with pointers to C strings that live as long as the call, and a nil after the last.
func withCStrings<Result>(_ texts: [String], _ body: ([UnsafePointer<CChar>?]) -> Result) -> Result {
    let copies = texts.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies.map { $0.map { UnsafePointer($0) } } + [nil])
}
