import TestSupport
import Testing

@testable import BackupKit

/// Files of a few names for several works, in one import after another.
private final class FileImports {
    private let test: TestStore
    private let folder: String
    private var random: SeededGenerator
    private var round = 0
    private static let names = ["p.pdf", "q.pdf", "r.pdf"]

    private struct Work {
        var names: Set<String> = []
        var texts: Set<String> = []
    }

    init(_ test: TestStore, _ seed: UInt64, in folder: String) {
        (self.test, self.folder, random) = (test, folder, SeededGenerator(seed: seed))
    }

    private func someNames() -> [String] { Self.names.filter { _ in random.chance(2) } }

    private func text(_ name: String) -> String { "\(name) of round \(round)" }

    /// What the works name and which texts they link, by their titles.
    private func works() throws -> [String: Work] {
        var found: [String: Work] = [:]
        try test.store.forEachLive(type: RecordType.publication) { stored in
            let fields = try Fields.parse(stored.record.fields)
            let names = Publication.links(in: fields).map(\.path)
            let texts = try Store.links(of: stored.record).map { path in
                String(decoding: try readFile("\(test.store.assetFolder)/\(path)"), as: UTF8.self)
            }
            found[Fields.string("title", in: fields) ?? ""] = Work(names: Set(names), texts: Set(texts))
        }
        return found
    }

    private func records() throws -> [RecordID: String] {
        let records = try test.store.all().filter { $0.type != RecordType.conflict }
        return Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0.fields) })
    }

    /// Imports a file of entries with a folder of attachments, which lies beside it or is where it lies.
    func step() throws -> [String] {
        round += 1
        test.clock.advance(seconds: 10)
        let files = "\(folder)/\(round)"
        try Directory.create(files)
        let coming = someNames()
        for name in coming { try writeFile("\(files)/\(name)", text(name)) }
        var entries: [String: Set<String>] = [:]
        for number in 0..<4 where !random.chance(3) { entries["Work \(number)"] = Set(someNames()) }
        let bibliography = random.chance(2) ? "\(files)/l.bib" : "\(folder)/l.bib"
        let lines = entries.sorted { $0.key < $1.key }.map { title, names in
            let field = names.isEmpty ? "" : ", file={\(names.sorted().map { ":\($0):PDF" }.joined(separator: ";"))}"
            return "@book{\(title.filter { $0 != " " }), author={A, B}, year={2001}, title={\(title)}\(field)}\n"
        }
        let seconds = test.clock.now.milliseconds / 1000 - Int64(random.below(30))
        try writeFile(bibliography, lines.joined(), modified: seconds)
        var options = ImportOptions()
        options.attachments = files
        options.overwrite = random.chance(4)
        options.keepsPlan = true
        let (before, old) = (try works(), try records())
        options.dryRun = true
        let plan = try Importer.run([bibliography], into: test.store, options)
        options.dryRun = false
        let result = try Importer.run([bibliography], into: test.store, options)
        let faults = try strangeLinks(entries, coming, before)
        return try (faults + unsaid(plan, result, old)).map { "round \(round), \(entries), \(coming): \($0)" }
    }

    /// Files of this round at works that do not name them, and works without the file that their entry names.
    private func strangeLinks(
        _ entries: [String: Set<String>], _ coming: [String], _ before: [String: Work]
    ) throws -> [String] {
        var faults: [String] = []
        for (title, work) in try works() {
            for name in coming {
                let isLinked = work.texts.contains(text(name))
                let isNamed = entries[title]?.contains(name) == true && work.names.contains(name)
                let had = before[title] ?? Work()
                let isAwaited = had.names.contains(name) && !had.texts.contains { $0.hasPrefix(name) }
                if isNamed, !isLinked { faults.append("\(title) lacks \(name)") }
                if isLinked, !isNamed, !isAwaited { faults.append("\(title) got \(name)") }
            }
        }
        return faults
    }

    /// What the plan does not say, or says otherwise than the run.
    private func unsaid(_ plan: IntakeResult, _ result: IntakeResult, _ old: [RecordID: String]) throws -> [String] {
        let new = try records()
        let changed = Set(new.filter { old[$0.key] != $0.value }.map(\.key.description))
        let ids = Set(new.map(\.key.description))
        let said = result.plan.filter { [.add, .update].contains($0.action) && ids.contains($0.subject) }
        var faults = changed == Set(said.map(\.subject)) ? [] : ["changed \(changed), said \(said)"]
        let (planned, done) = (plan.plan.map(\.subject), result.plan.map(\.subject))
        if planned != done || plan.linked != result.linked { faults.append("planned \(planned), did \(done)") }
        for item in said where item.action == .update {
            let id = new.keys.first { $0.description == item.subject }
            let (was, now) = (id.flatMap { old[$0] } ?? "{}", id.flatMap { new[$0] } ?? "{}")
            let wanted = FieldChange.list(from: try Fields.parse(was), to: try Fields.parse(now))
                .contains { $0.name == Publication.linkedFiles }
            if wanted != item.changes.contains(where: { $0.name == Publication.linkedFiles }) {
                faults.append("\(item.label) does not say its links")
            }
        }
        let listed = result.added + result.updated + result.linked
        if listed != said.count { faults.append("counted \(listed), said \(said)") }
        return faults
    }
}

@Suite struct EntryFileTests {
    @Test(arguments: testSeeds(4))
    func whateverEntriesNamed_aFileGoesOnlyToTheWorkWhoseEntryNamesItNow(seed: UInt64) throws {
        for run in 0..<(isTorture ? 50 : 5) {
            countRounds()
            try withTemporaryFolder { folder in
                try withStore { test in
                    let imports = FileImports(test, seed &* 100 &+ UInt64(run), in: folder)
                    for _ in 0..<6 {
                        let faults = try imports.step()
                        #expect(faults.isEmpty, "seed \(seed) run \(run): \(faults.joined(separator: "\n"))")
                        if !faults.isEmpty { return }
                    }
                }
            }
        }
    }
}
