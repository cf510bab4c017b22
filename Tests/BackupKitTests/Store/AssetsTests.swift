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
                try expectPlace("a.b/x.y.pdf", "B", in: $0, .known(as: "a.b/x.y_conflict_2026-03-01.pdf"))
            }
            #expect(try test.store.info().conflicts == 2)
            let before = try contents(of: test.store.assetFolder)
            test.clock.advance(seconds: 86_400)
            try test.batch {
                try expectPlace("a.b/x.y.pdf", "C", in: $0, .known(as: "a.b/x.y_conflict_2026-03-01-2.pdf"))
            }
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
            // One that an app saved shorter would have another time.
            let cut = "\(test.store.assetFolder)/b.pdf"
            let time = try #require(try FileStatus.ofName(cut)).modifiedNanoseconds
            truncate(cut, 1)
            let stamp = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
            utimensat(AT_FDCWD, cut, [stamp, stamp], 0)
            let before = try test.store.digest()
            try test.batch {
                try place("a.pdf", "AAA", in: $0)
                try place("b.pdf", "BBB", in: $0)
            }
            #expect(test.file("a.pdf") == "AAA" && test.file("b.pdf") == "BBB")
            #expect(try test.store.digest() == before)
            // It was a repair.
            #expect(try test.store.undoLast().setBack == 2)
            #expect(test.file("a.pdf") == "AAA" && test.file("b.pdf") == "BBB")
        }
    }

    @Test func aFileThatCameBackForThisDeviceOnly_staysWithTheUndoForAll() throws {
        try withStore { test in
            try test.batch { try place("a.pdf", "AAA", in: $0) }
            let before = try test.store.asset("a.pdf")
            unlink("\(test.store.assetFolder)/a.pdf")
            try test.batch { store in
                try store.removeAsset(#require(before), for: .of("AAA"))
                try store.withIncomingFolder { folder in
                    try writeFile("\(folder)/file", "AAA")
                    let here = Asset(path: "a.pdf", size: 3, digest: .of("AAA"), isLocalOnly: true)
                    try store.placeAsset(here, from: "\(folder)/file")
                }
            }
            for isLocalOnly in [false, true, false] {
                _ = try isLocalOnly ? test.store.redoLast() : test.store.undoLast()
                #expect(try test.store.asset("a.pdf")?.isLocalOnly == isLocalOnly && test.file("a.pdf") == "AAA")
            }
        }
    }

    @Test(arguments: [
        "", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", ".kept/1/a", ".incoming/a", ".blobs/a", "a\u{0}b",
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
            try test.batch { try place("other.pdf", "Y", in: $0) }
            let kept = try #require(try visibleFiles(of: test.store).keys.first { $0.contains("other_conflict_") })
            #expect(test.file("other.pdf") == "Y" && test.file(kept) == "X")
            for _ in 0..<2 { _ = try test.store.undoLast() }
            // They were there before the import, so they are there after the undo.
            #expect(test.file("same.pdf") == "A" && test.file("other.pdf") == "X" && test.file(kept) == nil)
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
            let files = try visibleFiles(of: test.store)
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
            #expect(try visibleFiles(of: test.store) == files)
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
