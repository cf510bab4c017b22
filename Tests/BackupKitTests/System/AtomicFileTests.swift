import Glibc
import TestSupport
import Testing

@testable import BackupKit

private struct OnPurpose: Error {}

@Suite struct AtomicFileTests {
    @Test func aFileAppearsWholeAndPrivate() throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/a"
            try AtomicFile.write(path) { file in
                try file.write("whole")
                #expect(try FileStatus.ofName(path) == nil)
            }
            #expect(try readFile(path) == Array("whole".utf8))
            #expect(try FileStatus.ofName(path)?.mode == S_IFREG | 0o600)
            #expect(try Directory.names(in: folder) == ["a"])
        }
    }

    @Test func nothingHasANameThatIsTooLong() throws {
        let name = String(repeating: "n", count: 300)
        for path in ["/\(name)", "/\(name)/a"] {
            #expect(try FileStatus.ofName(path) == nil)
            #expect(try FileStatus.ofTarget(path) == nil)
        }
    }

    @Test func whatExistsIsRefusedUnlessItIsToBeReplaced() throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/a"
            try AtomicFile.write(path) { try $0.write("old") }
            var ran = false
            let error = #expect(throws: BackupError.self) { try AtomicFile.write(path) { _ in ran = true } }
            #expect(error?.code == .exists && !ran)
            try AtomicFile.write(path, replace: true) { try $0.write("new") }
            #expect(try readFile(path) == Array("new".utf8))
            // Somebody makes the name while we write.
            let race = #expect(throws: BackupError.self) {
                try AtomicFile.write("\(folder)/b") { _ in try writeFile("\(folder)/b", "theirs") }
            }
            #expect(race?.code == .exists)
            #expect(try readFile("\(folder)/b") == Array("theirs".utf8))
            #expect(try Directory.names(in: folder) == ["a", "b"])
        }
    }

    @Test func aLinkIsReplacedAndNotFollowed() throws {
        try withTemporaryFolder { folder in
            try writeFile("\(folder)/target", "old")
            guard symlink("target", "\(folder)/link") == 0 else { throw OnPurpose() }
            #expect(throws: BackupError.self) { try AtomicFile.write("\(folder)/link") { _ in } }
            try AtomicFile.write("\(folder)/link", replace: true) { try $0.write("new") }
            #expect(try readFile("\(folder)/target") == Array("old".utf8))
            #expect(try FileStatus.ofName("\(folder)/link")?.isRegular == true)
        }
    }

    @Test func aWriterThatFailsLeavesTheOldState() throws {
        try withTemporaryFolder { folder in
            try writeFile("\(folder)/a", "old")
            for path in ["a", "b"] {
                #expect(throws: OnPurpose.self) {
                    try AtomicFile.write("\(folder)/\(path)", replace: true) { file in
                        try file.write("half")
                        throw OnPurpose()
                    }
                }
                #expect(throws: OnPurpose.self) {
                    try AtomicFile.writeDirectory("\(folder)/\(path)", replace: true) { inner in
                        try writeFile("\(inner)/x/y", "half")
                        throw OnPurpose()
                    }
                }
            }
            #expect(try contents(of: folder) == ["a": Array("old".utf8)])
        }
    }

    @Test func aFolderChangesPlacesWithTheOldOne() throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/d"
            try AtomicFile.writeDirectory(path) { try writeFile("\($0)/one", "1") }
            #expect(throws: BackupError.self) { try AtomicFile.writeDirectory(path) { _ in } }
            try AtomicFile.writeDirectory(path, replace: true) { inner in
                try writeFile("\(inner)/two", "2")
                #expect(try Directory.names(in: path) == ["one"])
            }
            #expect(try contents(of: folder) == ["d": nil, "d/two": Array("2".utf8)])
            try AtomicFile.writeDirectory("\(folder)/new", replace: true) { _ in }
            #expect(try Directory.names(in: folder) == ["d", "new"])
        }
    }

    @Test func whatADeadWriterLeftIsRemovedAndWhatALivingOneWritesIsNot() throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/a"
            let mine = AtomicFile.temporaryName(for: path)
            // No process has a number above the kernel's limit of 4194304; 1 always lives.
            let dead = [".a.tmp-4194305-ab12", ".a.tmp-4194305-ab12-wal", ".a.tmp-\(getpid())-anotherlife-1"]
            let living = [".a.tmp-1-ab12", lastComponent(of: mine)]
            let foreign = [".b.tmp-4194305-ab12", ".a.tmp-x", ".a.tmp-", "a.tmp-4194305-ab12"]
            for name in dead + living + foreign { try writeFile("\(folder)/\(name)", "x") }
            try writeFile("\(folder)/.a.tmp-4194305-folder/inner", "x")
            try AtomicFile.write(path) { _ in }
            #expect(try Directory.names(in: folder) == (living + foreign + ["a"]).sorted())
        }
    }

    @Test(arguments: [255, 254, 250, 201, 200])
    func namesMayBeAsLongAsTheFileSystemAllows(length: Int) throws {
        try withTemporaryFolder { folder in
            for name in [String(repeating: "n", count: length), String(repeating: "é", count: length / 2)] {
                try AtomicFile.write("\(folder)/\(name)") { try $0.write("x") }
                #expect(try readFile("\(folder)/\(name)") == [0x78])
            }
        }
    }

    @Test func aFullDiskIsSaidToBeFullAndNothingIsLeft() throws {
        guard geteuid() == 0 else { return }
        try withTemporaryFolder { folder in
            guard mount("none", folder, "tmpfs", 0, "size=64k") == 0 else { return }
            defer { umount2(folder, Int32(MNT_DETACH)) }
            try writeFile("\(folder)/a", "old")
            let big = String(repeating: "x", count: 200_000)
            for body in [
                { try AtomicFile.write("\(folder)/a", replace: true) { try $0.write(big) } },
                { try AtomicFile.writeDirectory("\(folder)/d") { try writeFile("\($0)/x", big) } },
            ] {
                let error = #expect(throws: BackupError.self) { try body() }
                #expect(error?.code == .destinationFull)
                #expect(try contents(of: folder) == ["a": Array("old".utf8)])
            }
        }
    }

    @Test func pathsComeApart() {
        for (path, above, name) in [
            ("a/b", "a", "b"), ("b", ".", "b"), ("/b", "/", "b"), ("a/b/", "a", "b"), ("/", "/", ""),
            ("a//b", "a/", "b"),
        ] {
            #expect(parent(of: path) == above)
            #expect(lastComponent(of: path) == name)
        }
    }

    @Test func aFileInTheWayOfAFolderIsNamed() throws {
        try withTemporaryFolder { folder in
            try writeFile("\(folder)/file", "x")
            let error = #expect(throws: BackupError.self) { try Directory.createAll("\(folder)/file/inner") }
            #expect(error != nil)
            #expect(throws: BackupError.self) { try Directory.createAll("\(folder)/file") }
            try Directory.createAll("\(folder)/x/y/z")
            try Directory.createAll("\(folder)/x/y/z")
        }
    }
}
