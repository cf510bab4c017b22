import Glibc
import TestSupport
import Testing

@testable import BackupKit

extension TestStore {
    /// One batch, and what the folder and the database were while it was not committed yet.
    fileprivate func batch(_ body: (Store) throws -> Void) throws {
        _ = try store.batch(kind: "import", source: "test") { (try body(store), summary: "") }
    }

    fileprivate func file(_ path: String) -> String? {
        (try? readFile("\(store.assetFolder)/\(path)")).map { String(decoding: $0, as: UTF8.self) }
    }
}

private func expectPlace(_ path: String, _ text: String, in store: Store, _ expected: Store.AssetOutcome) throws {
    #expect(try place(path, text, in: store) == expected)
}

/// Takes `old` out and puts `text` in its place.
private func replace(_ path: String, _ text: String, in store: Store) throws {
    if let old = try store.asset(path) { try store.removeAsset(old) }
    try place(path, text, in: store)
}

@Suite struct AssetsTests {
    @Test func aFileIsTakenInOnceAndKnownByItsDigest() throws {
        try withStore { test in
            try test.batch { try expectPlace("PDFs/a/b.pdf", "A", in: $0, .added) }
            try test.batch { try expectPlace("PDFs/a/b.pdf", "A", in: $0, .unchanged) }
            #expect(test.file("PDFs/a/b.pdf") == "A")
            #expect(try test.store.asset("PDFs/a/b.pdf") == Asset(path: "PDFs/a/b.pdf", size: 1, digest: .of("A")))
        }
    }

    @Test func twoVersionsOfOneFileAreBothKept() throws {
        try withStore { test in
            try test.batch { try place("a.b/x.y.pdf", "A", in: $0) }
            try test.batch {
                try expectPlace("a.b/x.y.pdf", "B", in: $0, .conflict(keptAs: "a.b/x.y_conflict_2026-03-01.pdf"))
                try expectPlace("a.b/x.y.pdf", "C", in: $0, .conflict(keptAs: "a.b/x.y_conflict_2026-03-01-2.pdf"))
                try expectPlace("a.b/x.y.pdf", "B", in: $0, .unchanged)
            }
            #expect(try test.store.info().conflicts == 2)
            let before = try contents(of: test.store.assetFolder)
            test.clock.advance(seconds: 86_400)
            try test.batch { try expectPlace("a.b/x.y.pdf", "C", in: $0, .unchanged) }
            #expect(try contents(of: test.store.assetFolder) == before)
        }
    }

    @Test func aFileThatWentMissingIsBroughtBackByTheNextImport() throws {
        try withStore { test in
            try test.batch {
                try place("a.pdf", "AAA", in: $0)
                try place("b.pdf", "BBB", in: $0)
            }
            unlink("\(test.store.assetFolder)/a.pdf")
            truncate("\(test.store.assetFolder)/b.pdf", 1)
            let before = try test.store.digest()
            try test.batch {
                try place("a.pdf", "AAA", in: $0)
                try place("b.pdf", "BBB", in: $0)
            }
            #expect(test.file("a.pdf") == "AAA" && test.file("b.pdf") == "BBB")
            #expect(try test.store.digest() == before)
            _ = try test.store.undoLast()
            #expect(test.file("a.pdf") == nil && test.file("b.pdf") == "B")
            try test.batch {
                try place("a.pdf", "AAA", in: $0)
                try place("b.pdf", "BBB", in: $0)
            }
        }
    }

    @Test(arguments: [
        "", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", ".kept/1/a", ".incoming/a", "a\u{0}b",
    ])
    func noPathLeadsOutOfTheFolderOrIntoTheStoresOwn(path: String) throws {
        try withStore { test in
            // The log comes with the first write.
            func files() throws -> [String] { try contents(of: test.folder).keys.filter { !$0.contains("-") }.sorted() }
            let before = try files()
            let error = #expect(throws: BackupError.self) { try test.batch { try place(path, "A", in: $0) } }
            #expect(error?.code == .refused)
            #expect(try files() == before)
        }
    }

    @Test func aForeignFileIsAdoptedWhenItIsTheSameAndNeverOverwritten() throws {
        try withStore { test in
            try writeFile("\(test.store.assetFolder)/same.pdf", "A")
            try writeFile("\(test.store.assetFolder)/other.pdf", "X")
            try test.batch { try place("same.pdf", "A", in: $0) }
            let error = #expect(throws: BackupError.self) { try test.batch { try place("other.pdf", "Y", in: $0) } }
            #expect(error?.code == .exists)
            #expect(test.file("other.pdf") == "X")
            _ = try test.store.undoLast()
            // It was there before the import, so it is there after the undo.
            #expect(test.file("same.pdf") == "A")
            unlink("\(test.store.assetFolder)/same.pdf")
            unlink("\(test.store.assetFolder)/other.pdf")
        }
    }

