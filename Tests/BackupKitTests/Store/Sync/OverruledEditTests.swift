import TestSupport
import Testing

@testable import BackupKit

@Suite struct OverruledEditTests {
    private let before = "{\"text\":\"vaccinated\"}"
    private let edit = "{\"text\":\"vaccinated, and why\"}"

    private func withDeletedEdit(_ body: (Devices, SyncResult) throws -> Void) throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", before)
            try devices.syncAll()
            try devices.edit("A", "r", edit)
            devices.clock.advance(seconds: 60)
            _ = try devices["B"].curate(.delete, ["r"])
            try devices.sync("B")
            try body(devices, devices.sync("A"))
        }
    }

    @Test func anUnsentEditOfWhatWasDeletedLater_isInQuarantine_andNamed() throws {
        try withDeletedEdit { devices, result in
            #expect(try devices.shown("A", "r") == nil)
            let finding = try #require(result.findings.first { $0.code == .protected })
            #expect(finding.severity == .warning && finding.message.contains("is in quarantine"))
            _ = try Quarantine.enableCloud(["r"], in: devices["A"], dryRun: false)
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == edit) }
        }
    }

    @Test func whatTheOtherDeviceBringsBackItself_leavesTheEditInQuarantine() throws {
        try withDeletedEdit { devices, _ in
            _ = try devices["B"].undoLast()
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == before) }
            let kept = try devices["A"].all().compactMap { try Quarantine.content(of: $0) }
            #expect(kept.map(\.fields) == [edit])
        }
    }

    @Test func aDeleteOfWhatTheHubHas_putsNothingAside() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", before)
            try devices.syncAll()
            devices.clock.advance(seconds: 60)
            try devices.delete("B", "r")
            try devices.sync("B")
            let result = try devices.sync("A")
            #expect(result.findings.isEmpty)
            #expect(try devices["A"].all().allSatisfy { $0.type != Quarantine.type })
        }
    }
}

/// Whatever one device says and another had not heard of when it deleted, decided or said something else.
@Suite struct UnseenVersionTests {
    private static let work = "author={Ann, A}, title={On ants}, year={2020}"

    private func take(_ devices: Devices, _ name: String, _ more: String) throws {
        devices.clock.advance(seconds: 60)
        let path = "\(devices.folder)/\(name).bib"
        try writeFile(
            path, "@article{k, \(Self.work)\(more)}\n@article{k, author={Zoe, Z}, title={On zebras}, year={2021}}\n",
            modified: devices.clock.now.milliseconds / 1000)
        devices.clock.advance(seconds: 60)
        _ = try Importer.run([path], into: devices[name], ImportOptions())
    }

    private func ants(_ devices: Devices, _ name: String) throws -> Record? {
        try devices[name].all().first {
            !$0.isDeleted && $0.type == RecordType.publication && $0.fields.contains("On ants")
        }
    }

    private func aside(_ devices: Devices, _ name: String) throws -> [String] {
        try devices[name].all().compactMap { try Quarantine.content(of: $0)?.fields }
    }

