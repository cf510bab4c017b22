import Glibc
import TestSupport
import Testing

@testable import BackupKit

extension String {
    fileprivate var replacingNote: String { split(separator: ", note=")[0] + "}\n" }
}

/// A library that is imported from another place than before.
@Suite struct MirrorMoveTests {
    private func entry(_ number: Int, _ note: String) -> String {
        "@article{k\(number), author={Smith, Ann}, title={On Cats number \(number)}, year={2020}, note={\(note)}}\n"
    }

    /// What the store has after a library of six entries was imported again as `mirrored`, moved or copied.
    private func mirror(isCopy: Bool, _ mirrored: String) throws -> Set<String> {
        try withTemporaryFolder { folder in
            for name in ["a", "b"] { try Directory.create("\(folder)/\(name)") }
            let store = try Store.create("\(folder)/s.db")
            try writeFile("\(folder)/a/references.bib", (1...6).map { entry($0, "old") }.joined())
            _ = try Importer.run(["\(folder)/a/references.bib"], into: store, ImportOptions())
            if !isCopy { unlink("\(folder)/a/references.bib") }
            usleep(20_000)
            try writeFile("\(folder)/b/references.bib", mirrored)
            var options = ImportOptions()
            options.mirror = true
            _ = try Importer.run(["\(folder)/b/references.bib"], into: store, options)
            return Set(
                try store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }.map {
                    let fields = try Fields.parse($0.fields)
                    return "\(Fields.string("citeKey", in: fields) ?? "") \(Fields.string("note", in: fields) ?? "-")"
                })
        }
    }

    @Test func aLibraryThatMoved_isMirroredAtItsNewPlace() throws {
        let text = (2...6).map { entry($0, $0 == 2 ? "new" : "old") }.joined()
        #expect(try mirror(isCopy: false, text) == ["k2 new", "k3 old", "k4 old", "k5 old", "k6 old"])
        // The file is still there, and still holds the first entry.
        #expect(try mirror(isCopy: true, text).contains("k1 old"))
    }

    /// An entry that only lost a field has nothing newer; the mirror removes the field.
    @Test func whatTheMirrorHasDone_isNotSaidToBeLeftOut() throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/l.bib"
            let store = try Store.create("\(folder)/s.db")
            var options = ImportOptions()
            options.mirror = true
            for text in [entry(1, "old") + entry(2, "old"), entry(1, "old").replacingNote + entry(2, "old")] {
                try writeFile(path, text)
                let result = try Importer.run([path], into: store, options)
                #expect(!result.needsAttention, "\(result.findings)")
                usleep(20_000)
            }
            #expect(try store.all().filter { $0.fields.contains("\"note\"") && !$0.isDeleted }.count == 1)
        }
    }

    @Test func anotherLibraryOfThatName_takesNothingAway() throws {
        let stranger = "@article{z, author={Doe, Zoe}, title={Ropes}, year={2001}, note={z}}\n"
        #expect(try mirror(isCopy: false, stranger).count == 7)
    }
}
