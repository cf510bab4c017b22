import TestSupport
import Testing

@testable import BackupKit

/// Files of one library on two devices: each is imported again when anything in it was edited.
@Suite struct EntryAgeTests {
    private struct Desks {
        let devices: Devices

        @discardableResult
        func take(_ name: String, _ text: String, mirror: Bool = false) throws -> IntakeResult {
            devices.clock.advance(seconds: 60)
            let path = "\(devices.folder)/\(name)/refs.bib"
            try writeFile(path, text, modified: devices.clock.now.milliseconds / 1000)
            devices.clock.advance(seconds: 60)
            var options = ImportOptions()
            options.mirror = mirror
            return try Importer.run([path], into: devices[name], options)
        }

        func sync(_ names: String...) throws { for name in names { try devices.sync(name) } }

        /// Of each living publication its title and note, on both devices.
        func works() throws -> [Set<String>] {
            try ["A", "B"].map { name in
                Set(
                    try devices[name].all().filter { $0.type == RecordType.publication && !$0.isDeleted }.map {
                        let fields = try Fields.parse($0.fields)
                        return ["title", "note"].map { Fields.string($0, in: fields) ?? "-" }.joined(separator: ", ")
                    })
            }
        }

        func expectBoth(_ expected: Set<String>, at place: SourceLocation = #_sourceLocation) throws {
            #expect(try works() == [expected, expected], sourceLocation: place)
        }

        func texts() throws -> [String] {
            try ["A", "B"].flatMap { name in
                try devices[name].all().filter { $0.type == RecordType.bibliographyPart && !$0.isDeleted }
                    .map(\.fields).filter { $0.contains("@string") }
            }
        }
    }

    /// Two devices that imported the same file and have synced.
    private func withDesks(_ text: String, _ body: (Desks) throws -> Void) throws {
        try withDevices("A", "B") { devices in
            let desks = Desks(devices: devices)
            for name in devices.names { try desks.take(name, text) }
            try desks.sync("A", "B", "A")
            try body(desks)
        }
    }

    private static func one(_ note: String, title: String = "One") -> String {
        "@article{one, author={Ann Smith}, title={\(title)}, year=2001, doi={10.1000/one}, note={\(note)}}\n"
    }
    private static func two(_ note: String) -> String {
        "@article{two, author={Bob Ray}, title={Two}, year=2002, doi={10.1000/two}, note={\(note)}}\n"
    }

    @Test(arguments: [false, true])
    func anEntryThatNobodyTouched_overwritesNoNewerEdit(mirror: Bool) throws {
        try withDesks(Self.one("old") + Self.two("old")) { desks in
            try desks.take("A", Self.one("new") + Self.two("old"))
            try desks.sync("A", "B")
            for note in ["read", "read again"] {
                try desks.take("B", Self.one("old") + Self.two(note), mirror: mirror)
                try desks.sync("B", "A")
                try desks.expectBoth(["One, new", "Two, \(note)"])
            }
        }
    }

    @Test func aFieldThatNobodyTouched_overwritesNoNewerEdit() throws {
        try withDesks(Self.one("old")) { desks in
            try desks.take("A", Self.one("new"))
            try desks.sync("A", "B")
            try desks.take("B", Self.one("old", title: "One, again"))
            try desks.sync("B", "A")
            try desks.expectBoth(["One, again, new"])
        }
    }

    @Test func anEntryThatNobodyTouched_bringsNoDeletedWorkBack() throws {
        try withDesks(Self.one("old") + Self.two("old")) { desks in
            let one = try #require(try desks.devices["A"].all().first { $0.fields.contains("\"one\"") })
            desks.devices.clock.advance()
            _ = try desks.devices["A"].delete([one.localID])
            try desks.sync("A", "B")
            // Also where only its spaces have changed.
            for entry in [Self.one("old"), Self.one("old").replacing(", ", with: ",\n  ")] {
                try desks.take("B", entry + Self.two("read"))
                try desks.sync("B", "A")
                try desks.expectBoth(["Two, read"])
            }
            // Who adds it again means it.
            try desks.take("B", Self.two("read"))
            try desks.take("B", Self.one("old") + Self.two("read"))
            try desks.sync("B", "A")
            try desks.expectBoth(["One, old", "Two, read"])
        }
    }

    /// The file found a publication that an app had made, so its id says nothing of the work.
    @Test func anEntryThatNobodyTouched_bringsNoDeletedWorkOfAnAppBack() throws {
        try withDevices("A", "B") { devices in
            let desks = Desks(devices: devices)
            let now = devices.clock.now
            try devices["A"].take(
                Record(
                    id: RecordID(zone: RecordType.libraryZone, name: "app-1"), type: RecordType.publication,
                    localID: "app-1",
                    fields: #"{"citeKey":"one","author":"Ann Smith","title":"One","year":"2001","doi":"10.1000/one"}"#,
                    createdAt: now, modifiedAt: now))
            try desks.take("A", Self.one("old") + Self.two("old"))
            try desks.sync("A", "B")
            #expect(try devices["A"].all().contains { $0.localID == "app-1" && $0.fields.contains("old") })
            devices.clock.advance()
            _ = try devices["B"].delete(["app-1"])
            try desks.sync("B", "A")
            for entry in [Self.one("old"), Self.one("old").replacing(", ", with: ",\n  ")] {
                try desks.take("A", entry + Self.two("read"))
                try desks.sync("A", "B")
                try desks.expectBoth(["Two, read"])
            }
            // Another work under the old key is another work, and an edit is newer than the delete.
            try desks.take("A", Self.one("old").replacing("One", with: "Another") + Self.two("read"))
            try desks.sync("A", "B")
            try desks.expectBoth(["Another, old", "Two, read"])
            #expect(try devices["A"].all().allSatisfy { $0.localID != "app-1" || $0.isDeleted })
        }
    }

    @Test func aMacroThatNobodyTouched_overwritesNoNewerEdit() throws {
        try withDesks("@string{j={old}}\n" + Self.two("old")) { desks in
            try desks.take("A", "@string{j={new}}\n" + Self.two("old"))
            try desks.sync("A", "B")
            try desks.take("B", "@string{j={old}}\n" + Self.two("read"))
            try desks.sync("B", "A")
            let texts = try desks.texts()
            #expect(texts.count == 2 && texts.allSatisfy { $0.contains("new") }, "\(texts)")
        }
    }

    /// What the file says again is newer than what it said in between.
    @Test func anEditThatIsTakenBackInTheFile_isAnEdit() throws {
        try withDesks(Self.one("old")) { desks in
            for note in ["new", "old"] {
                try desks.take("B", Self.one(note))
                #expect(try desks.works()[1] == ["One, \(note)"])
            }
        }
    }

    /// An undo that no sync has made newer takes no part in this.
    @Test func anImportThatWasUndone_isTakenAgain() throws {
        try withDesks(Self.one("old")) { desks in
            try desks.take("A", Self.one("new"))
            _ = try desks.devices["A"].undoLast()
            #expect(try desks.works()[0] == ["One, old"])
            try desks.take("A", Self.one("new") + Self.two("old"))
            #expect(try desks.works()[0] == ["One, new", "Two, old"])
        }
    }
}