    /// C's version was on no hub when A's delete comes, or was on the hub and A had not heard of it.
    @Test(arguments: [false, true], [false, true])
    func whatADeleteHadNotHeardOf_isInQuarantine(isSent: Bool, isKnownBefore: Bool) throws {
        try withDevices("A", "C") { devices in
            try take(devices, "A", "")
            try devices.syncLibrary("A")
            if isKnownBefore { try devices.syncLibrary("C") }
            try take(devices, "C", ", abstract={written on C}")
            if isSent { try devices.syncLibrary("C") }
            devices.clock.advance(seconds: 60)
            _ = try devices["A"].delete([try #require(try ants(devices, "A")).id.description])
            let told = try devices.syncLibrary("A").findings + devices.syncLibrary("C").findings
            #expect(told.contains { $0.code == .protected && $0.message.contains("is in quarantine") })
            let kept = try aside(devices, isSent ? "A" : "C")
            #expect(kept.count == 1 && kept[0].contains("written on C"))
            #expect(try ants(devices, "A") == nil && ants(devices, "C") == nil)
        }
    }

    /// A merge takes the edit along into the work that stays.
    @Test(arguments: [false, true])
    func anEditOfWhatIsMergedAway_goesIntoTheSurvivor(isSent: Bool) throws {
        try withDevices("A", "C") { devices in
            try take(devices, "A", "")
            try devices.syncLibrary("A")
            try devices.syncLibrary("C")
            try take(devices, "C", ", abstract={written on C}, keywords={onC}")
            if isSent { try devices.syncLibrary("C") }
            devices.clock.advance(seconds: 60)
            let conflict = try #require(try devices["A"].conflicts().first)
            _ = try ConflictResolver.resolve([conflict.id], with: .merge, in: devices["A"])
            for _ in 0..<2 { for name in devices.names { try devices.syncLibrary(name) } }
            for name in devices.names {
                let live = try devices[name].all().filter { !$0.isDeleted && $0.type == RecordType.publication }
                #expect(live.count == 1 && live[0].fields.contains("written on C") && live[0].fields.contains("onC"))
                // Every export writes the entry's text.
                let text = Fields.string("rawBibTeX", in: try Fields.parse(live[0].fields)) ?? ""
                #expect(text.contains("abstract={written on C}") && text.contains("keywords={onC}"))
                #expect(try aside(devices, name).isEmpty)
            }
            #expect(try devices["A"].sharedDigest() == devices["C"].sharedDigest())
        }
    }

    /// C links a PDF to a work that A merges away or gives another key. Either may sync first, and the PDF may have to give way
    /// to one that A has.
    @Test(arguments: [false, true], [false, true])
    func aFileThatIsLinkedToWhatIsMergedAway_goesWithIt(isMirror: Bool, isSent: Bool) throws {
        // A merge leaves one of two works.
        let works = isMirror ? [0] : [0, 1]
        for (number, (file, isThere)) in works.flatMap({ work in
            [("new", false), ("new", true), ("k", false)].map { (work, $0) }
        }) {
            try withDevices("A", "C") { devices in
                try attach(devices, "A", Self.two(of: number, file: "k"), "k")
                try devices.syncLibrary("A")
                try devices.syncLibrary("C")
                try attach(devices, "C", Self.two(", keywords={onC}", of: number, file: file), file)
                if isThere { try attach(devices, "A", "@misc{other, title={Another}, file={:new.pdf:PDF}}\n", "new") }
                if isSent { try devices.syncLibrary("C") }
                if isMirror {
                    try attach(devices, "A", Self.two(of: number, key: "corrected", file: "k"), "k", mirror: true)
                } else {
                    let conflict = try #require(try devices["A"].conflicts().first { !$0.isAboutAssets })
                    _ = try ConflictResolver.resolve([conflict.id], with: .merge, in: devices["A"])
                }
                var told: [Finding] = []
                for _ in 0..<3 { for name in devices.names { told += try devices.syncLibrary(name).findings } }
                #expect(!told.contains { $0.code == .linkMissing }, "\(told)")
                for name in devices.names {
                    let linked = try linked(devices[name], to: "onC")
                    #expect(linked == ["k on A", "\(file) on C"], "\(name), \(file), there: \(isThere)")
                }
                #expect(try devices["A"].sharedDigest() == devices["C"].sharedDigest())
            }
        }
    }

    private static let works = [work, "author={Zoe, Z}, title={On zebras}, year={2021}"]

    /// Two works of one key, one of them with a PDF.
    private static func two(_ more: String = "", of number: Int, key: String = "k", file: String) -> String {
        "@article{k, \(works[1 - number])}\n@article{\(key), \(works[number])\(more), file={:\(file).pdf:PDF}}\n"
    }

    /// Imports entries with a PDF beside them.
    private func attach(
        _ devices: Devices, _ name: String, _ entries: String, _ file: String, mirror: Bool = false
    ) throws {
        devices.clock.advance(seconds: 60)
        let folder = "\(devices.folder)/\(name)-\(file)"
        try writeFile("\(folder)/\(file).pdf", "\(file) on \(name)")
        try writeFile("\(folder)/l.bib", entries, modified: devices.clock.now.milliseconds / 1000)
        devices.clock.advance(seconds: 60)
        var options = ImportOptions()
        options.mirror = mirror
        _ = try Importer.run(["\(folder)/l.bib"], into: devices[name], options)
    }

    /// The bytes of the files that a work links.
    private func linked(_ store: Store, to text: String) throws -> [String] {
        let work = try #require(
            try store.all().first {
                !$0.isDeleted && $0.type == RecordType.publication && $0.fields.contains(text)
            })
        return try Store.links(of: work).map { readText("\(store.assetFolder)/\($0)") ?? "none" }.sorted()
    }

    /// The work that holds both stays, and whoever deletes it is told.
    @Test(arguments: [false, true])
    func aDeleteThatHadNotHeardOfAMerge_takesNoneOfBoth_andIsNamed(isSent: Bool) throws {
        try withDevices("A", "C") { devices in
            try take(devices, "A", "")
            try devices.syncLibrary("A")
            try devices.syncLibrary("C")
            let conflict = try #require(try devices["A"].conflicts().first)
            _ = try ConflictResolver.resolve([conflict.id], with: .merge, in: devices["A"])
            let merged = try #require(
                try devices["A"].all().first { !$0.isDeleted && $0.type == RecordType.publication })
            devices.clock.advance(seconds: 60)
            _ = try devices["C"].delete([merged.id.description])
            if isSent { try devices.syncLibrary("C") }
            let told = try devices.syncLibrary("A").findings + devices.syncLibrary("C").findings
            #expect(told.contains { $0.subject == merged.id.description && $0.severity == .warning }, "\(told)")
            for name in devices.names {
                try devices.syncLibrary(name)
                let live = try devices[name].all().filter { !$0.isDeleted && $0.type == RecordType.publication }
                #expect(live.map(\.id) == [merged.id])
            }
        }
    }

