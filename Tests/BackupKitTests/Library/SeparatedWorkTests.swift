import TestSupport
import Testing

@testable import BackupKit

/// Two works that one device has made one, or of which it has kept one, and of which another device decides later, without
/// having heard of it, that both stay.
@Suite struct SeparatedWorkTests {
    private func twoDevices(_ body: (Devices) throws -> Void) throws {
        try withDevices("B", "C") { devices in
            let folder = "\(devices.folder)/bib"
            for file in ["p1", "p3"] { try writeFile("\(folder)/t/\(file).pdf", file) }
            try writeFile(
                "\(folder)/lib.bib",
                """
                @article{k, author={One, A}, title={First work}, year={1991}, tok1={x}, keywords={one, both},
                  abstract={about the first}, file={t/p1.pdf}}
                @article{k, author={Three, C}, title={Third thing}, year={1993}, tok3={x}, keywords={both, three},
                  note={mine}, file={t/p3.pdf}}

                """, modified: devices.clock.now.milliseconds / 1000)
            devices.clock.advance(seconds: 60)
            _ = try Importer.run(["\(folder)/lib.bib"], into: devices["B"], ImportOptions())
            for name in ["B", "C", "B"] { try devices.syncLibrary(name) }
            try body(devices)
            #expect(try devices["B"].sharedDigest() == devices["C"].sharedDigest())
            for name in devices.names {
                #expect(try devices[name].conflicts().isEmpty)
                let assets = try ["p1", "p3"].map { try devices[name].asset("Attachments/t/\($0).pdf") }
                #expect(assets.allSatisfy { $0 != nil })
            }
        }
    }

    private func decide(_ choice: ConflictChoice, _ devices: Devices, on name: String) throws {
        devices.clock.advance()
        let conflict = try #require(try devices[name].conflicts().first)
        _ = try ConflictResolver.resolve([conflict.id], with: choice, in: devices[name])
    }

    /// What each publication says, by its title.
    private func works(_ store: Store) throws -> [String: [String: String]] {
        var found: [String: [String: String]] = [:]
        try store.forEachLive(type: RecordType.publication) { stored in
            let fields = try Fields.parse(stored.record.fields)
            found[Fields.string("title", in: fields) ?? ""] = Dictionary(
                uniqueKeysWithValues: try fields.map {
                    ($0.name, String(decoding: try Fields.canonical($0.value), as: UTF8.self))
                })
        }
        return found
    }

