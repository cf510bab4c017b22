import TestSupport
import Testing

@testable import BackupKit

/// What a merge of two publications takes from the one that goes.
@Suite struct MergedWorkTests {
    /// The first one is told last, so it is the one that stays.
    private func merge(
        _ kept: String, _ other: String, dryRun: Bool = false
    ) throws -> (fields: [String: String], result: ResolveResult) {
        try withStore { test in
            for (number, text) in [other, kept].enumerated() {
                let path = "\(test.folder)/\(number).bib"
                try writeFile(path, text + "\n", modified: time(Int64(number)).milliseconds / 1000)
                _ = try Importer.run([path], into: test.store, ImportOptions())
                test.clock.advance()
            }
            let conflict = try #require(try test.store.conflicts().first)
            let result = try ConflictResolver.resolve([conflict.id], with: .merge, in: test.store)
            var found: [String: String] = [:]
            try test.store.forEachLive(type: RecordType.publication) { stored in
                for field in try Fields.parse(stored.record.fields) {
                    #expect(found[field.name] == nil, "two works are left")
                    found[field.name] = Fields.string(field.name, in: [field]) ?? field.value
                }
            }
            return (found, result)
        }
    }

    @Test func whatTellsOfTheWork_comesFromTheOneThatStaysAlone() throws {
        let (fields, result) = try merge(
            "@misc{k, title={Beta two}, note={draft}}",
            "@misc{k, author={Smith, Ann}, title={Alpha one}, year={2020}, volume={3}, series={S}, publisher={P}, "
                + "journal={J}, doi={10.1/a}, issn={1}, school={U}, crossref={x}, abstract={A}, custom={c}}")
        #expect(Set(fields.keys) == ["citeKey", "entryType", "title", "note", "abstract", "custom", "rawBibTeX"])
        #expect(fields["title"] == "Beta two")
        let text = try #require(fields["rawBibTeX"])
        #expect(!text.contains("Smith") && !text.contains("2020") && text.contains("abstract"))
        // What is not taken is named.
        let gone = try #require(result.plan.first { $0.action == .remove })
        #expect(
            gone.changes.map(\.name) == [
                "author", "title", "year", "volume", "series", "publisher", "journal", "doi", "issn", "school",
                "crossref",
            ])
    }

    @Test func anEntryOfTheSameWork_fillsWhatTheOtherOneLacks() throws {
        let (fields, result) = try merge(
            "@misc{k, title={Alpha one}, note={draft}}",
            "@article{k, author={Smith, Ann}, title={Alpha one}, year={2020}, journal={J}}")
        #expect(fields["author"] == "Smith, Ann" && fields["year"] == "2020" && fields["journal"] == "J")
        #expect(result.plan.first { $0.action == .remove }?.changes.map(\.name) == ["entryType"])
    }

    @Test func anEqualTitleOfAnotherYear_fillsNothing() throws {
        let (fields, _) = try merge(
            "@article{k, title={Editorial}, year={2021}}",
            "@article{k, title={Editorial}, year={2020}, volume={3}, journal={J}}")
        #expect(fields["volume"] == nil && fields["journal"] == nil && fields["year"] == "2021")
    }
}