    @Test func anUndoBringsEveryFileBack() throws {
        try withStore { test in
            try test.batch {
                try place("kept/a.pdf", "A", in: $0)
                try place("kept/b.pdf", "B", in: $0)
            }
            let files = try contents(of: test.store.assetFolder)
            let digest = try test.store.digest()
            try test.batch {
                try replace("kept/a.pdf", "new A", in: $0)
                try replace("kept/a.pdf", "newer A", in: $0)
                if let b = try $0.asset("kept/b.pdf") { try $0.removeAsset(b) }
                try place("deep/er/c.pdf", "C", in: $0)
                try place("gone.pdf", "D", in: $0)
                if let gone = try $0.asset("gone.pdf") { try $0.removeAsset(gone) }
            }
            #expect(test.file("kept/a.pdf") == "newer A" && test.file("kept/b.pdf") == nil)
            #expect(test.file("gone.pdf") == nil)
            let result = try test.store.undoLast()
            #expect(result.assets == 4)
            #expect(try contents(of: test.store.assetFolder) == files)
            #expect(try test.store.digest() == digest)
        }
    }

    @Test(arguments: [false, true])
    func aBatchThatFailsOrIsARehearsalLeavesTheFolderAsItWas(dryRun: Bool) throws {
        try withStore { test in
            try test.batch { try place("x/a.pdf", "A", in: $0) }
            let files = try contents(of: test.store.assetFolder)
            func work(_ store: Store) throws {
                try replace("x/a.pdf", "new", in: store)
                try place("y/b.pdf", "B", in: store)
                if !dryRun { throw BackupError(.failed, "on purpose") }
            }
            if dryRun {
                _ = try test.store.batch(kind: "import", source: "", dryRun: true) {
                    (try work(test.store), summary: "")
                }
            } else {
                #expect(throws: BackupError.self) { try test.batch(work) }
            }
            #expect(try contents(of: test.store.assetFolder) == files)
            try test.batch { try place("y/b.pdf", "another B", in: $0) }
        }
    }

    @Test func anAssetIsOnlyTouchedByABatch() throws {
        try withStore { test in
            try test.batch { try place("a.pdf", "A", in: $0) }
            let asset = try #require(try test.store.asset("a.pdf"))
            #expect(throws: BackupError.self) { try test.store.write { try test.store.removeAsset(asset) } }
            #expect(throws: BackupError.self) { try test.store.write { try place("b.pdf", "B", in: test.store) } }
        }
    }

    @Test func exactly250MegabytesStillSync() {
        #expect(!Asset(path: "a", size: 250_000_000, digest: .of("")).isLocalOnly)
        #expect(Asset(path: "a", size: 250_000_001, digest: .of("")).isLocalOnly)
    }
}

/// A store, and a folder for copies of it.
private func withStoreAndRoom(_ body: (TestStore, String) throws -> Void) throws {
    try withTemporaryFolder { room in try withStore { try body($0, room) } }
}

