import TestSupport
import Testing

@testable import BackupKit

/// A library and the ways by which older versions of it come back.
struct WaysBack {
    static let all = [
        "restore", "restore --mode replace", "restore --only publications", "restore --match", "import of the backup",
        "import of the old file", "restore --sync-policy quarantine",
    ]

    let test: TestStore
    var store: Store { test.store }
    var backup: String { "\(test.folder)/backup" }
    var oldFile: String { "\(test.folder)/old.bib" }

    func take(_ text: String, _ name: String = "w.bib") throws {
        try writeFile("\(test.folder)/\(name)", text, modified: test.clock.now.milliseconds / 1000)
        _ = try Importer.run(["\(test.folder)/\(name)"], into: store, ImportOptions())
        test.clock.advance(seconds: 60)
    }

    /// Imports the first version of a library, and makes a backup of it.
    func begin(_ text: String) throws {
        try writeFile(oldFile, text, modified: test.clock.now.milliseconds / 1000)
        try take(text)
        try export()
    }

    func export() throws {
        var options = ExportOptions(form: .layout(.directory))
        options.replace = true
        _ = try Exporter.export(store, to: backup, options)
        test.clock.advance(seconds: 60)
    }

    func alive(_ word: String) throws -> [Record] {
        try store.all().filter {
            $0.type == RecordType.publication && !$0.isDeleted && $0.fields.contains(word)
        }
    }

    /// How many versions wait in quarantine.
    func aside(_ word: String) throws -> Int {
        try store.all().count { $0.type == Quarantine.type && !$0.isDeleted && $0.fields.contains(word) }
    }

    func delete(_ word: String) throws {
        for record in try alive(word) { _ = try store.curate(.delete, [record.id.description]) }
        test.clock.advance(seconds: 60)
    }

    func purge() throws {
        var options = PurgeOptions()
        options.deletedBefore = test.clock.now
        _ = try Purge.run(store, options)
    }

    /// Takes the older version in again; a quarantine is looked at as it is.
    func goBack(_ way: String, resurrect: Bool = false) throws -> IntakeResult {
        var options = RestoreOptions()
        if resurrect { options.policy = .resurrect }
        switch way {
        case "import of the backup": return try Importer.run([backup], into: store, ImportOptions())
        case "import of the old file": return try Importer.run([oldFile], into: store, ImportOptions())
        case "restore --mode replace": options.mode = .replace
        case "restore --only publications": options.kinds = [.publications]
        case "restore --match": options.match = RecordQuery(["secret"])
        case "restore --sync-policy quarantine": options.policy = .quarantine
        default: break
        }
        return try Restorer.restore(backup, into: store, options)
    }
}

@Suite struct DeletedVersionTests {
    private static let secret = "@article{k, title={Secret of Ann}, author={Au, B}, year={1995}}\n"

    @Test(arguments: WaysBack.all, [false, true])
    func aDeletedCopyForThisDevice_staysDeleted(way: String, isPurged: Bool) throws {
        try withStore { test in
            let library = WaysBack(test: test)
            try library.begin(Self.secret)
            for record in try library.alive("Secret") { _ = try test.store.curate(.setLocal, [record.id.description]) }
            if way != "import of the old file" { try library.export() }
            try library.delete("Secret")
            if isPurged { try library.purge() }
            let result = try library.goBack(way)
            #expect(try library.alive("Secret").isEmpty)
            if way == "restore" { #expect(result.stayedDeleted == 1 && result.added == 0) }
            guard way == "restore --sync-policy quarantine" else { return }
            #expect(try library.aside("Secret") == (isPurged ? 0 : 1))
        }
    }

    @Test func aDeletedCopyForThisDevice_comesBackAsOne_whereThatIsAskedFor() throws {
        try withStore { test in
            let library = WaysBack(test: test)
            try library.begin(Self.secret)
            for record in try library.alive("Secret") { _ = try test.store.curate(.setLocal, [record.id.description]) }
            try library.export()
            let before = try library.alive("Secret")
            try library.delete("Secret")
            _ = try library.goBack("restore", resurrect: true)
            let after = try library.alive("Secret")
            #expect(after.map(\.id) == before.map(\.id) && after.allSatisfy(\.isLocalOnly))
            _ = try library.goBack("restore --mode replace")
            #expect(try library.alive("Secret") == after)
        }
    }
}
