import TestSupport
import Testing

@testable import BackupKit

/// Macros of files that were written apart: each entry keeps what its own file made of them.
@Suite struct MacroMeaningsTests {
    /// The publications of a store, but for their text and where they came from.
    private func works(_ store: Store) throws -> [String] {
        try store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }.map { record in
            try Fields.parse(record.fields).filter { !RawText.holds($0.name) }.map { "\($0.name): \($0.value)" }
                .sorted().joined(separator: ", ")
        }.sorted()
    }

    private func take(_ paths: [String], into store: Store) throws -> IntakeResult {
        try Importer.run(paths, into: store, ImportOptions())
    }

    /// Imports the files together, and asks that an export says the same in a new store and nothing new in its own.
    private func checkExports(of files: [String], writesAgain: Bool = false, _ comment: Comment) throws {
        try withStore { test in
            var paths: [String] = []
            for (index, text) in files.enumerated() {
                let path = "\(test.folder)/\(index)/refs.bib"
                try writeFile(path, text, modified: test.clock.now.milliseconds / 1000 - 1000)
                paths.append(path)
            }
            _ = try take(paths, into: test.store)
            let works = try works(test.store)
            for order in [ExportOptions.EntryOrder.key, .source] {
                let folder = "\(test.folder)/\(order)"
                var options = ExportOptions(form: .layout(.directory))
                options.order = order
                _ = try Exporter.export(test.store, to: folder, options)
                let text = try String(decoding: readFile("\(folder)/library.bib"), as: UTF8.self)
                try writeFile("\(folder)/library.bib", text, modified: test.clock.now.milliseconds / 1000)
                try withStore { other in
                    _ = try take(["\(folder)/library.bib"], into: other.store)
                    #expect(try self.works(other.store) == works, "\(comment), \(order):\n\(files)\n\(text)")
                }
                let again = try take(["\(folder)/library.bib"], into: test.store)
                #expect(
                    writesAgain || again.added + again.updated == 0 && again.findings.isEmpty,
                    "\(comment), \(order): \(again)\n\(files)\n\(text)")
            }
        }
    }

    @Test func aDefinitionThatKnewAMacroByItsNameOnly_keepsThat() throws {
        try checkExports(
            of: [
                "@string{tc = {Alpha}}\n@article{k1, author={Ann One}, title={S}, year=1996, journal=tc}\n",
                "@string{tc = IEEE # { Computers}}\n@article{k9, author={Ann Smith}, title={T}, year=1997, journal=tc}\n",
                "@string{IEEE = {IEEE Trans.}}\n@article{k7, author={Q R}, title={V}, year=1999, journal=IEEE}\n",
            ], "")
    }

    /// BibTeX may be given both files; to an import each is one of its own.
    @Test func macrosThatOnlyAnotherFileDefines_areNamed_untilTheFileDefinesThem() throws {
        try withStore { test in
            let (macros, refs) = ("\(test.folder)/IEEEabrv.bib", "\(test.folder)/refs.bib")
            let entry = "@article{k, author={A One}, title={T}, year=2001, journal=ieee, note=apr # other}\n"
            let definition = "@string{ieee = {IEEE Trans.}}\n"
            try writeFile(refs, entry, modified: 1)
            try writeFile(macros, definition, modified: 1)
            // Whichever comes first.
            let first = try take([refs, macros], into: test.store).findings
            #expect(first.map(\.subject) == [refs] && first[0].message.contains("(ieee)"), "\(first)")
            #expect(try take([macros, refs], into: test.store).findings.isEmpty)
            try writeFile(refs, definition + entry, modified: 2)
            #expect(try take([refs], into: test.store).findings.isEmpty)
            #expect(try works(test.store)[0].contains("IEEE Trans."))
        }
    }

    @Test func anUnknownMacroInTwoSpellings_keepsBothValues() throws {
        try checkExports(
            of: [
                "@misc{k1, author={A One}, title={T1}, year=2001, note=acm, series=ACM # acm}\n",
                "@string{acm={X}}\n@misc{k2, author={B One}, title={T2}, year=2001, note=acm}\n",
            ], writesAgain: true, "")
    }

    /// No definition says both spellings, once another file's definition is in force.
    @Test func aDefinitionOfAnUnknownMacroInTwoSpellings_keepsItsValue() throws {
        try checkExports(
            of: [
                "@string{zz = Acm # acm}\n@misc{d, author={A One}, title={T1}, year=2001, note=zz}\n",
                "@string{acm={X}}\n@misc{c, author={B One}, title={T2}, year=2001, note=acm}\n",
            ], writesAgain: true, "")
    }

    /// Nobody has edited the entry: it stands before the definition that it did not know.
    @Test func anEntryOfTwoSpellings_keepsItsText() throws {
        let entry = "@misc{k, author={A One}, title={T1}, year=2001, note=Acm, series=acm, journal=Acm # acm}\n"
        let other = "@string{acm={X}}\n@misc{c, author={B One}, title={T2}, year=2001, note=acm}\n"
        for files in [[entry, other], [other, entry]] { try checkExports(of: files, writesAgain: true, "") }
        try withStore { test in
            for (name, text) in [("b", other), ("a", entry)] {
                try writeFile("\(test.folder)/\(name).bib", text)
                _ = try take(["\(test.folder)/\(name).bib"], into: test.store)
            }
            _ = try Exporter.export(test.store, to: "\(test.folder)/out", ExportOptions(form: .layout(.directory)))
            #expect(try String(decoding: readFile("\(test.folder)/out/library.bib"), as: UTF8.self).contains(entry))
        }
    }

    @Test func anUnknownMacro_keepsTheSpellingOfItsName() throws {
        try checkExports(
            of: [
                "@book{a1,author={A One},title={T1},year=2001,publisher=ACK}\n",
                "@string{ACK={Thanks}}\n@book{b1,author={B One},title={T2},year=2001,publisher=ACK, crossref={a1}}\n",
            ], "")
    }

    private func value(_ names: [String], _ random: inout SeededGenerator, depth: Int = 0) -> String {
        switch Int.random(in: 0..<6, using: &random) {
        case 0, 1: return "{Foo \(Int.random(in: 0..<4, using: &random))}"
        case 2, 3: return names.randomElement(using: &random) ?? ""
        case 4: return "undefined"
        default:
            return depth > 1 ? "{e}" : "\(value(names, &random, depth: 2)) # \(value(names, &random, depth: depth + 1))"
        }
    }

    private func file(_ number: Int, _ names: [String], _ random: inout SeededGenerator) -> String {
        (0..<Int.random(in: 1...6, using: &random)).map { index in
            if Bool.random(using: &random) {
                return "@string{\(names.randomElement(using: &random) ?? "") = \(value(names, &random))}\n"
            }
            let key = "k\(number)\(index)"
            let parent =
                Int.random(in: 0..<4, using: &random) == 0
                ? ", crossref={k\(Int.random(in: 0..<3, using: &random))0}" : ""
            return
                "@misc{\(key), author={Author \(key)}, title={Title \(key)}, year=2000, note=\(value(names, &random)), series=\(value(names, &random))\(parent)}\n"
        }.joined(separator: "\n")
    }

    @Test(arguments: testSeeds(isTorture ? 600 : 60))
    func whateverFilesDefine_anExportSaysWhatTheyMeant(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        // What is unknown and spelled in two ways behind a definition is written out, which its text says from then on.
        let spellings = Bool.random(using: &random) ? ["acm", "ACM"] : [seed.isMultiple(of: 2) ? "acm" : "ACM"]
        let names = spellings + ["x", "jan", "y_1"]
        let files = (0..<Int.random(in: 1...3, using: &random)).map { file($0, names, &random) }
        try checkExports(of: files, writesAgain: spellings.count > 1, "seed \(seed)")
        countRounds()
    }
}
