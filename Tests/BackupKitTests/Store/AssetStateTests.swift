import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// What a reader of this moment has: the content digest, and every file's bytes. Throws when the two do not belong
/// together.
private func stateForReaders(_ path: String) throws -> [String: String] {
    let store = try Store(path, .read)
    return try store.read {
        var state = ["digest": try store.contentDigest().hex]
        let files = try #require(try AssetFiles(of: store))
        try store.forEachAsset { asset in
            let opened = try files.open(asset)
            #expect(!opened.isRemoved)
            var bytes: [UInt8] = []
            try opened.file.forEachChunk { bytes += $0 }
            #expect(SHA256Digest.of(String(decoding: bytes, as: UTF8.self)) == asset.digest, "\(asset.path)")
            state[asset.path] = String(decoding: bytes, as: UTF8.self)
        }
        return state
    }
}

/// Takes `old` out and puts `text` in its place.
private func replace(_ path: String, _ text: String, in store: Store) throws {
    if let old = try store.asset(path) { try store.removeAsset(old) }
    try place(path, text, in: store)
}

private func batch(_ store: Store, _ body: (Store) throws -> Void) throws {
    _ = try store.batch(kind: "import", source: "test") { (try body(store), summary: "") }
}

private func write(_ path: String, _ text: String, in store: Store) throws {
    try writeFile("\(store.assetFolder)/\(path)", text)
}

/// A store, and a folder for copies of it.
private func withStoreAndRoom(_ body: (TestStore, String) throws -> Void) throws {
    try withTemporaryFolder { room in try withStore { try body($0, room) } }
}

