import Glibc
import Synchronization
import TestSupport
import Testing

@testable import BackupKit

/// A web server of the machine's own: it writes down what it is asked, and answers as the path says.
private let server = """
    import http.server, json, sys, time
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            print(json.dumps([self.command, self.path, self.headers.get("User-Agent"), body.decode()]), flush=True)
            status = int(self.path.split("status=")[1]) if "status=" in self.path else 200
            if "slow" in self.path: time.sleep(5)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"x" * (int(self.path.split("size=")[1]) if "size=" in self.path else 2))
        do_GET = do_POST
        def log_message(self, *words): pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
    """

/// Runs `body` with the server's address; gives what the server was asked.
private func withServer(_ body: (String) throws -> Void) throws -> [JSON] {
    var lines: [JSON] = []
    try withTemporaryFolder { folder in
        let log = "\(folder)/log"
        try writeFile("\(folder)/server.py", server)
        let shell = "python3 '\(folder)/server.py' > '\(log)' 2>/dev/null </dev/null & echo $!"
        let pid = try #require(Int32(try runProcess(["sh", "-c", shell]).stdoutLines.first ?? ""))
        defer { kill(pid, SIGKILL) }
        var port = ""
        for _ in 0..<500 where port.isEmpty {
            usleep(20_000)
            let text = (try? readFile(log)).map { String(decoding: $0, as: UTF8.self) } ?? ""
            if text.contains("\n") { port = String(text.prefix { $0 != "\n" }) }
        }
        try #require(!port.isEmpty, "the server did not start")
        try body("http://127.0.0.1:\(port)")
        let text = String(decoding: try readFile(log), as: UTF8.self)
        lines = try text.split(separator: "\n").dropFirst().map { try JSON(parsing: String($0)) }
    }
    return lines
}

@Suite struct PingTests {
    @Test func aWatchdogHearsOfTheStartTheSuccessAndTheFailure() throws {
        let asked = try withServer { address in
            let ping = try #require(Ping("\(address)/uuid?rid=7"))
            #expect(ping.tell(.start) == nil)
            #expect(ping.tell(.success, log: "fine é") == nil)
            #expect(ping.tell(.failure, log: String(repeating: "a", count: 20_000) + "the end") == nil)
        }
        #expect(asked.map { $0.array?[1].string } == ["/uuid/start?rid=7", "/uuid?rid=7", "/uuid/fail?rid=7"])
        #expect(asked.allSatisfy { $0.array?[0].string == "POST" && $0.array?[2].string == "backup-tool" })
        #expect(asked[1].array?[3].string == "fine é")
        let log = try #require(asked[2].array?[3].string)
        #expect(log.count == 10_000 && log.hasSuffix("the end"))
    }

    @Test func aWatchdogThatAnswersBadlyIsAskedTwiceAndIsAWarning() throws {
        let asked = try withServer { address in
            let finding = try #require(Ping("\(address)/status=503")).tell(.success)
            #expect(finding?.severity == .warning && finding?.message.hasSuffix(": the answer was 503") == true)
        }
        #expect(asked.count == 2)
    }

    @Test func aWatchdogThatIsNotThereIsAWarning_andItsAddressIsNotShown() throws {
        // A port that nobody listens on any more.
        var gone = ""
        _ = try withServer { gone = $0 }
        let finding = try #require(Ping("\(gone)/secret-key")).tell(.success)
        #expect(finding?.severity == .warning && finding?.description.contains("secret") == false)
        let error = #expect(throws: BackupError.self) { try HTTPRequest("\(gone)/secret-key").send() }
        #expect(error?.code == .temporary && error?.description.contains("secret") == false)
    }

    @Test func whatIsNoAddressOfTheWebIsRefused() {
        for text in ["", "ftp://a/b", "file:///etc/passwd", "https://", "example.org"] { #expect(Ping(text) == nil) }
        #expect(throws: BackupError.self) { try HTTPRequest("file:///etc/passwd").send() }
    }

    @Test func anAnswerIsReadWhole_butNotWithoutEnd() throws {
        _ = try withServer { address in
            let answer = try HTTPRequest("\(address)/size=100000").send()
            #expect(answer.isSuccess && answer.body.count == 100_000)
            var small = HTTPRequest("\(address)/size=100000")
            small.answerLimit = 1000
            #expect(throws: BackupError.self) { try small.send() }
            var impatient = HTTPRequest("\(address)/slow")
            impatient.seconds = 0.2
            #expect(throws: BackupError.self) { try impatient.send() }
        }
    }

    @Test func aProgramIsRunToItsEnd() throws {
        let input = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
        let echoed = try Subprocess.run(["sh", "-c", "cat; echo problem >&2; exit 7"], input: input)
        #expect(echoed.output == input && echoed.errors == "problem\n" && echoed.status == 7)
        #expect(try Subprocess.run(["sh", "-c", "kill -TERM $$"]).status == 143)
        for line in ["sleep 100", "trap '' TERM; sleep 100 & wait; sleep 100", "exec >&-; sleep 100", "kill -STOP $$"] {
            let start = monotonicSeconds()
            #expect(
                errorCode { _ = try Subprocess.output(ofShell: line, limit: 99, seconds: 0.2) } == .failed, "\(line)")
            #expect(monotonicSeconds() - start < 10, "\(line)")
        }
        #expect(try Subprocess.output(ofShell: "echo a; exit 3", limit: 99, seconds: 60).text == "a\n")
        #expect(try Subprocess.run(["true"], input: input).status == 0)
        #expect(try Subprocess.run(["sh", "-c", "yes | head -c 100000"], limit: 5000).output.count <= 5000)
        let error = #expect(throws: BackupError.self) { try Subprocess.run(["no-such-program-here"]) }
        #expect(error?.code == .notFound)
    }
}

extension Finding {
    fileprivate var description: String { "\(subject) \(message) \(remedy ?? "")" }
}