    @Test(
        arguments: [ConflictChoice.merge, .keepExisting, .keepIncoming],
        [ConflictChoice.renameIncoming, .renameExisting, .keepBoth])
    func aLaterDecisionForBoth_leavesBothAsTheyWere(_ earlier: ConflictChoice, _ later: ConflictChoice) throws {
        for first in ["B", "C"] {
            try twoDevices { devices in
                try decide(earlier, devices, on: "B")
                try decide(later, devices, on: "C")
                let expected = try works(devices["C"])
                #expect(expected.count == 2)
                let other = first == "B" ? "C" : "B"
                for name in [first, other, first, other, first] { try devices.syncLibrary(name) }
                for name in devices.names { #expect(try works(devices[name]) == expected, "\(name), first \(first)") }
                // Nothing is left to give back.
                for name in devices.names { #expect(try devices.syncLibrary(name).pushed == 0) }
            }
        }
    }

    /// What somebody has written into the merged work since stays in it, and so does what another merge took in.
    @Test(arguments: ["B", "C"])
    func whatWasWrittenSince_stays(first: String) throws {
        try twoDevices { devices in
            try decide(.merge, devices, on: "B")
            devices.clock.advance()
            var merged: Record?
            try devices["B"].forEachLive(type: RecordType.publication) { merged = $0.record }
            let id = try #require(merged?.id)
            try devices["B"].write {
                let stored = try #require(try devices["B"].record(id))
                let fields =
                    try Fields.parse(stored.record.fields).filter { $0.name != "keywords" }
                    + [Field("comment", .string("new")), Field("keywords", .string("both, three, one, new"))]
                try devices["B"].put(
                    stored.record.edited(fields, at: devices["B"].timeAfter(stored.record)), replacing: stored)
            }
            try decide(.keepBoth, devices, on: "C")
            let title = try #require(try works(devices["B"]).keys.first)
            let expected = try works(devices["C"])
            let other = first == "B" ? "C" : "B"
            for name in [first, other, first, other, first] { try devices.syncLibrary(name) }
            for name in devices.names {
                let works = try works(devices[name])
                for (work, fields) in expected {
                    let shown = try #require(works[work])
                    #expect(shown["abstract"] == fields["abstract"] && shown["linkedFiles"] == fields["linkedFiles"])
                    #expect(shown["tok1"] == fields["tok1"] && shown["tok3"] == fields["tok3"])
                    #expect((shown["comment"] != nil) == (work == title))
                    let keywords = work == title ? "new" : ""
                    #expect(shown["keywords"]?.contains("new") == !keywords.isEmpty, "\(shown)")
                }
            }
        }
    }

    /// A work that is gone cannot get anything back: then the merged one keeps what it took.
    @Test func aLaterDecisionAboutAnotherWork_takesNothingOutOfAMerge() throws {
        try withQuickFolder { folder in
            let office = try Office(folder, with: ["a", "b", "c"])
            try office.decide(.merge, "a", "b", on: 0)
            office.clock.advance()
            try office.decide(.keepBoth, "a", "c", on: 1)
            try office.settle()
            #expect(try office.outcome("").works == ["a": ["a", "b"], "c": ["c"]])
        }
    }
}

/// A merge of a record of which another device has a version that no hub has seen.
@Suite struct UnseenMergeTests {
    private func entries(_ first: String, _ third: String) -> String {
        "@article{k, author={One, A}, title={First work}, year={1991}, journal={J}, tok1={x}\(first)}\n"
            + "@article{k, author={Three, C}, title={Third thing}, year={1993}, tok3={x}\(third)}\n"
    }

    /// B merges, and C has a version of the merged work with `more`.
    private func meet(_ more: String, _ check: (Devices, _ survivor: Record, _ told: [Finding]) throws -> Void) throws {
        try withDevices("B", "C") { devices in
            func take(_ name: String, _ text: String) throws {
                let folder = "\(devices.folder)/\(name)"
                try writeFile("\(folder)/t/p2.pdf", "on C")
                try writeFile("\(folder)/lib.bib", text, modified: devices.clock.now.milliseconds / 1000)
                devices.clock.advance(seconds: 60)
                _ = try Importer.run(["\(folder)/lib.bib"], into: devices[name], ImportOptions())
            }
            let own = ", annote={own}"
            try take("B", entries(own, own))
            let conflict = try #require(try devices["B"].conflicts().first)
            _ = try ConflictResolver.resolve([conflict.id], with: .merge, in: devices["B"])
            let gone = try devices["B"].livePublications()[0].fields.contains("First work") ? "Third" : "First"
            try take("C", gone == "First" ? entries(more, own) : entries(own, more))
            try devices.syncLibrary("B")
            var told: [Finding] = []
            for name in ["C", "B", "C", "B"] { told += try devices.syncLibrary(name).findings }
            #expect(try devices["B"].sharedDigest() == devices["C"].sharedDigest())
            let live = try devices["C"].livePublications()
            try #require(live.count == 1)
            try check(devices, live[0], told)
        }
    }

    @Test(arguments: [
        ", annote={own}, file={t/p2.pdf}", ", annote={own}, abstract={mine}", ", keywords={onC}", ", annote={own}",
    ])
    func itsFieldsAndFiles_goIntoTheSurvivor(more: String) throws {
        try meet(more) { devices, survivor, told in
            let value = more.split(separator: "{").last?.dropLast() ?? ""
            #expect(value.isEmpty || survivor.fields.contains(value), "\(survivor.fields)")
            #expect(told.allSatisfy { $0.code != .protected }, "\(told)")
            for name in devices.names {
                let all = try devices[name].all()
                #expect(all.allSatisfy { $0.type != Quarantine.type })
                let file = try devices[name].asset("Attachments/t/p2.pdf")
                #expect(!more.contains("pdf") || file != nil)
            }
        }
    }

    /// None of the survivor's own values is replaced, and nothing is lost without a word.
    @Test func anotherValue_isInQuarantine_andNamed() throws {
        try meet(", keywords={onC}, annote={other}") { devices, survivor, told in
            #expect(survivor.fields.contains("onC") && survivor.fields.contains("\"annote\":\"own\""))
            #expect(told.contains { $0.code == .protected && $0.message.contains("is in quarantine") })
            let kept = try devices["C"].all().compactMap { try Quarantine.content(of: $0)?.fields }
            #expect(kept.count == 1 && kept[0].contains("other"))
        }
    }
}

extension Store {
    fileprivate func livePublications() throws -> [Record] {
        var found: [Record] = []
        try forEachLive(type: RecordType.publication) { found.append($0.record) }
        return found
    }
}
