import TestSupport
import Testing

@testable import BackupKit

/// A publication that cannot be written as BibTeX costs itself only, and only in what is BibTeX.
@Suite struct UnwritableEntryTests {
    @Test(arguments: [
        #"{"citeKey":"bad","entryType":"misc","title":"A smile :-}"}"#, #"{"citeKey":"bad","a b":"x"}"#,
        #"{"citeKey":"bad","":"x"}"#, #"{"citeKey":"bad","entryType":"a@b"}"#, #"{"citeKey":"bad, {","title":"x"}"#,
        #"{"citeKey":"bad","entryType":"","title":"x"}"#, #"{"title":"no key {"}"#,
    ])
    func aPublicationThatBibTeXCannotHold_costsItselfOnly(fields: String) throws {
        try withStore { test in
            let good = "{\"citeKey\":\"good\",\"title\":\"Good\"}"
            for (name, fields) in [("good", good), ("odd", fields)] {
                try test.store.take(
                    record(name, fields, at: 1, type: RecordType.publication, zone: RecordType.libraryZone))
            }
            // Text that was lost of what stands between entries.
            for kind in ["string", "comment", "preamble", "text"] {
                try test.store.take(
                    record(
                        kind, "{\"file\":\"a.bib\",\"kind\":\"\(kind)\"}", at: 1, type: RecordType.bibliographyPart,
                        zone: RecordType.libraryZone))
            }
            let digest = try test.store.digest()
            let forms: [ExportOptions.Form] = [
                .layout(.directory), .layout(.zip), .imbib(.directory), .imbib(.zip),
            ]
            for (number, form) in forms.enumerated() {
                let path = "\(test.folder)/out\(number)"
                let result = try Exporter.export(test.store, to: path, ExportOptions(form: form))
                let named = result.warnings.filter { $0.severity == .warning && $0.message.contains("lacks the entry") }
                #expect(named.count == 1, "\(form): \(result.warnings)")
                if number > 1 { continue }
                try withStore { other in
                    _ = try Restorer.restore(path, into: other.store, RestoreOptions())
                    #expect(try other.store.digest() == digest, "\(form)")
                }
            }
            _ = try Importer.run(["\(test.folder)/out0/library.bib"], into: test.store, ImportOptions())
        }
    }
}
