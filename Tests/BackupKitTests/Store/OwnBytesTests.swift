import TestSupport
import Testing

@testable import BackupKit

@Suite struct OwnBytesTests {
    /// What B does with the work whose file A takes back before it uses the path for another one.
    enum Use: String, CaseIterable, Sendable { case edited, secondWork, keptHere, unknownToTheHub }

    @Test(arguments: Use.allCases, [true, false])
    func aPathThatIsUsedAgain_takesNoFileOfALivingWork(_ use: Use, _ isDeleteSynced: Bool) throws {
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try devices.syncAll()
            switch use {
            case .edited: break
            case .secondWork:
                try papers.add("k3", "bytes of k1", on: "B")
                try devices.syncAll()
            case .keptHere: try devices.keepHere("k1", on: "B")
            case .unknownToTheHub: try papers.add("k3", "bytes of k1", on: "B")
            }
            try devices.undo(on: "A")
            if use == .edited { try devices.edit("k1", on: "B") }
            if isDeleteSynced { try devices.sync("A") }
            try papers.add("k2", "bytes of k2", on: "A")
            for name in ["A", "B"] { try devices.sync(name) }
            try papers.check("at once", on: ["B"])
            try devices.syncAll()
            try papers.check("\(use)")
            let key = use == .edited || use == .keptHere ? "k1" : "k3"
            #expect(try papers.linked(key, on: "B") == ["bytes of k1"])
            #expect(try papers.linked("k2", on: "C") == ["bytes of k2"])
        }
    }

    /// The bytes of the file that nobody links any more go with it, and nobody is asked.
    @Test func aPathThatIsUsedAgain_whereNoWorkLinksTheOldFile_isNoConflict() throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try devices.syncAll()
            try devices.undo(on: "A")
            try devices.sync("A")
            try papers.add("k2", "bytes of k2", on: "A")
            try devices.syncAll()
            for name in devices.names {
                #expect(try papers.linked("k2", on: name) == ["bytes of k2"])
                #expect(try devices[name].conflicts().isEmpty && devices[name].info().assets == 1)
            }
        }
    }

    @Test func aFileThatIsChangedInPlace_isItsNewVersionOnAllDevices() throws {
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "first", on: "A")
            try devices.syncAll()
            try devices.edit("k1", on: "B")
            for text in ["second", "third"] {
                try papers.change(to: text, on: "A")
                try devices.sync("A")
                if text == "second" { try devices.sync("C") }
            }
            try papers.change(to: "fourth", on: "C")
            #expect(try devices.sync("C").conflicts == 1)
            try devices.syncAll()
            for name in devices.names { #expect(try papers.linked("k1", on: name) == ["third", "fourth"]) }
            #expect(try devices["B"].conflicts().count == 1)
        }
    }

    /// Whoever changed the file did not know of the other work.
    @Test(arguments: [true, false])
    func aFileThatIsChangedInPlace_leavesItsBytesToAWorkThatTheHubDoesNotKnow(isKeptHere: Bool) throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "first", on: "A")
            try devices.syncAll()
            try papers.add("k3", "first", on: "B")
            if isKeptHere { try devices.keepHere("k3", on: "B") }
            try papers.change(to: "second", on: "A")
            try devices.sync("A")
            #expect(try devices.sync("B").needsAttention)
            try devices.syncAll()
            for name in devices.names { #expect(try papers.linked("k1", on: name) == ["second"]) }
            #expect(try papers.linked("k3", on: "B") == ["first"])
            if !isKeptHere { #expect(try papers.linked("k3", on: "A") == ["first"]) }
        }
    }

    /// The other half: the change is not sent when the other work comes.
    @Test func aChangeThatIsNotSent_leavesTheOldBytesToAWorkThatComes() throws {
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "first", on: "A")
            try devices.syncAll()
            try papers.change(to: "second", on: "B")
            try papers.add("k3", "first", on: "A")
            try devices.sync("A")
            #expect(try devices.sync("B").needsAttention)
            try devices.syncAll()
            for name in devices.names {
                #expect(try papers.linked("k3", on: name) == ["first"], "\(name)")
                #expect(try papers.linked("k1", on: name).contains("second"), "\(name)")
            }
        }
    }

    @Test func anUndoOfADelete_bringsAWorkBackWithItsOwnBytes() throws {
        for isDeleteSynced in [true, false] {
            try withDevices("A", "B") { devices in
                let papers = Papers(devices)
                try papers.add("k1", "bytes of k1", on: "A")
                try devices.syncAll()
                try papers.add("k3", "bytes of k1", on: "B")
                try devices.curate(.delete, "k3", on: "B")
                try devices.undo(on: "A")
                if isDeleteSynced { for name in ["A", "B"] { try devices.sync(name) } }
                try papers.add("k2", "bytes of k2", on: "A")
                for name in ["A", "B"] { try devices.sync(name) }
                try devices.undo(on: "B")
                #expect(try papers.linked("k3", on: "B") == ["bytes of k1"])
                try devices.syncAll()
                for name in devices.names {
                    #expect(try papers.linked("k3", on: name) == ["bytes of k1"])
                    #expect(try papers.linked("k2", on: name) == ["bytes of k2"])
                }
            }
        }
    }

    @Test func aRedoOfAnImport_bringsAWorkBackWithItsOwnBytes() throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try devices.undo(on: "A")
            try papers.add("k2", "bytes of k2", on: "B")
            for name in ["B", "A"] { try devices.sync(name) }
            try devices.undo(on: "A", redo: true)
            for key in ["k1", "k2"] { #expect(try papers.linked(key, on: "A") == ["bytes of \(key)"]) }
            try devices.syncAll()
            for key in ["k1", "k2"] { #expect(try papers.linked(key, on: "B") == ["bytes of \(key)"]) }
        }
    }

    /// What is kept on this device only does not show the backup's file.
    @Test func aReplacingRestore_leavesTheBytesOfWhatIsKeptHere() throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            let backup = try papers.backUp("A")
            try papers.add("k2", "bytes of k2", on: "B")
            try devices.keepHere("k2", on: "B")
            try papers.restore(backup, on: "B", replacing: true)
            for key in ["k1", "k2"] { #expect(try papers.linked(key, on: "B") == ["bytes of \(key)"]) }
            let assets = try devices["B"].info().assets
            try papers.restore(backup, on: "B", replacing: true)
            #expect(try devices["B"].info().assets == assets)
        }
    }

    @Test func aFileThatDidNotComeWithItsWork_isNamed_andNoOtherFileTakesItsPlace() throws {
        var limits = HubLimits.file
        limits.assetBytes = 20
        try withDevices("A", "B", limits: limits) { devices in
            let papers = Papers(devices)
            try papers.add("k1", "more bytes than the hub takes", on: "A")
            #expect(try devices.sync("A").held.map(\.kind) == [.size])
            try papers.add("k2", "bytes of k2", on: "B")
            for _ in 1...2 {
                let sync = try devices.sync("B")
                #expect(sync.held.map(\.id.name) == [Papers.paths[0]] && sync.needsAttention)
                #expect(try papers.linked("k1", on: "B").allSatisfy { $0.isEmpty || $0.contains("no file") })
                #expect(try papers.linked("k2", on: "B") == ["bytes of k2"])
            }
            try papers.add("k3", "bytes of k3", on: "B")
            try papers.check("imported afterwards", on: ["B"])
        }
    }

    @Test func aFileThatNoDeviceHas_isNamedOnce() throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try papers.lose(Papers.paths[0], on: "A")
            try devices.sync("A")
            let first = try devices.sync("B")
            #expect(first.findings.map(\.code) == [.linkMissing] && first.needsAttention)
            #expect(first.findings.first?.subject == Papers.paths[0])
            try devices.edit("k1", on: "A")
            try devices.sync("A")
            let second = try devices.sync("B")
            #expect(second.pulled == 1 && second.findings.isEmpty && !second.needsAttention)
        }
    }

    /// Also where it lies in its place again only later.
    @Test func aFileThatIsAwayAtTheSync_comesToItsWorkLater() throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            papers.takeAway(Papers.paths[0], on: "A")
            #expect(try devices.sync("A").held.map(\.kind) == [.missing])
            try papers.add("k2", "bytes of k2", on: "B")
            #expect(try devices.sync("B").needsAttention)
            try papers.putBack(Papers.paths[0], on: "A")
            try devices.syncAll()
            for name in devices.names {
                #expect(try papers.linked("k1", on: name) == ["bytes of k1"])
                #expect(try papers.linked("k2", on: name) == ["bytes of k2"])
                #expect(try devices[name].held().isEmpty)
            }
        }
    }

    @Test func aFileThatIsAwayWhenAnotherTakesItsPath_keepsItsWork() throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try devices.sync("A")
            try papers.add("k2", "bytes of k2", on: "B")
            papers.takeAway(Papers.paths[0], on: "B")
            #expect(try devices.sync("B").needsAttention)
            #expect(try papers.linked("k1", on: "B") == ["bytes of k1"])
            #expect(try papers.linked("k2", on: "B") == [""])
            try papers.tidyUp()
        }
    }

    @Test func nothingIsRedone_afterOtherWork() throws {
        try withDevices("A") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try devices.undo(on: "A")
            try papers.add("k2", "bytes of k2", on: "A")
            try devices.undo(on: "A")
            try devices.undo(on: "A", redo: true)
            #expect(throws: BackupError.self) { try devices.undo(on: "A", redo: true) }
            #expect(try papers.linked("k2", on: "A") == ["bytes of k2"])
        }
    }

    /// Whether a conflict is about a file of which the other devices do not hear.
    private func isOfThisDevice(_ conflict: Conflict, _ store: Store) throws -> Bool {
        let waiting = try store.pendingAssets { _ in }
        let sent = Set(try store.forTheHub(waiting).map(\.path))
        let kept = Set(waiting.map(\.path)).subtracting(sent)
        return !kept.isDisjoint(with: [conflict.existing, conflict.incoming])
    }

    @Test(arguments: testSeeds(isTorture ? 250 : 16))
    func whateverDevicesDo_noWorkLinksAnothersBytes(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        var limits = HubLimits.file
        limits.assetBytes = 20
        try withDevices("A", "B", "C", limits: limits) { devices in
            let papers = Papers(devices)
            var log: [String] = []
            for number in 0..<30 {
                log.append(try papers.step(&random, number))
                try papers.check("at once; seed \(seed):\n\(log.filter { !$0.isEmpty }.joined(separator: "\n"))")
            }
            try devices.syncAll(rounds: 3)
            try papers.check("in the end; seed \(seed):\n\(log.filter { !$0.isEmpty }.joined(separator: "\n"))")
            if try devices.names.allSatisfy({ try devices[$0].held().isEmpty }) {
                let counts = try devices.names.map { name in
                    try devices[name].conflicts().filter { try !isOfThisDevice($0, devices[name]) }.count
                }
                #expect(Set(counts).count == 1, "\(counts); seed \(seed):\n\(log.joined(separator: "\n"))")
            }
            try papers.tidyUp()
        }
    }
}
