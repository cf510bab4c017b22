import TestSupport
import Testing

@testable import BackupKit

/// Throws the first mistake.
private func read(_ text: String) throws -> TOMLTable { try read(Array(text.utf8)) }

private func read(_ bytes: [UInt8]) throws -> TOMLTable {
    let (table, mistakes) = TOML.read(bytes)
    if let first = mistakes.first { throw first.error(in: "c.toml") }
    return table
}

/// A compact picture of a document, to compare with.
private func picture(_ content: TOMLValue.Content) -> String {
    switch content {
    case .string(let text): "'\(text)'"
    case .integer(let number): "\(number)"
    case .float(let number): "\(number)f"
    case .boolean(let answer): "\(answer)"
    case .date(let date): "@\(date)"
    case .array(let values): "[" + values.map { picture($0.content) }.joined(separator: " ") + "]"
    case .table(let table):
        "{" + table.entries.map { "\($0.key)=\(picture($0.value.content))" }.joined(separator: " ") + "}"
    }
}

private func picture(_ text: String) throws -> String { picture(.table(try read(text))) }

@Test(arguments: [
    ("", "{}"), ("# only this", "{}"), ("a = 1 # x\r\nb=2\n", "{a=1 b=2}"), ("\u{FEFF}a=1", "{a=1}"),
    ("a = \"b\\t\\\"\\\\\\u00e9\\U0001F600\"", "{a='b\t\"\\é😀'}"), (#"a = 'C:\x'"#, #"{a='C:\x'}"#),
    ("a = \"\"\"\nx\r\ny \\\n   z\"\"\"\"\"", "{a='x\ny z\"\"'}"), ("a = '''\n'x'\\n'''", "{a=''x'\\n'}"),
    ("a = [1, 2, # c\n 3,\n]", "{a=[1 2 3]}"), ("a = []", "{a=[]}"),
    ("a = [[1], ['x', {b=1}]]", "{a=[[1] ['x' {b=1}]]}"),
    ("a = 0x1F\nb = 0o17\nc = 0b101\nd = +1_000\ne = -0", "{a=31 b=15 c=5 d=1000 e=0}"),
    ("a = 1.5\nb = -1e3\nc = 6.02_2E+2\nd = inf\n", "{a=1.5f b=-1000.0f c=602.2f d=inff}"),
    ("a = true\nb = false", "{a=true b=false}"), ("a = 9223372036854775807", "{a=9223372036854775807}"),
    (
        "a = 2026-02-28T07:32:00.5+01:00\nb = 2024-02-29\nc = 07:32:00\nd = 2026-02-14 07:32:00Z",
        "{a=@2026-02-28T07:32:00.5+01:00 b=@2024-02-29 c=@07:32:00 d=@2026-02-14 07:32:00Z}"
    ),
    ("a.b.c = 1\na.b.d = 2\n'x y'.\"\" = 3", "{a={b={c=1 d=2}} x y={=3}}"),
    ("[a.b]\nc=1\n[a]\nd=2\n[ e . f ]", "{a={b={c=1} d=2} e={f={}}}"),
    ("[[j]]\nn=1\n[j.x]\ny=1\n[[j]]\nn=2\n[[j.k]]\n[[j.k]]", "{j=[{n=1 x={y=1}} {n=2 k=[{} {}]}]}"),
    ("a = { b.c = 1, d = {}, 'e' = [ { f = 1 } ] }", "{a={b={c=1} d={} e=[{f=1}]}}"),
    ("[f]\na.c = 1\n[f.a.t]\ns = 1", "{f={a={c=1 t={s=1}}}}"), ("3.14 = 1\n-_ = 2", "{3={14=1} -_=2}"),
])
func toml_readsWhatItsSpecificationAllows(text: String, expected: String) throws {
    #expect(try picture(text) == expected)
}

@Test(arguments: [
    ("a", "1, column 2: expected '=' after the key"), ("a =", "1, column 4: expected a value"),
    ("a = 1 b = 2", "1, column 7: expected the end of the line"), ("\n é = 1", "2, column 2: expected a key"),
    ("a = 1\n\na = 2", "3, column 1: 'a' is defined twice"), ("[a]\n[a]", "2, column 2: 'a' is defined twice"),
    ("a = 1\na.b = 2", "2, column 1: 'a' is defined already and cannot be added to here"),
    ("a = {}\na.b = 2", "2, column 1: 'a' is defined already and cannot be added to here"),
    ("a = []\n[[a]]", "2, column 3: 'a' is defined twice"), ("a.b = 1\n[a]", "2, column 2: 'a' is defined twice"),
    ("[[a]]\n[a]", "2, column 2: 'a' is defined twice"), ("a = {}\n[a.b]", "2, column 2: 'a' is defined already"),
    ("[a.b]\n[a]\nb.c = 1", "3, column 1: 'b' is defined already"), ("a = {b=1, b=2}", "1, column 11: 'b' is defined"),
    ("é = \"x", "1, column 1: expected a key"), ("'é' = \"x", "1, column 7: this string has no end"),
    ("a = 'x\n'", "1, column 5: this string has no end"), ("a = \"\\q\"", "1, column 6: unknown escape"),
    ("a = \"\\ud800\"", "1, column 6: no such character"), ("a = \"\\u00\"", "1, column 6: this escape needs more"),
    ("a = \"\u{1}\"", "1, column 6: a control character"),
    ("# \u{7F}", "1, column 3: a control character in a comment"),
    ("a = [1, 2", "1, column 5: this array has no ']'"), ("a = [1 2]", "1, column 8: expected ',' or ']'"),
    ("a = {b = 1,}", "1, column 12: expected a key"), ("a = {b = 1\n}", "1, column 11: expected ',' or '}'"),
    ("a = yes", "1, column 5: 'yes' is not a value; text needs quotes"), ("a = 01", "1, column 5: '01' is not a value"),
    ("a = 1__0", "1, column 5: '1__0'"), ("a = .5", "1, column 5: '.5'"), ("a = 5.", "1, column 5: '5.'"),
    ("a = 0x-1", "1, column 5: '0x-1'"), ("a = 9223372036854775808", "1, column 5: '9223372036854775808'"),
    ("a = 2026-02-29", "1, column 5: '2026-02-29'"), ("a = 24:00:00", "1, column 5: '24:00:00'"),
    ("[]", "1, column 2: expected a key"), ("[a", "1, column 3: expected ']'"), ("[[a]", "1, column 5: expected ']]'"),
    ("\"\"\"a\"\"\" = 1", "1, column 1: a key cannot be a string of several lines"),
    ("a = 1\rb = 2", "1, column 6: expected"),
])
func toml_refusesTheRestWithLineAndColumn(text: String, expected: String) {
    let error = #expect(throws: BackupError.self) { try read(text) }
    #expect(error?.subject == "c.toml" && error?.code == .failed)
    #expect(error?.message.hasPrefix("line " + expected) == true, "\(error?.message ?? "")")
}

@Test(arguments: [
    ("a = \nb = 1\nc = x\n", "{b=1}", [1, 3]), ("[a\nb = 1\n[c]\nd = 1", "{c={d=1}}", [1]),
    ("a = [\n 1,\n x,\n 2,\n]\nb = 1", "{b=1}", [3]), ("a = [1\n\nb = 1\nc = 2", "{b=1 c=2}", [1]),
    ("a = 'x\nb = 1 # c\n\n# d =\na a a\n[e]\nf = 1 1\ng = 2", "{b=1 e={f=1 g=2}}", [1, 5, 7]),
    ("a = {b = 1\nc = 2", "{c=2}", [1]), ("a = 1\na = 2\na = 3", "{a=1}", [2, 3]), ("a = \"\"\"\nb = 1", "{}", [1]),
    ("[a]\nb = 1\n[a]\nb = 2\nc = 3\n[d]\n", "{a={b=1} d={}}", [3]),
    // The rest of a broken value, whatever it looks like, is no mistake of its own.
    ("a = [x,\n# c\n 'b',\n\n \"c = 1\",\n]\nd = 1", "{d=1}", [1]),
    ("a = [ x,\n ['y', 'z'],\n ['z'],\n [true],\n [1]\n]\nd = 1", "{d=1}", [1]),
    ("[s]\na = ['x', 'y'\n[k]\nd = 7", "{s={} k={d=7}}", [2]), ("a = [1,\n[[k]]\nd = 7", "{k=[{d=7}]}", [1]),
    ("a = {\n b = 1,\n c = 2\n}\nd = 1", "{d=1}", [1]), ("a = {\n b = 1\n[k]\nc = 1", "{b=1 k={c=1}}", [1]),
    ("a = {\n b = 1\n}", "{}", [1]),
    ("a = \"\"\"x\\q\n[k]\nb = 1\n\"\"\"\nd = 1", "{d=1}", [1]),
    ("; c\nvault: v\nuser me\nd = 1", "{d=1}", [1, 2, 3]),
    ("a = [\n [1],\n [inf],\n [false]\n]", "{a=[[1] [inff] [false]]}", []),
])
func toml_goesOnAfterAMistake(text: String, expected: String, lines: [Int]) throws {
    let (table, mistakes) = TOML.read(Array(text.utf8))
    #expect(picture(.table(table)) == expected && mistakes.map { $0.position?.line } == lines)
}

@Test func toml_stopsAfterAHundredMistakes() {
    for text in ["= 1\n", "\u{FF}\n"] {
        let bytes = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        #expect(TOML.read((0..<1000).flatMap { _ in bytes }).mistakes.count == TOML.maximumMistakes)
    }
}

@Test func toml_capsNestingAndSizeAndRefusesWhatIsNotUTF8() throws {
    let many = 100_000
    for (open, close) in [("[", "]"), ("{a=", "}")] {
        let text = "a = " + String(repeating: open, count: many) + String(repeating: close, count: many)
        #expect(throws: BackupError.self) { try read(text) }
    }
    #expect(throws: BackupError.self) { try read(String(repeating: "a.", count: many) + "a=1") }
    #expect(throws: BackupError.self) { try read([UInt8](repeating: 0x20, count: TOML.maximumBytes + 1)) }
    let error = #expect(throws: BackupError.self) { try read([0x61, 0x3D, 0x31, 0x0A, 0x23, 0xFF]) }
    #expect(error?.message == "line 2, column 1: not UTF-8")
}

@Test func toml_takesTimeInProportionToItsSize() throws {
    let long = "a = {" + (0..<10_000).map { "k\($0) = \($0)" }.joined(separator: ", ") + "}"
    #expect(try read(long)["a"] != nil)
    #expect(try read(String(repeating: "[[a]]\nb = 1\n", count: 10_000)).entries.count == 1)
}

@Test func toml_neverTraps_onMutatedDocuments() {
    let seed = testSeed()
    var state = seed
    func random(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(state >> 33) % bound
    }
    let sample = Array(
        """
        a = "x\\u00e9"\nb.'c' = [1, -2.5e3, 0xff, inf, 2026-02-14 07:32:00Z, {d = \"\"\"\ny\\\n z\"\"\"}]\n[e.f]\ng = '''h'''\r
        [[i]]\nj = true # k\n[[i.l]]\n
        """.utf8)
    let alphabet = Array("[]{}=.,#'\"\\\n\r\t _-+:aeux019TZ\u{0}é".utf8)
    for round in 0..<4000 {
        var bytes = sample
        for _ in 0...random(6) {
            let place = random(bytes.count)
            switch random(4) {
            case 0: bytes.remove(at: place)
            case 1: bytes.insert(alphabet[random(alphabet.count)], at: place)
            case 2: bytes[place] = UInt8(truncatingIfNeeded: random(256))
            default: bytes.removeSubrange(place..<min(bytes.count, place + random(20)))
            }
            if bytes.isEmpty { bytes = sample }
        }
        let lines = TOML.read(bytes).mistakes.map { $0.position?.line ?? 0 }
        // Each has its line, and none is found twice.
        #expect(lines.first ?? 1 > 0 && zip(lines, lines.dropFirst()).allSatisfy(<), "seed \(seed), round \(round)")
    }
}
