import BackupKit
import TestSupport
import Testing

/// Volumes of one set, each with a note, on several devices that make one first id for them. Whatever is deleted, decided,
/// synced and restored, each note stays on its own volume.
@Suite struct VolumeNotesTests {
    private static let devices = ["A", "B", "C"]

    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        for device in Self.devices { try bench.tool(exit: 0, "store", "init", "--store", "\(device).db") }
        for volume in 1...4 {
            try bench.write(
                "\(volume)/lib.bib",
                "@book{k, title={Collected Works}, author={Bee, Bo}, year={2010}, volume={\(volume)}}\n")
            try bench.write("\(volume)/notes.json", #"[{"citeKey": "k", "note": "on \#(volume)"}]"#)
        }
        return bench
    }

    private func take(_ bench: Workbench, _ volumes: [Int], on device: String) throws {
        for volume in volumes {
            try bench.tool("import", "--store", "\(device).db", "\(volume)/lib.bib", "\(volume)/notes.json")
        }
    }

    private func ids(_ bench: Workbench, on device: String) throws -> [String] {
        let query = "SELECT local_id FROM record WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1"
        return try bench.shell("sqlite3 \(device).db \"\(query)\"").split(separator: "\n").map(String.init)
    }

    enum Way: CaseIterable { case restore, replace, notesAlone, importing, sync, syncOfHub }

