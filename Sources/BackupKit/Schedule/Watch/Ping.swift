/// Tells a watchdog on the web that a run began, was fine or failed, by the addresses that healthchecks.io made common:
/// URL/start, URL and URL/fail. The watchdog raises the alarm when nothing comes.
public struct Ping: Sendable {
    public enum Event: Sendable {
        case start, success, failure

        fileprivate var meaning: String {
            switch self {
            case .start: "that the run began"
            case .success: "that the run went well"
            case .failure: "that the run failed"
            }
        }
    }

    private let url: String
    private let send: @Sendable (HTTPRequest) throws -> HTTPRequest.Answer

    /// The most of a log that is sent along; its end counts.
    static let logLimit = 10_000

    /// Nil for what is no address of the web.
    public init?(
        _ url: String, send: @escaping @Sendable (HTTPRequest) throws -> HTTPRequest.Answer = { try $0.send() }
    ) {
        guard url.hasPrefix("https://") || url.hasPrefix("http://"), url.count > 8,
            !url.contains(where: \.isWhitespace)
        else { return nil }
        self.url = url
        self.send = send
    }

    func address(_ event: Event) -> String {
        guard event != .success else { return url }
        let cut = url.firstIndex { $0 == "?" || $0 == "#" } ?? url.endIndex
        var path = url[..<cut]
        while path.hasSuffix("/") { path.removeLast() }
        return path + (event == .start ? "/start" : "/fail") + url[cut...]
    }

    /// Tells it, twice if need be. A ping that fails is a warning and never the failure of a backup.
    public func tell(_ event: Event, log: String = "") -> Finding? {
        var request = HTTPRequest(address(event))
        request.method = "POST"
        request.headers = ["Content-Type: text/plain; charset=utf-8", "User-Agent: backup-tool"]
        var tail = log.unicodeScalars[...]
        while tail.count > Self.logLimit { tail = tail.suffix(Self.logLimit) }
        request.body = Array(String(String.UnicodeScalarView(tail)).utf8)
        var problem = ""
        for _ in 0..<2 {
            do {
                let answer = try send(request)
                if answer.isSuccess { return nil }
                problem = "the answer was \(answer.status)"
            } catch { problem = (error as? BackupError)?.message ?? "\(error)" }
        }
        return Finding(
            .skipped, .warning, "ping", "the watchdog was not told \(event.meaning): \(problem)",
            remedy: "the backup is not affected; check 'ping.url'")
    }
}
