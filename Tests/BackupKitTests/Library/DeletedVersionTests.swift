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
            for record in try library.alive("Secret") { _ = try test.store.keepOnThisDevice([record.id.description]) }
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
            for record in try library.alive("Secret") { _ = try test.store.keepOnThisDevice([record.id.description]) }
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

    /// An app saves its whole file again, and nobody has edited the entry in it.
    @Test(arguments: [", doi={10.1/x}", ", journal={J}, volume={3}"])
    func whatAnotherFileEdited_staysDeleted_whenTheFirstOneIsSavedAgain(edit: String) throws {
        try withStore { test in
            let library = WaysBack(test: test)
            try library.take(Self.secret)
            try library.take(Self.secret.replacing("year={1995}", with: "year={1995}\(edit)"), "other.bib")
            #expect(try library.alive("Secret").count == 1)
            try library.delete("Secret")
            try library.take(Self.secret + "@misc{new, title={New}}\n")
            #expect(try library.alive("Secret").isEmpty)
            #expect(try library.alive("New").count == 1)
        }
    }

    /// Neither the id nor the last words of the tombstone are those of the version that comes: another device had it only.
    @Test func aVersionThatOnlyAnotherDeviceHad_staysDeleted() throws {
        try withDevices("A", "B") { devices in
            func take(_ note: Int, on name: String) throws {
                let path = "\(devices.folder)/\(name)\(note)/w.bib"
                let text = "@article{k, title={Secret}, author={Au, B}, note={\(note)}}\n"
                try writeFile(path, text, modified: devices.clock.now.milliseconds / 1000 - 10000 + Int64(note))
                _ = try Importer.run([path], into: devices[name], ImportOptions())
                devices.clock.advance(seconds: 60)
            }
            func alive(_ name: String) throws -> [Record] {
                try devices[name].all().filter { $0.type == RecordType.publication && !$0.isDeleted }
            }
            try take(0, on: "B")
            for name in ["B", "A"] { try devices.syncLibrary(name) }
            for note in 1...2 {
                try devices["B"].write {
                    let known = try #require(try alive("B").first)
                    let fields = try Fields.parse(known.fields.replacing("\(note - 1)", with: "\(note)"))
                    let stored = try devices["B"].record(known.id)
                    try devices["B"].put(known.edited(fields, at: devices["B"].now()), replacing: stored)
                }
            }
            _ = try devices["B"].delete([try #require(alive("B").first).id.description])
            for name in ["B", "A"] { try devices.syncLibrary(name) }
            try take(1, on: "A")
            #expect(try alive("A").isEmpty)
        }
    }

    /// Two devices edit one publication, each in its own way, and both delete it.
    @Test(arguments: [["A", "B"], ["B", "A"]])
    func whatTwoDevicesEditedAndDeleted_staysDeleted_inEitherVersion(order: [String]) throws {
        let edits = [", doi={10.1/x}", ", journal={J}, volume={3}"]
        for version in edits {
            try withDevices("A", "B") { devices in
                func take(_ edit: String, on name: String, in folder: String) throws {
                    let path = "\(devices.folder)/\(folder)/w.bib"
                    let text = Self.secret.replacing("year={1995}", with: "year={1995}\(edit)")
                    try writeFile(path, text, modified: devices.clock.now.milliseconds / 1000 - 10)
                    _ = try Importer.run([path], into: devices[name], ImportOptions())
                    devices.clock.advance(seconds: 60)
                }
                func alive(_ name: String) throws -> [Record] {
                    try devices[name].all().filter { $0.type == RecordType.publication && !$0.isDeleted }
                }
                try take("", on: "A", in: "a")
                for name in ["A", "B"] { try devices.syncLibrary(name) }
                // What is imported again later was written before the deletes.
                for edit in edits {
                    try writeFile(
                        "\(devices.folder)/\(edit.count)/old.bib",
                        Self.secret.replacing("year={1995}", with: "year={1995}\(edit)"),
                        modified: devices.clock.now.milliseconds / 1000)
                }
                for (name, edit) in zip(order, edits) {
                    try take(edit, on: name, in: name)
                    _ = try devices[name].delete([#require(alive(name).first).id.description])
                    devices.clock.advance(seconds: 60)
                }
                for name in ["A", "B", "A", "B"] { try devices.syncLibrary(name) }
                for name in ["A", "B"] {
                    let path = "\(devices.folder)/\(version.count)/old.bib"
                    _ = try Importer.run([path], into: devices[name], ImportOptions())
                    #expect(try alive(name).isEmpty, "\(name) \(version)")
                }
            }
        }
    }

    /// A store that has the first version only hears from a backup that a later one was deleted elsewhere.
    @Test(arguments: [", doi={10.1/x}", ", journal={J}, volume={3}"])
    func aBackupWithTheDeleteOfALaterVersion_deletesTheFirstOne(edit: String) throws {
        try withStore { test in
            let library = WaysBack(test: test)
            try library.take(Self.secret)
            let other = try Store.create("\(test.folder)/other.db", clock: test.clock.clock)
            let theirs = WaysBack(test: TestStore(store: other, clock: test.clock, folder: test.folder))
            try theirs.take(Self.secret)
            try theirs.take(Self.secret.replacing("year={1995}", with: "year={1995}\(edit)"))
            try theirs.delete("Secret")
            try theirs.export()
            let result = try library.goBack("restore")
            #expect(try library.alive("Secret").isEmpty)
            #expect(result.removed == 1)
        }
    }

    @Test func aCopyForThisDevice_isKnownByTheNameThatEverybodyElseKnows() throws {
        try withStore { test in
            let library = WaysBack(test: test)
            try library.begin(Self.secret)
            let name = try #require(library.alive("Secret").first).id
            _ = try test.store.setLocal([name.description])
            #expect(try test.store.enableCloud([name.description]) == [name])
        }
    }

    /// What an entry said when it was backed up, and what it says when it is deleted.
    private static let edits =
        DeletedWorkTests.edits + [
            [secret, "@article{k, title={Secret of Ann}, author={Au, B}, year={1995}, doi={10.1/x}, journal={J}}\n"]
        ]

    @Test(arguments: edits, WaysBack.all)
    func whatWasEditedAndDeleted_staysDeleted_whicheverVersionComes(versions: [String], way: String) throws {
        try withStore { test in
            let library = WaysBack(test: test)
            try library.begin(versions[0].replacing("title={P}", with: "title={Secret P}"))
            try library.take(versions[1].replacing("title={P}", with: "title={Secret P}"))
            #expect(try library.alive("Secret").count == 1)
            try library.delete("Secret")
            let result = try library.goBack(way)
            #expect(try library.alive("Secret").isEmpty)
            #expect(result.quarantined == 1 || result.stayedDeleted == 1, "\(result)")
        }
    }

    @Test(arguments: WaysBack.all, [false, true])
    func whatADecisionRenamed_staysDeleted_whicheverVersionComes(way: String, isPurged: Bool) throws {
        try withStore { test in
            let library = WaysBack(test: test)
            let other = "@article{k, title={Other}, author={Cu, B}, year={1996}}\n"
            let versions = ["v1", "v9"].map { Self.secret.replacing("}}", with: "}, abstract={\($0)}}") + other }
            try library.begin(versions[0])
            try library.take(versions[1])
            let conflict = try #require(test.store.conflicts().first)
            let isFirst = try library.alive("Secret").contains { $0.localID == conflict.existing }
            _ = try ConflictResolver.resolve(
                [conflict.id], with: isFirst ? .renameExisting : .renameIncoming, newKey: "zz", in: test.store)
            test.clock.advance(seconds: 60)
            try library.delete("Secret")
            if isPurged { try library.purge() }
            let result = try library.goBack(way)
            #expect(try library.alive("Secret").isEmpty)
            #expect(try library.alive("Other").count == 1)
            #expect(try library.aside("Secret") == 0 || !isPurged && result.quarantined > 0)
            #expect(try test.store.conflicts().isEmpty)
        }
    }

    /// It comes back as the record that it was, in one piece, and its other versions do not come beside it.
    @Test(arguments: edits) func whatWasEditedAndDeleted_comesBackAsOne_whereThatIsAskedFor(versions: [String]) throws {
        try withStore { test in
            let library = WaysBack(test: test)
            try library.begin(versions[0].replacing("title={P}", with: "title={Secret P}"))
            try library.take(versions[1].replacing("title={P}", with: "title={Secret P}"))
            let before = try library.alive("Secret").map(\.id)
            try library.delete("Secret")
            _ = try library.goBack("restore", resurrect: true)
            #expect(try library.alive("Secret").map(\.id) == before)
            for way in WaysBack.all where way != "restore --sync-policy quarantine" {
                _ = try library.goBack(way)
                #expect(try library.alive("Secret").map(\.id) == before, "\(way)")
            }
        }
    }

    /// A new device gets the delete from the hub, and then an old backup of the other one.
    @Test(arguments: edits, [false, true])
    func whatAnotherDeviceEditedAndDeleted_staysDeleted(versions: [String], isOnlyDeleted: Bool) throws {
        try withDevices("A", "B") { devices in
            let path = "\(devices.folder)/w.bib"
            for (number, text) in versions.enumerated() {
                try writeFile(path, text, modified: devices.clock.now.milliseconds / 1000)
                _ = try Importer.run([path], into: devices["A"], ImportOptions())
                if number == 0 {
                    let options = ExportOptions(form: .layout(.directory))
                    _ = try Exporter.export(devices["A"], to: "\(devices.folder)/backup", options)
                }
                devices.clock.advance(seconds: 60)
                if !isOnlyDeleted { for name in ["A", "B"] { try devices.syncLibrary(name) } }
            }
            let deleter = isOnlyDeleted ? "A" : "B"
            for record in try devices[deleter].all() where record.type == RecordType.publication && !record.isDeleted {
                _ = try devices[deleter].curate(.delete, [record.id.description])
            }
            for name in [deleter, "A", "B"] { try devices.syncLibrary(name) }
            for name in ["A", "B"] {
                _ = try Restorer.restore("\(devices.folder)/backup", into: devices[name], RestoreOptions())
                let alive = try devices[name].all().filter { $0.type == RecordType.publication && !$0.isDeleted }
                #expect(alive.isEmpty, "\(name)")
            }
        }
    }

    private static func volume(_ key: String, _ volume: Int, _ more: String = "") -> String {
        "@book{\(key), author={Knuth, D}, title={Collected Works}, year={1997}, volume={\(volume)}\(more)}\n"
    }

    /// Two works that only this tells apart.
    enum Difference: CaseIterable {
        case volume, kind, month

        func entry(_ key: String, _ number: Int, _ more: String = "") -> String {
            let words = "{\(key), author={Knuth, D}, title={Collected Works}, year={1997}"
            return switch self {
            case .volume: "@book\(words), volume={\(number)}\(more)}\n"
            case .kind: "@\(number == 1 ? "book" : "article")\(words)\(more)}\n"
            case .month: "@book\(words), month=\(number == 1 ? "jan" : "feb")\(more)}\n"
            }
        }
    }

    /// No identifier tells the two apart, so the first of them that comes into a store has the id of both.
    @Test(arguments: ["", ", doi={10.1/v}"], [false, true])
    func anotherVolume_isNotWhatWasDeleted(edit: String, isPurged: Bool) throws {
        for difference in Difference.allCases {
            for key in ["k", "k2"] { try askForOther(difference, key, edit, isPurged) }
        }
    }

    private func askForOther(_ difference: Difference, _ key: String, _ edit: String, _ isPurged: Bool) throws {
        try withStore { test in
            let library = WaysBack(test: test)
            let other = difference.entry(key, 2, ", note={secret}")
            try withStore { another in
                let theirs = WaysBack(test: another)
                try theirs.begin(other)
                try writeFile(library.oldFile, String(decoding: readFile(theirs.oldFile), as: UTF8.self))
                for way in WaysBack.all where way != "import of the old file" && !way.contains("quarantine") {
                    let mine = "\(test.folder)/\(WaysBack.all.firstIndex(of: way) ?? 0).db"
                    let store = try Store.create(mine, clock: test.clock.clock)
                    let visited = WaysBack(test: TestStore(store: store, clock: test.clock, folder: another.folder))
                    try visited.take(difference.entry("k", 1), "mine.bib")
                    if !edit.isEmpty { try visited.take(difference.entry("k", 1, edit), "mine.bib") }
                    try visited.delete("Collected")
                    if isPurged { try visited.purge() }
                    _ = try visited.goBack(way)
                    #expect(try visited.alive("secret").count == 1, "\(way) \(difference)")
                }
            }
            try library.take(difference.entry("k", 1))
            if !edit.isEmpty { try library.take(difference.entry("k", 1, edit)) }
            try library.delete("Collected")
            if isPurged { try library.purge() }
            _ = try library.goBack("import of the old file")
            #expect(try library.alive("secret").count == 1, "\(difference)")
        }
    }

    /// One volume was deleted, and a backup has an edit of the other one, which lives.
    @Test(arguments: ["restore", "restore --mode replace", "restore --only publications"])
    func anEditOfAnotherVolume_isTaken(way: String) throws {
        try withStore { test in
            let library = WaysBack(test: test)
            try library.take(Self.volume("k1", 1) + Self.volume("k2", 2))
            for record in try library.alive("\"volume\":\"1\"") {
                _ = try test.store.curate(.delete, [record.id.description])
            }
            test.clock.advance(seconds: 60)
            try withStore { another in
                another.clock.advance(seconds: 3600)
                let theirs = WaysBack(test: another)
                try theirs.take(Self.volume("k2", 2, ", abstract={edited}"))
                try theirs.export()
                test.clock.advance(seconds: 7200)
                let visited = WaysBack(
                    test: TestStore(store: test.store, clock: test.clock, folder: another.folder))
                _ = try visited.goBack(way)
            }
            let living = try library.alive("Collected")
            #expect(living.count == 1 && living[0].fields.contains("edited"), "\(living.map(\.fields))")
        }
    }
}