    @Test(arguments: [[], [2], [2, 1]], Way.allCases)
    func theNoteOfADeletedVolume_isOnNoOther(volumes: [Int], way: Way) throws {
        let bench = try bench()
        try take(bench, volumes, on: "A")
        try take(bench, [1], on: "B")
        try bench.tool(exit: 0, "store", "delete", "--store", "B.db", ids(bench, on: "B")[0])
        switch way {
        case .sync, .syncOfHub:
            for device in way == .sync ? ["A", "B", "A"] : ["B", "A", "B"] {
                try bench.tool("sync", "--store", "\(device).db", "--hub", "hub.db")
            }
        case .restore: try move(bench, ["restore"])
        case .replace: try move(bench, ["restore", "--mode", "replace"])
        case .notesAlone: try move(bench, ["restore", "--only", "notes"])
        case .importing: try move(bench, ["import"])
        }
        for device in Self.devices { #expect(try misplaced(bench, device) == "", "\(device)") }
    }

    /// The volume that has the id in the store has no note that would be in the way.
    @Test func theNoteOfADeletedVolume_isOnNoVolumeWithoutNotes() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "import", "--store", "A.db", "2/lib.bib")
        try take(bench, [1], on: "B")
        try bench.tool(exit: 0, "store", "delete", "--store", "B.db", ids(bench, on: "B")[0])
        try move(bench, ["restore", "--only", "notes"])
        #expect(try misplaced(bench, "A") == "")
    }

    /// The hub has the volume under another id and with a note, and gives the id of this device to another volume.
    @Test(arguments: ["on 1", "said on B"])
    func theNoteOfAVolumeThatMakesWay_staysBesideTheNoteOfTheHub(note: String) throws {
        let bench = try bench()
        try take(bench, [2, 1], on: "A")
        try bench.tool(exit: 0, "sync", "--store", "A.db", "--hub", "hub.db")
        // Edits put the volumes behind their notes on the hub.
        try bench.shell("sed -i 's/title=/publisher={Tea}, title=/' 1/lib.bib 2/lib.bib")
        for volume in 1...2 { try bench.tool(exit: 0, "import", "--store", "A.db", "\(volume)/lib.bib") }
        try bench.tool(exit: 0, "sync", "--store", "A.db", "--hub", "hub.db")
        try bench.write("1/notes.json", #"[{"citeKey": "k", "note": "\#(note)"}]"#)
        try take(bench, [1], on: "B")
        for device in ["B", "A", "B"] { try bench.tool("sync", "--store", "\(device).db", "--hub", "hub.db") }
        let both = note == "on 1" ? "1 on 1\n2 on 2\n" : "1 on 1\n1 \(note)\n2 on 2\n"
        for device in ["A", "B"] { #expect(try bench.notesOnVolumes(device) == both, "\(device)") }
    }

    /// From B to A, where the second time changes nothing.
    private func move(_ bench: Workbench, _ words: [String]) throws {
        try bench.tool(exit: 0, "export", "--store", "B.db", "-o", "b.tar")
        try bench.tool(words + ["--store", "A.db", "b.tar"])
        let digest = try bench.shell("$T store digest --store A.db")
        try bench.tool(words + ["--store", "A.db", "b.tar"])
        #expect(try bench.shell("$T store digest --store A.db") == digest)
    }

    /// The one that stays has the id in the store that the other one has in the backup, and a conflict names both.
    @Test(arguments: ["keep-existing", "keep-incoming"])
    func theNoteOfAVolumeThatADecisionDeleted_isOnNoOther(choice: String) throws {
        let bench = try bench()
        try take(bench, [1, 2], on: "B")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", choice, "--store", "B.db")
        try take(bench, [3], on: "A")
        try bench.tool(exit: 0, "export", "--store", "B.db", "-o", "b.tar")
        try bench.tool(exit: 3, "restore", "--store", "A.db", "b.tar")
        #expect(try misplaced(bench, "A") == "")
        let list = try bench.tool(exit: 0, "conflicts", "list", "--store", "A.db").stdout
        #expect(list.matches(of: /publication/).count == 1, "\(list)")
        try bench.tool(exit: 0, "store", "check", "--store", "A.db")
    }

    @Test func aReplaceBringsTheDelete_alsoWhereAnotherDeletedVolumeHasItsID() throws {
        let bench = try bench()
        try take(bench, [3], on: "A")
        try take(bench, [4], on: "B")
        try bench.tool(exit: 0, "export", "--store", "A.db", "-o", "before.tar")
        for device in ["A", "B"] {
            try bench.tool(exit: 0, "store", "delete", "--store", "\(device).db", ids(bench, on: device)[0])
        }
        try bench.tool(exit: 0, "export", "--store", "A.db", "-o", "a.tar")
        try bench.tool(exit: 0, "restore", "--mode", "replace", "--store", "B.db", "a.tar")
        try bench.tool("restore", "--store", "B.db", "before.tar")
        #expect(try ids(bench, on: "B") == [])
    }

    /// The backup has it under another id.
    @Test func aVolumeThatComesBack_hasTheIDThatItHad() throws {
        let bench = try bench()
        try take(bench, [4], on: "A")
        try take(bench, [3, 4], on: "B")
        let id = try ids(bench, on: "A")[0]
        try bench.tool(exit: 0, "store", "delete", "--store", "A.db", id)
        try bench.tool(exit: 0, "export", "--store", "B.db", "-o", "b.tar")
        try bench.tool(exit: 3, "restore", "--resurrect", "--store", "A.db", "b.tar")
        let volume = "SELECT fields ->> 'volume' FROM record WHERE local_id = '\(id)'"
        #expect(try bench.shell("sqlite3 A.db \"\(volume)\"") == "4\n")
        #expect(try misplaced(bench, "A") == "")
        let again = try bench.tool(exit: 0, "restore", "--resurrect", "--store", "A.db", "b.tar")
        #expect(again.stderr.contains("unchanged") && !again.stderr.contains("added"), "\(again.stderr)")
    }

    /// Stories of `aNoteIsNeverOnAnotherVolume` that went wrong once; FIRST is the id that all volumes would get.
    private static let ids = [
        "FIRST": "5E6934ED-A705-8226-91A2-92635F9B053C", "SECOND": "BDC08A90-76D4-89AB-8EA0-9493EAC76457",
    ]

    @Test(arguments: [
        """
        A import 1
        C restore A.tar --mode replace
        C sync
        B import 4
        B store delete FIRST
        A restore B.tar --mode replace
        B sync
        B store delete FIRST
        B sync
        A sync
        B sync
        B restore C.tar --resurrect
        """,
        """
        C import 2
        B import 1
        B import 3
        B conflicts resolve 1 --with keep-existing
        B sync
        C store delete FIRST
        C sync
        """,
        """
        A import 3
        A store delete FIRST
        A import 4
        A sync
        C import 4
        C store delete FIRST
        C restore A.tar --mode replace
        C sync
        C restore A.tar --resurrect
        """,
        """
        C import 2
        C store delete FIRST
        B import 1
        A restore B.tar --resurrect
        B restore C.tar --mode replace
        C restore A.tar --mode replace
        B restore C.tar --resurrect
        """,
        """
        A import 4
        C import 3
        A store delete FIRST
        C import 4
        C sync
        A restore C.tar --resurrect
        A sync
        """,
        """
        A import 1
        C import 2
        B import 4
        C store delete FIRST
        A restore B.tar
        A conflicts resolve 1 --with keep-existing
        A import 2
        C restore A.tar --mode replace
        """,
        """
        A import 4
        C import 3
        C import 4
        C store delete SECOND
        C restore A.tar --mode replace
        C store delete FIRST
        A import 3
        C restore A.tar --resurrect
        """,
    ])
    func storiesThatWentWrongOnce(story: String) throws {
        let bench = try bench()
        for line in story.split(separator: "\n") {
            var words = line.split(separator: " ").map(String.init)
            let device = words.removeFirst()
            switch words[0] {
            case "import": words = ["import", "\(words[1])/lib.bib", "\(words[1])/notes.json"]
            case "sync": words += ["--hub", "hub.db"]
            case "restore":
                try bench.tool("export", "--store", "\(words[1].prefix(1)).db", "--force", "-o", words[1])
            default: words = words.map { Self.ids[$0] ?? $0 }
            }
            try bench.tool(words + ["--store", "\(device).db"])
            for device in Self.devices { #expect(try misplaced(bench, device) == "", "\(device) after \(line)") }
        }
    }

    @Test(arguments: testSeeds(Workbench.isTorture ? 60 : 8))
    func aNoteIsNeverOnAnotherVolume(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        let bench = try bench()
        var story: [String] = []
        for _ in 1...(Workbench.isTorture ? 30 : 14) {
            let device = Self.devices[random.below(Self.devices.count)]
            let words = try command(bench, device, &random)
            let status = try bench.tool(words + ["--store", "\(device).db"]).status
            story.append("\(words.joined(separator: " ")) --store \(device).db: \(status)")
            #expect([0, 1, 3].contains(status), "\(story.joined(separator: "\n"))")
            for device in Self.devices {
                #expect(try misplaced(bench, device) == "", "on \(device)\n\(story.joined(separator: "\n"))")
            }
        }
        for device in Self.devices { try bench.tool(exit: 0, "store", "check", "--store", "\(device).db") }
    }

    private func command(_ bench: Workbench, _ device: String, _ random: inout SeededGenerator) throws -> [String] {
        switch random.below(10) {
        case 0, 1, 2:
            let volume = 1 + random.below(4)
            return ["import", "\(volume)/lib.bib", "\(volume)/notes.json"]
        case 3, 4:
            let ids = try ids(bench, on: device)
            return ids.isEmpty ? ["sync", "--hub", "hub.db"] : ["store", "delete", ids[random.below(ids.count)]]
        case 5, 6: return ["sync", "--hub", "hub.db"]
        case 7:
            let number = try bench.tool("conflicts", "list", "--store", "\(device).db").stdout
                .firstMatch(of: /([0-9]+)  publication/)?.1
            let choice = ["keep-existing", "keep-incoming", "rename-incoming"][random.below(3)]
            return ["conflicts", "resolve", number.map(String.init) ?? "1", "--with", choice]
        default:
            let other = Self.devices[random.below(Self.devices.count)]
            try bench.tool("export", "--store", "\(other).db", "--force", "-o", "\(other).tar")
            let ways = [[], ["--mode", "replace"], ["--resurrect"]]
            return ["restore", "\(other).tar"] + ways[random.below(ways.count)]
        }
    }

    /// Notes on living publications that they are not about.
    private func misplaced(_ bench: Workbench, _ device: String) throws -> String {
        try bench.shell(
            """
            sqlite3 \(device).db "SELECT w.fields ->> 'volume', n.fields ->> 'note' FROM record n JOIN record w \
            ON w.local_id = n.fields ->> 'publication' WHERE n.type = 'Note' AND w.type = 'Publication' \
            AND n.deleted_at IS NULL AND w.deleted_at IS NULL AND n.fields ->> 'note' <> 'on ' || (w.fields ->> 'volume')"
            """)
    }
}

extension Workbench {
    /// The notes of a device, each behind the volume that it is about.
    func notesOnVolumes(_ device: String) throws -> String {
        try shell(
            """
            sqlite3 -separator ' ' \(device).db "SELECT w.fields ->> 'volume', n.fields ->> 'note' FROM record n JOIN record w \
            ON w.local_id = n.fields ->> 'publication' WHERE n.type = 'Note' AND n.deleted_at IS NULL ORDER BY 1, 2"
            """)
    }
}
