import TestSupport
import Testing

@testable import BackupKit

private func part(_ texts: [(name: String, time: Int64)]) -> Record {
    let newest = texts.map(\.time).max() ?? 0
    let fields = texts.map { "\"\($0.name)\":\"\($0.time)\"" }.joined(separator: ",")
    let times = Dictionary(uniqueKeysWithValues: texts.filter { $0.time != newest }.map { ($0.name, $0.time) })
    return record(
        "p", "{\"kind\":\"string\",\"file\":\"f\",\(fields)}", at: newest, times: times,
        type: RecordType.bibliographyPart)
}

private func texts(_ record: Record) throws -> [String] {
    try Fields.parse(record.fields).filter { RawText.holds($0.name) }.map { "\($0.name) \($0.value)" }
}

private let names = [RawText.plain, RawText.base64]

/// A `.bib` file whose macros, groups, comments, head and entries get other texts, and that is saved in other encodings.
private final class EncodingWorld {
    private static let words = ["ascii", "gr\u{FC}\u{DF}e", "caf\u{E9}", "plain", "\u{E5}s"]
    private static let forms: [@Sendable (String) -> String] = [
        { "@string{m0 = \"\($0)\"}" }, { "@string{m1 = {\($0)}}" }, { "@preamble{\"\($0)\"}" },
        { "@comment{jabref-meta: grouping:0 AllEntriesGroup:\($0);}" }, { "@comment{BibDesk Static Groups{\($0)}}" },
        { "@misc{k1, title={One}, author={A, A}, year=2001, note={\($0)}}" },
        { "@misc{k2, title={Two}, author={B, B}, year=2002, note={\($0)}}" }, { "@comment{\($0)}" },
        { "%% Created for \($0) at 2024\n%% Saved with string encoding Western (ISO Latin 1)" },
    ]

    private let test: TestStore
    private var random: SeededGenerator
    private var lines: [String]
    var story: [String] = []
    var faults: [String] = []

    init(_ seed: UInt64, _ test: TestStore) {
        self.test = test
        random = SeededGenerator(seed: seed)
        lines = Self.forms.map { $0("first") }
    }

    func step(_ number: Int) throws {
        var former: Set<String> = []
        for _ in 0..<random.below(4) {
            let place = [0, 1, 3, 4, 5, 6, 8][random.below(7)]
            former.insert(lines[place])
            lines[place] = Self.forms[place](Self.words[random.below(Self.words.count)] + " \(number)")
        }
        test.clock.advance(seconds: 60)
        let isUTF8 = random.chance(2)
        // BibDesk's head stands first.
        let text = ([lines[8]] + lines[..<8]).joined(separator: "\n\n") + "\n"
        let path = "\(test.folder)/f.bib"
        try writeFile(path, "")
        let bytes = isUTF8 ? Array(text.utf8) : BibText.encode(text, asUTF8: false)
        try AtomicFile.write(path, replace: true) { file in try bytes.withUnsafeBytes { try file.write($0) } }
        try FileHandle.openForReading(path).setModified(seconds: test.clock.now.milliseconds / 1000)
        test.clock.advance(seconds: 60)
        var options = ImportOptions()
        options.mirror = random.chance(2)
        _ = try Importer.run([path], into: test.store, options)
        story.append("\(options.mirror ? "mirror" : "import") \(isUTF8 ? "UTF-8" : "Latin-1")\n\(text)")
        try look(former.subtracting(lines))
        if random.chance(3) {
            let again = try Importer.run([path], into: test.store, options)
            if again.writes != 0 { faults.append("the second import writes \(again.plan)") }
        }
    }

    private func look(_ former: Set<String>) throws {
        for record in try test.store.all() where try texts(record).count > 1 { faults.append(record.fields) }
        if try Deduplicator.run(on: test.store).batch != nil { faults.append("dedup finds something") }
        let path = "\(test.folder)/out"
        try? Directory.removeTree(path)
        _ = try Exporter.export(test.store, to: path, ExportOptions(form: .layout(.directory)))
        let library = String(decoding: try readFile("\(path)/library.bib"), as: UTF8.self)
        for line in lines where !library.contains(line) { faults.append("\(line) is not in\n\(library)") }
        for line in former where library.contains(line) { faults.append("\(line) is still in\n\(library)") }
        try withStore { other in
            _ = try Restorer.restore(path, into: other.store, RestoreOptions())
            if try other.store.contentDigest() != test.store.contentDigest() { faults.append("restores to another") }
        }
    }
}