/// A state is rows and files together: a reader sees one commit, live or after a kill, without a writer.
@Suite struct AssetStateTests {
    @Test func aFileWithoutRoomIsReported_andComesWhenThereIsRoom() throws {
        try withStore { test in
            let store = test.store
            try writeFile("\(store.assetFolder)/a.pdf/mine", "x")
            try batch(store) {
                try place("a.pdf", "A", in: $0)
                try place("b.pdf", "B", in: $0)
            }
            #expect(store.fileFindings.map(\.subject) == ["a.pdf"])
            #expect(store.fileFindings.allSatisfy { $0.severity == .warning && $0.remedy != nil })
            let state = try stateForReaders(store.path)
            #expect(state["a.pdf"] == "A" && state["b.pdf"] == "B")
            #expect(try readFile("\(store.assetFolder)/b.pdf") == Array("B".utf8))
            try Directory.removeTree("\(store.assetFolder)/a.pdf")
            try batch(store) { try place("c.pdf", "C", in: $0) }
            #expect(store.fileFindings.isEmpty)
            #expect(
                try visibleFiles(of: store).mapValues { String(decoding: $0, as: UTF8.self) }
                    == ["a.pdf": "A", "b.pdf": "B", "c.pdf": "C"])
        }
    }

    // What a killed process leaves is a copy of the folder at that instant.
    @Test func killedAnywhereInABatch_readersHaveTheOldState_andTheNextWriterCleansUp() throws {
        try withStoreAndRoom { test, room in
            try batch(test.store) {
                try place("a.pdf", "A", in: $0)
                try place("d/b.pdf", "B", in: $0)
                try place("same.pdf", "A", in: $0)
            }
            let before = try stateForReaders(test.store.path)
            let files = try contents(of: test.store.assetFolder)
            var copies = 0
            func kill() throws {
                copies += 1
                try copyTree(test.folder, to: "\(room)/\(copies)")
            }
            try batch(test.store) { store in
                _ = try store.ingest(record("r"))
                for (path, text) in [("a.pdf", "new A"), ("d/b.pdf", "new B")] {
                    try store.removeAsset(try #require(try store.asset(path)))
                    try kill()
                    try place(path, text, in: store)
                    try kill()
                }
                try place("a.pdf/c.pdf", "C", in: store)
                try kill()
                try store.removeAsset(try #require(try store.asset("a.pdf")))
            }
            for number in 1...copies {
                let path = "\(room)/\(number)/store.db"
                #expect(try stateForReaders(path) == before, "copy \(number)")
                let store = try Store(path, .write)
                #expect(try contents(of: store.assetFolder) == files, "copy \(number)")
                try checkSound(path)
            }
            #expect(try visibleFiles(of: test.store).keys.sorted() == ["a.pdf/c.pdf", "d/b.pdf", "same.pdf"])
        }
    }

    // After the commit the folder is brought in line in any number of steps, and any of them may fail or never come.
    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func whereverTheFolderStandsAfterACommit_readersHaveTheNewState(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try withStoreAndRoom { test, room in
            let paths = ["a", "b", "d/a", "d/b", "d/e/a"]
            func change(_ store: Store) throws {
                for path in paths where random.chance(2) {
                    switch random.below(3) {
                    case 0: if let asset = try store.asset(path) { try store.removeAsset(asset) }
                    default: try replace(path, "\(random.below(4))", in: store)
                    }
                }
                _ = try store.putSetting("k", "\(random.below(1000))", at: time(0))
            }
            try batch(test.store, change)
            for _ in 0..<6 {
                // What a long reader is reading stays, however often others write meanwhile.
                let reader = try Store(test.store.path, .read)
                let old = try visibleFiles(of: test.store)
                if random.chance(3), try test.store.undoable() != nil {
                    _ = try test.store.undoLast()
                } else {
                    try batch(test.store, change)
                }
                let new = try stateForReaders(test.store.path)
                let copy = "\(room)/\(random.next())"
                try copyTree(test.folder, to: copy)
                let store = "\(copy)/store.db"
                // Some paths are as they were before, as if the run had been killed after its commit.
                let database = try SQLite(store, .readWrite)
                let current = try visibleFiles(of: test.store)
                for path in Set(old.keys).union(current.keys) where old[path] != current[path] && random.chance(2) {
                    try database.statement("INSERT INTO asset_pending VALUES (?, ?, NULL)").bind(1, path)
                        .bind(2, old[path].map { SHA256Digest.of(String(decoding: $0, as: UTF8.self)).hex }).run()
                    let target = "\(store).assets/\(path)"
                    unlink(target)
                    if let bytes = old[path] { try writeFile(target, String(decoding: bytes, as: UTF8.self)) }
                }
                #expect(try stateForReaders(store) == new)
                _ = try Store(store, .write)
                #expect(try stateForReaders(store) == new)
                #expect(try visibleFiles(of: Store(store, .read)) == current)
                try checkSound(store)
                _ = try reader.read { try reader.info() }
            }
            try test.store.settleFiles()
        }
    }

    @Test func aReaderThatBeganEarlierHasItsState_whateverIsWrittenMeanwhile() throws {
        try withStore { test in
            try batch(test.store) {
                try place("a", "old", in: $0)
                try place("b", "gone", in: $0)
            }
            try readBehindWriters(test)
            try test.store.settleFiles()
        }
    }

    private func readBehindWriters(_ test: TestStore) throws {
        let reader = try Store(test.store.path, .read)
        try reader.read {
            let assets = try ["a", "b"].map { try #require(try reader.asset($0)) }
            for text in ["1", "2", "3"] { try batch(test.store) { try replace("a", text, in: $0) } }
            try batch(test.store) { try $0.removeAsset(assets[1]) }
            // So many that the undo history forgets the first of them.
            for number in 0..<25 { try batch(test.store) { try place("n\(number)", "n", in: $0) } }
            let files = try #require(try AssetFiles(of: reader))
            for (asset, text) in zip(assets, ["old", "gone"]) {
                let opened = try files.open(asset)
                var bytes: [UInt8] = []
                try opened.file.forEachChunk { bytes += $0 }
                #expect(String(decoding: bytes, as: UTF8.self) == text && !opened.isRemoved)
            }
        }
    }

    /// In a process of its own: a signal that was caught is caught for good.
    @Test func aSignalWhileFilesArePutInPlace_isNoObstacle() async {
        await #expect(processExitsWith: .success) {
            try withTemporaryFolder { folder in
                let store = try Store.create("\(folder)/store.db")
                try writeFile("\(store.assetFolder)/a/mine", "x")
                try batch(store) { try place("a", "A", in: $0) }
                try Directory.removeTree("\(store.assetFolder)/a")
                Interrupt.install()
                kill(getpid(), SIGTERM)
                while Interrupt.signal == nil { usleep(1000) }
                #expect(errorCode { try store.settleFiles() } == .interrupted)
            }
        }
    }

    @Test func aLinkThatIsInTheWayOfACommit_isLeftAlone_andReadersHaveTheirBytes() throws {
        try withStore { test in
            try batch(test.store) { try place("a.pdf", "A", in: $0) }
            try batch(test.store) { try $0.removeAsset(try #require(try $0.asset("a.pdf"))) }
            let path = "\(test.store.assetFolder)/a.pdf"
            #expect(symlink("elsewhere", path) == 0)
            _ = try test.store.undoLast()
            #expect(try stateForReaders(test.store.path)["a.pdf"] == "A")
            #expect(try FileStatus.ofName(path)?.isLink == true)
            unlink(path)
            try test.store.settleFiles()
            #expect(try visibleFiles(of: test.store)["a.pdf"] == Array("A".utf8))
        }
    }

    /// The app changes the file while a command that removes it is at work.
    @Test func aFileThatAnAppPutsInTheWayOfARemoval_staysWhereItIs() throws {
        try withStore { test in
            try batch(test.store) {
                try place("a.pdf", "A", in: $0)
                try place("d/b.pdf", "B", in: $0)
            }
            try batch(test.store) { store in
                for path in ["a.pdf", "d/b.pdf"] { try store.removeAsset(try #require(try store.asset(path))) }
                unlink("\(store.assetFolder)/a.pdf")
                try write("a.pdf", "somebody else's", in: store)
            }
            #expect(try visibleFiles(of: test.store) == ["a.pdf": Array("somebody else's".utf8)])
            // It is the app's, and no part of the store.
            unlink("\(test.store.assetFolder)/a.pdf")
        }
    }

    @Test(arguments: [false, true])
    func aFileThatAnAppChanged_isReadAsItIs_andKeptWhenItIsReplaced(byRename: Bool) throws {
        try withStore { test in
            try batch(test.store) { try place("a.pdf", "first", in: $0) }
            // So that the store keeps the same bytes for an undo, too.
            try batch(test.store) { try $0.removeAsset(try #require(try $0.asset("a.pdf"))) }
            try batch(test.store) { try place("a.pdf", "first", in: $0) }
            let path = "\(test.store.assetFolder)/a.pdf"
            if byRename {
                try writeFile(path + ".new", "first, annotated")
                rename(path + ".new", path)
            } else {
                let file = try #require(fopen(path, "w"))
                fputs("first, annotated", file)
                fclose(file)
            }
            let reader = try Store(test.store.path, .read)
            let opened = try #require(try AssetFiles(of: reader)).open(try #require(try reader.asset("a.pdf")))
            #expect(try opened.file.status().size == 16)
            let digest = try test.store.digest()
            try batch(test.store) { try replace("a.pdf", "second", in: $0) }
            #expect(try visibleFiles(of: test.store)["a_conflict_2026-03-01.pdf"] == Array("first, annotated".utf8))
            #expect(test.store.fileFindings.map(\.subject) == ["a.pdf"])
            _ = try test.store.undoLast()
            #expect(try test.store.digest() == digest)
            #expect(try visibleFiles(of: test.store) == ["a.pdf": Array("first, annotated".utf8)])
            try write("a.pdf", "first", in: test.store)
        }
    }

    @Test func aFileThatWasRemoved_isReadFromTheUndoHistory_andSaid() throws {
        try withStore { test in
            for _ in 0..<2 { try batch(test.store) { try replace("a.pdf", "A", in: $0) } }
            unlink("\(test.store.assetFolder)/a.pdf")
            let reader = try Store(test.store.path, .read)
            let opened = try #require(try AssetFiles(of: reader)).open(try #require(try reader.asset("a.pdf")))
            #expect(opened.isRemoved)
            try batch(test.store) { try place("a.pdf", "A", in: $0) }
            #expect(try visibleFiles(of: test.store)["a.pdf"] == Array("A".utf8))
        }
    }

    @Test func bytesThatNobodyNeedsAreCollected_whenNoReaderIsAtWork() throws {
        try withStore { test in
            let blobs = "\(test.store.assetFolder)/.blobs"
            try batch(test.store) { try place("a", "A", in: $0) }
            try writeFile("\(blobs)/\(SHA256Digest.of("x").hex)", "x")
            var reader: Store? = try Store(test.store.path, .read)
            try test.store.settleFiles()
            #expect(try FileStatus.ofName("\(blobs)/\(SHA256Digest.of("x").hex)") != nil)
            _ = reader?.path
            reader = nil
            // A process that another test starts right now has the reader's lock until it runs.
            for _ in 0..<100 where try !Directory.names(in: blobs).isEmpty {
                try test.store.settleFiles()
                usleep(10_000)
            }
            #expect(try Directory.names(in: blobs).isEmpty)
        }
    }
}