    /// The same id, two texts, and no time that says which is right.
    @Test func ofTwoTextsOfOneEvent_theOneThatIsNotKept_isInQuarantine() throws {
        try withDevices("A", "B") { devices in
            for (name, note) in [("A", "given 5 mg"), ("B", "given 50 mg")] {
                let path = "\(devices.folder)/\(name).jsonl"
                let line =
                    "{\"id\":\"x\",\"time\":\"2025-01-02T03:04:05Z\",\"type\":\"medicatie\",\"note\":\"\(note)\"}\n"
                try writeFile(path, line)
                _ = try Importer.run([path], into: devices[name], ImportOptions())
            }
            try devices.syncLibrary("A")
            let told = try devices.syncLibrary("B").findings
            #expect(told.contains { $0.code == .protected && $0.message.contains("no time tells which is right") })
            try devices.syncLibrary("A")
            let live = try #require(try devices["A"].all().first { $0.type == RecordType.event })
            let all = try [live.fields] + aside(devices, "A") + aside(devices, "B")
            #expect(["given 5 mg", "given 50 mg"].allSatisfy { note in all.contains { $0.contains(note) } })
        }
    }

    /// An undo takes back what this device has brought, also when it has not heard of the other one yet.
    @Test func anUndoThatHasNotHeardOfAnotherDevice_leavesWhatThatOneBrought() throws {
        try withDevices("A", "C") { devices in
            try take(devices, "A", "")
            try devices.syncLibrary("A")
            try take(devices, "C", ", abstract={written on C}")
            try devices.syncLibrary("C")
            devices.clock.advance(seconds: 60)
            _ = try devices["A"].undoLast()
            for _ in 0..<2 { for name in devices.names { try devices.syncLibrary(name) } }
            for name in devices.names {
                #expect(try ants(devices, name)?.fields.contains("written on C") == true, "\(name)")
            }
        }
    }

    /// Devices and backups that have the delete must not delete it once more.
    @Test func whatAnUndoBringsBack_outlivesTheDelete_onANewHubToo() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", "{\"x\":1}")
            try devices.syncAll()
            devices.clock.advance(seconds: 60)
            _ = try devices["A"].curate(.delete, ["r"])
            try devices.syncAll()
            devices.clock.advance(seconds: 60)
            _ = try devices["A"].undoLast()
            devices.hub = try FileHub.create("\(devices.folder)/hub2.db")
            try devices.sync("B")
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == "{\"x\":1}", "\(name)") }
        }
    }
}
