import BackupKit
import TestSupport
import Testing

/// Two volumes of one set, of which a device decides before it hears that another device has one of them under the id that
/// the other volume has here.
@Suite struct VolumeDecisionTests {
    enum Deed: CaseIterable { case rename, keepExisting, delete }

    private func volume(_ number: Int) -> String {
        "@book{k, title={Collected Works}, author={Bee, Bo}, year={2010}, volume={\(number)}}\n"
    }

    private func volumes(_ bench: Workbench, _ device: String) throws -> String {
        let query = """
            SELECT fields ->> 'citeKey', fields ->> 'volume' FROM record
            WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 2, 1
            """
        return try bench.shell("sqlite3 \(device).db \"\(query)\"").split(separator: "\n").joined(separator: " ")
    }

    /// Whoever syncs first, what was decided holds.
    @Test(arguments: Deed.allCases, [["A", "C", "A", "C"], ["C", "A", "C", "A"]])
    func whatADeviceHasDecidedOfAVolume_holdsWhoeverSyncsFirst(deed: Deed, order: [String]) throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.write("a.bib", volume(3))
        try bench.write("c.bib", volume(2) + volume(3))
        try bench.shell("touch -d 2020-01-01 a.bib && touch -d 2021-01-01 c.bib")
        try bench.tool(exit: 0, "import", "--store", "A.db", "--create", "a.bib")
        try bench.tool(exit: 3, "import", "--store", "C.db", "--create", "c.bib")
        switch deed {
        case .rename:
            try bench.tool(
                exit: 0, "conflicts", "resolve", "1", "--with", "rename-incoming", "--key", "k3", "--store", "C.db")
        case .keepExisting:
            try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "keep-existing", "--store", "C.db")
        case .delete:
            let query = "SELECT local_id FROM record WHERE fields ->> 'volume' = '3'"
            let id = try bench.shell("sqlite3 C.db \"\(query)\"").split(separator: "\n").map(String.init)
            try bench.tool(exit: 0, "store", "delete", "--store", "C.db", id[0])
        }
        for device in order { try bench.tool("sync", "--store", "\(device).db", "--hub", "hub.db") }
        for device in ["A", "C"] {
            #expect(try volumes(bench, device) == (deed == .rename ? "k|2 k3|3" : "k|2"), "\(device)")
            let conflicts = try bench.json(exit: 0, "conflicts", "list", "--store", "\(device).db")
            #expect(conflicts["conflicts"]?.array?.isEmpty != false, "\(device): \(conflicts)")
        }
    }

    /// Imports, deletes, decisions and syncs at random. In the end all devices have the same volumes, none of them twice. What
    /// was deleted after the last decision, where that is known, is gone, and without decisions all the rest is there.
    @Test(arguments: testSeeds(Workbench.isTorture ? 60 : 8))
    func whatDevicesDecideOfVolumes_endsAlikeEverywhere(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        let bench = try Workbench()
        let devices = ["A", "B", "C"]
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        for device in devices { try bench.tool(exit: 0, "store", "init", "--store", "\(device).db") }
        for number in 1...4 {
            try bench.write("\(number).bib", volume(number))
            try bench.shell("touch -d 202\(number)-01-01 \(number).bib")
        }
        var story: [String] = []
        var (imported, deleted): (Set<Int>, Set<Int>) = ([], [])
        var decider: String?
        for _ in 1...14 {
            let device = devices[random.below(devices.count)]
            var words = ["sync", "--hub", "hub.db"]
            switch random.below(8) {
            case 0, 1, 2:
                let number = 1 + random.below(4)
                words = ["import", "\(number).bib"]
                imported.insert(number)
            case 3:
                let query = """
                    SELECT local_id, fields ->> 'volume' FROM record WHERE type = 'Publication' AND deleted_at IS NULL
                    ORDER BY 2
                    """
                let live = try bench.shell("sqlite3 \(device).db \"\(query)\"").split(separator: "\n")
                guard !live.isEmpty else { continue }
                let row = live[random.below(live.count)].split(separator: "|").map(String.init)
                words = ["store", "delete", row[0]]
                // What another device has kept comes back, and the sync says so.
                if [nil, device].contains(decider) { deleted.formUnion([Int(row[1])].compactMap(\.self)) }
            case 4:
                let number = try bench.tool("conflicts", "list", "--store", "\(device).db").stdout
                    .firstMatch(of: /([0-9]+)  publication/)?.1
                guard let number else { continue }
                let choice = ["keep-existing", "keep-incoming", "rename-incoming"][random.below(3)]
                words = ["conflicts", "resolve", "\(number)", "--with", choice]
                decider = device
                // A decision about a work is newer than a delete before it.
                deleted = []
            default: break
            }
            let status = try bench.tool(words + ["--store", "\(device).db"]).status
            story.append("\(device): \(words.joined(separator: " ")): \(status)")
            #expect([0, 3].contains(status), "\(story.joined(separator: "\n"))")
        }
        for device in devices + devices + devices {
            try bench.tool("sync", "--store", "\(device).db", "--hub", "hub.db")
        }
        let told = Comment(rawValue: story.joined(separator: "\n"))
        let first = try volumes(bench, "A")
        for device in devices { #expect(try volumes(bench, device) == first, told) }
        let numbers = first.split(separator: " ").compactMap { $0.split(separator: "|").last.flatMap { Int($0) } }
        #expect(Set(numbers).count == numbers.count && deleted.isDisjoint(with: numbers), told)
        if decider == nil { #expect(Set(numbers) == imported.subtracting(deleted), told) }
    }

    private func volumesBench(_ count: Int) throws -> Workbench {
        let bench = try Workbench()
        for number in 1...count {
            try bench.write("\(number).bib", volume(number))
            try bench.shell("touch -d 202\(number)-01-01 \(number).bib")
        }
        return bench
    }

    /// One device has renamed the work before its first sync, another has it under the old key and another id.
    @Test(arguments: [["A", "C", "A"], ["C", "A", "C"]])
    func aWorkThatAnotherDeviceHasRenamed_isNoSecondOne(order: [String]) throws {
        let bench = try volumesBench(3)
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "--store", "B.db", "--create", "3.bib")
        try bench.tool(exit: 0, "sync", "--store", "B.db", "--hub", "hub.db")
        try bench.tool(exit: 0, "import", "--store", "A.db", "--create", "1.bib")
        try bench.tool(exit: 3, "import", "--store", "A.db", "3.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "rename-incoming", "--store", "A.db")
        try bench.tool(exit: 0, "import", "--store", "C.db", "--create", "2.bib")
        try bench.tool(exit: 3, "import", "--store", "C.db", "3.bib")
        for device in order + ["B"] { try bench.tool("sync", "--store", "\(device).db", "--hub", "hub.db") }
        for device in ["A", "B", "C"] { #expect(try volumes(bench, device) == "k|1 k|2 ka|3", "\(device)") }
    }

    /// Both works had one id.
    @Test func whereAReplaceBringsAnotherWork_theDeletedOneStaysDeleted() throws {
        let bench = try volumesBench(2)
        try bench.tool(exit: 0, "import", "--store", "C.db", "--create", "2.bib")
        let id = try bench.shell("sqlite3 C.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
        try bench.tool(exit: 0, "store", "delete", "--store", "C.db", String(id.dropLast()))
        try bench.shell("sleep 0.01; touch 1.bib")
        try bench.tool(exit: 0, "import", "--store", "A.db", "--create", "1.bib")
        try bench.tool(exit: 0, "export", "--store", "A.db", "-o", "A.tar")
        let before = try bench.digest("C.db")
        try bench.tool(exit: 0, "restore", "A.tar", "--mode", "replace", "--store", "C.db")
        #expect(try volumes(bench, "C") == "k|1")
        try bench.tool(exit: 0, "undo", "--store", "C.db")
        #expect(try bench.digest("C.db") == before)
        try bench.tool(exit: 0, "restore", "A.tar", "--mode", "replace", "--store", "C.db")
        try bench.shell("cp 2.bib old.bib; touch -d 2022-01-01 old.bib")
        try bench.tool("import", "--store", "C.db", "old.bib")
        #expect(try volumes(bench, "C") == "k|1")
    }

    /// Another file says the old key, with one more field.
    @Test(arguments: ["One Title", "Another Title"])
    func aCorrectedCopyUnderTheOldKey_isTheWorkThatWasRenamed(title: String) throws {
        let bench = try Workbench()
        func entry(_ title: String, _ volume: Int, _ more: String = "") -> String {
            "@book{k, title={\(title)}, author={Bee, Bo}, year={2010}, volume={\(volume)}\(more)}\n"
        }
        try bench.write("c.bib", entry("One Title", 1) + entry(title, 2))
        try bench.tool(exit: 3, "import", "--store", "C.db", "--create", "c.bib")
        try bench.tool(
            exit: 0, "conflicts", "resolve", "1", "--with", "rename-incoming", "--key", "k2", "--store", "C.db")
        try bench.write("other.bib", entry(title, 2, ", abstract={more}"))
        try bench.tool(exit: 0, "import", "--store", "C.db", "other.bib")
        #expect(try volumes(bench, "C") == "k|1 k2|2")
        let query = "SELECT fields ->> 'abstract' FROM record WHERE fields ->> 'volume' = '2'"
        #expect(try bench.shell("sqlite3 C.db \"\(query)\"") == "more\n")
        let again = try bench.json(exit: 0, "import", "--store", "C.db", "other.bib")
        #expect(again["added"]?.integer == 0 && again["updated"]?.integer == 0, "\(again)")
    }

    /// A has the volume from a backup without files, under another id than B, and no other file of that name.
    @Test(arguments: [["A", "B", "A", "B"], ["B", "A", "B", "A"]])
    func theFileOfAVolume_keepsItsName_whoeverSyncsFirst(order: [String]) throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.write("files/p.pdf", "the file")
        try bench.write("b.bib", volume(9).replacing("}}", with: "}, file={p.pdf}}"))
        try bench.write("a.bib", volume(7))
        try bench.tool(exit: 0, "import", "--store", "B.db", "--create", "b.bib", "--attachments", "files")
        try bench.tool(exit: 0, "export", "--store", "B.db", "-o", "backup")
        try bench.tool(exit: 0, "import", "--store", "A.db", "--create", "a.bib")
        try bench.tool("restore", "--store", "A.db", "backup", "--only", "publications")
        for device in order { try bench.tool("sync", "--store", "\(device).db", "--hub", "hub.db") }
        for device in ["A", "B"] {
            let query = """
                SELECT fields ->> 'volume', fields ->> 'linkedFiles' FROM record
                WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1; SELECT path FROM asset
                """
            let shown = try bench.shell("sqlite3 \(device).db \"\(query)\"")
            #expect(shown == "7|\n9|[\"Attachments/p.pdf\"]\nAttachments/p.pdf\n", "\(device)")
        }
    }
}