/// What a killed process leaves is a copy of the folder at that instant. The next writer makes it the old state or the
/// new one.
@Suite struct AssetsKillTests {
    @Test func killedAnywhereInABatchTheOldStateComesBack() throws {
        try withStoreAndRoom { test, room in
            try test.batch {
                try place("a.pdf", "A", in: $0)
                try place("d/b.pdf", "B", in: $0)
            }
            let digest = try test.store.digest()
            let files = try contents(of: test.store.assetFolder)
            var copies = 0
            func kill() throws {
                copies += 1
                try copyTree(test.folder, to: "\(room)/\(copies)")
            }
            try test.batch { store in
                _ = try store.ingest(record("r"))
                for (path, text) in [("a.pdf", "new A"), ("d/b.pdf", "new B")] {
                    try store.removeAsset(try #require(try store.asset(path)))
                    try kill()
                    try store.withIncomingFolder { folder in
                        try writeFile("\(folder)/file", text)
                        try kill()
                        _ = try store.placeAsset(
                            Asset(path: path, size: Int64(text.utf8.count), digest: .of(text)), from: "\(folder)/file")
                        try kill()
                    }
                }
                try place("new/c.pdf", "C", in: store)
                try kill()
                // Its name was noted, the rename was not reached; and a line cut short.
                try store.notePlaced("never.pdf")
                try kill()
                try store.placedFiles?.write("d/b.p")
                try kill()
            }
            for number in 1...copies {
                let folder = "\(room)/\(number)"
                let store = try Store("\(folder)/store.db", .write)
                #expect(try store.digest() == digest)
                #expect(try contents(of: store.assetFolder) == files, "copy \(number)")
                try checkSound(store.path)
            }
        }
    }

    @Test func killedAnywhereInTheRecoveryTheNextOneFinishesIt() throws {
        try withStoreAndRoom { test, room in
            try test.batch {
                try place("a.pdf", "A", in: $0)
                try place("b.pdf", "B", in: $0)
            }
            let files = try contents(of: test.store.assetFolder)
            let copy = "\(room)/copy"
            try test.batch {
                try replace("a.pdf", "new A", in: $0)
                try replace("b.pdf", "new B", in: $0)
                try copyTree(test.folder, to: copy)
            }
            // The new files are gone with their list, one of the old ones is back.
            let assets = "\(copy)/store.db.assets"
            for name in ["a.pdf", "b.pdf", ".kept/2.placed"] { unlink("\(assets)/\(name)") }
            try AtomicFile.publish("\(assets)/.kept/2/a.pdf", as: "\(assets)/a.pdf", replace: false)
            let store = try Store("\(copy)/store.db", .write)
            #expect(try contents(of: store.assetFolder) == files)
        }
    }

    // The undo is committed first; then its files move, in any number of steps.
    @Test(arguments: 0...4)
    func killedAnywhereInAnUndoTheNextWriterFinishesIt(step: Int) throws {
        try withStoreAndRoom { test, room in
            try test.batch {
                try place("a.pdf", "A", in: $0)
                try place("d/b.pdf", "B", in: $0)
            }
            let digest = try test.store.digest()
            let files = try contents(of: test.store.assetFolder)
            try test.batch {
                try replace("a.pdf", "new A", in: $0)
                try $0.removeAsset(try #require(try $0.asset("d/b.pdf")))
                try place("c/c.pdf", "C", in: $0)
            }
            let copy = "\(room)/copy"
            try copyTree(test.store.assetFolder, to: "\(copy)/store.db.assets")
            _ = try test.store.undoLast()
            // The database of after the undo with the files of before it; the log's index is rebuilt.
            try copyTree(test.folder, to: "\(copy)/all")
            for name in ["store.db", "store.db-wal"] {
                guard rename("\(copy)/all/\(name)", "\(copy)/\(name)") == 0 else { throw BackupError(.failed, name) }
            }
            let database = try SQLite("\(copy)/store.db", .readWrite)
            // finishUndoneAssets had not yet cleared its list.
            try database.execute(
                """
                INSERT INTO batch_asset VALUES
                (2, 'a.pdf', 1, '\(SHA256Digest.of("A").hex)', 0, 0, '.kept/2/a.pdf'),
                (2, 'd/b.pdf', 1, '\(SHA256Digest.of("B").hex)', 0, 0, '.kept/2/d/b.pdf'),
                (2, 'c/c.pdf', NULL, NULL, NULL, NULL, NULL)
                """)
            let assets = "\(copy)/store.db.assets"
            if step >= 1 { rename("\(assets)/.kept/2/a.pdf", "\(assets)/a.pdf") }
            if step >= 2 { try Directory.removeTree("\(assets)/c") }
            if step >= 3 { rename("\(assets)/.kept/2/d/b.pdf", "\(assets)/d/b.pdf") }
            if step >= 4 { try database.execute("DELETE FROM batch_asset WHERE batch = 2") }
            try Directory.removeTree("\(copy)/all")
            let store = try Store("\(copy)/store.db", .write)
            #expect(try store.digest() == digest)
            let found = try contents(of: store.assetFolder)
            #expect(found == files)
        }
    }

    @Test func whatForgottenBatchesKeptIsSweptAway() throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/s.db"
            do {
                let store = try Store.create(path)
                for name in ["a", "b"] {
                    _ = try store.batch(kind: "import", source: "") { (try place(name, name, in: store), summary: "") }
                }
                try store.write { try store.database.execute("DELETE FROM batch WHERE id = 1") }
                try writeFile("\(store.assetFolder)/.kept/1/old", "x")
                try writeFile("\(store.assetFolder)/.kept/2.placed", "b\0")
                try writeFile("\(store.assetFolder)/.incoming/0123/file", "x")
                _ = try checkedFailure { try checkSound(path) }
            }
            let store = try Store(path, .write)
            try checkSound(path)
            #expect(try Directory.names(in: store.assetFolder) == ["a", "b"])
        }
    }

    private func checkedFailure(_ body: () throws -> Void) throws -> BackupError? {
        #expect(throws: BackupError.self) { try body() }
    }
}