@Suite struct RawTextTests {
    @Test(arguments: [(1, 2), (2, 1), (2, 2)] as [(Int64, Int64)])
    func ofTwoTexts_theNewerStays_inEveryMerge(mine: Int64, theirs: Int64) throws {
        for (name, other) in [(names[0], names[1]), (names[1], names[0])] {
            let (local, incoming) = (part([(name, mine)]), part([(other, theirs)]))
            let decision = try MergePolicy(now: time(100)).decide(existing: local, incoming: incoming)
            if case .update(let merged, _) = decision {
                #expect(theirs > mine)
                #expect(try texts(merged) == ["\(other) \"\(theirs)\""])
                // The file comes again, and then an older version.
                #expect(try MergePolicy(now: time(100)).decide(existing: merged, incoming: incoming) == .unchanged)
                #expect(try MergePolicy(now: time(100)).decide(existing: merged, incoming: local) == .protect(.newer))
                let back = try MergePolicy(now: time(100)).decide(existing: merged, incoming: part([(name, 5)]))
                guard case .update(let merged, _) = back else { throw BackupError(.failed, "\(back)") }
                #expect(try texts(merged) == ["\(name) \"5\""])
            } else {
                #expect(decision == .protect(.newer) && theirs <= mine)
            }
            let newest = mine > theirs ? name : theirs > mine ? other : RawText.plain
            for (one, two) in [(local, incoming), (incoming, local)] {
                let merged = try SyncMerge().merge(one, two, base: nil)
                #expect(try texts(merged).map { $0.prefix(9) } == [newest.prefix(9)])
            }
        }
    }

    @Test func whatOneDeviceSavesInAnotherEncoding_isTheOnlyTextOnBoth() throws {
        let before = part([(RawText.plain, 1)])
        let base = Ancestor(fields: before.fields, modifiedAt: before.modifiedAt)
        let new = part([(RawText.base64, 3)])
        for (one, two) in [(before, new), (new, before)] {
            #expect(try texts(SyncMerge().merge(one, two, base: base)) == ["rawBase64 \"3\""])
        }
        // Both have changed it.
        let other = part([(RawText.plain, 2)])
        for (one, two) in [(other, new), (new, other)] {
            #expect(try texts(SyncMerge().merge(one, two, base: base)) == ["rawBase64 \"3\""])
        }
    }

    /// Version 0.1.0 left such records.
    @Test(
        arguments: [(1, 2, RawText.base64), (2, 1, RawText.plain), (2, 2, RawText.plain)] as [(Int64, Int64, String)])
    func aRecordWithTwoTexts_saysTheNewerOne(plain: Int64, base64: Int64, says: String) throws {
        func withBoth(_ texts: [String]) -> Record {
            var both = part([(RawText.plain, plain), (RawText.base64, base64)])
            both.fields = both.fields.replacing("\"rawBibTeX\":\"\(plain)\"", with: "\"rawBibTeX\":\"\(texts[0])\"")
            both.fields = both.fields.replacing("\"rawBase64\":\"\(base64)\"", with: "\"rawBase64\":\"\(texts[1])\"")
            return both
        }
        let latin = BibBase64.encode(BibText.encode("@string{m = {gr\u{FC}n}}", asUTF8: false))
        let both = withBoth(["@string{m = {rot}}", latin])
        let parts = try BibliographyParts([both])
        let shown = String(decoding: try #require(parts.shown.first).bytes, as: UTF8.self)
        #expect(shown == (says == RawText.plain ? "@string{m = {rot}}" : "@string{m = {gr\u{FC}n}}"))
        // The next merge takes the other one away.
        let merged = try MergePolicy(now: time(100)).decide(existing: both, incoming: part([(RawText.plain, 9)]))
        guard case .update(let record, _) = merged else { throw BackupError(.failed, "\(merged)") }
        #expect(try texts(record) == ["rawBibTeX \"9\""])
    }

    @Test func anEntryThatSaysTheSame_hasItsNewerText() throws {
        let fields = "\"citeKey\":\"k\",\"entryType\":\"misc\",\"note\":\"\u{FC}\""
        let latin = BibBase64.encode(BibText.encode("@misc{k,  note={\u{FC}}}", asUTF8: false))
        let old = record(
            "p", "{\(fields),\"rawBibTeX\":\"@misc{k, note={\u{FC}}}\"}", at: 1, type: RecordType.publication)
        let new = record("p", "{\(fields),\"rawBase64\":\"\(latin)\"}", at: 2, type: RecordType.publication)
        for (existing, incoming) in [(old, new), (record("p", new.fields, at: 0), record("p", old.fields, at: 1))] {
            let decision = try MergePolicy(now: time(9)).decide(existing: existing, incoming: incoming) {
                try Publication.derive(merged: $0, local: $1, other: $2)
            }
            guard case .update(let merged, _) = decision else { throw BackupError(.failed, "\(decision)") }
            #expect(try texts(merged) == texts(incoming))
        }
    }

    /// BACKUP_TOOL_SEED=N runs the history N first.
    @Test(arguments: testSeeds(isTorture ? 120 : 15))
    func theNewestTextOfEachLine_isInTheExport_whateverItsEncoding(seed: UInt64) throws {
        countRounds()
        try withStore { test in
            try test.store.database.execute("PRAGMA synchronous = OFF")
            let world = EncodingWorld(seed, test)
            for number in 0..<8 where world.faults.isEmpty { try world.step(number) }
            if !world.faults.isEmpty { print("BACKUP_TOOL_SEED=\(seed)\n" + world.story.joined(separator: "\n")) }
            #expect(world.faults.isEmpty)
        }
    }
}
