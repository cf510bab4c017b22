import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// The contract of `VaultBackend`, kept by every backend there is. A new kind is one more case here.
enum BackendKind: String, CaseIterable, Sendable {
    case folder
    case distant

    func make(in folder: String) throws -> any VaultBackend {
        let near = try FolderBackend.create("\(folder)/vault")
        return switch self {
        case .folder: near
        case .distant: DistantBackend(near, settling: 0.02)
        }
    }
}

private func withBackend(_ kind: BackendKind, _ body: (any VaultBackend) throws -> Void) throws {
    try withTemporaryFolder { try body(try kind.make(in: $0)) }
}

extension VaultBackend {
    @discardableResult
    fileprivate func put(_ text: String, _ kind: VaultFile.Kind = .data) throws -> SHA256Digest {
        try Array(text.utf8).withUnsafeBytes { try store(kind, $0) }
    }

    /// What a listing says when it knows of all that was done.
    fileprivate func settled(_ kind: VaultFile.Kind) throws -> VaultListing {
        pause(settling * 1.1)
        return try list(kind)
    }

    fileprivate func text(_ file: VaultFile) throws -> String {
        String(decoding: try readAll(file, limit: 1 << 20), as: UTF8.self)
    }
}

@Suite struct VaultBackendTests {
    @Test(arguments: BackendKind.allCases, VaultFile.Kind.allCases)
    func whatWasWrittenIsListedAndReadAndRemoved(_ backendKind: BackendKind, _ kind: VaultFile.Kind) throws {
        try withBackend(backendKind) { backend in
            #expect(try backend.settled(kind) == VaultListing())
            let file = VaultFile(kind, kind == .config ? .zero : SHA256Digest.of("hello"))
            #expect(try backend.size(file) == nil)
            try Array("hello".utf8).withUnsafeBytes { try backend.write(file, $0) }
            let items = try backend.settled(kind).items
            #expect(items.map(\.id) == [file.id] && items.map(\.size) == [5])
            if let modified = items.first?.modified {
                #expect(abs(modified.milliseconds - Clock.system.now().milliseconds) < 60_000)
            }
            #expect(try backend.size(file) == 5)
            #expect(try backend.text(file) == "hello")
            try backend.remove([file])
            try backend.remove([file])
            #expect(try backend.settled(kind) == VaultListing())
            #expect(errorCode { _ = try backend.text(file) } == .notFound)
        }
    }

    @Test(arguments: BackendKind.allCases)
    func nothingIsEverOverwritten(_ kind: BackendKind) throws {
        try withBackend(kind) { backend in
            let file = VaultFile(.snapshot, .of("a"))
            try Array("a".utf8).withUnsafeBytes { try backend.write(file, $0) }
            #expect(errorCode { try Array("b".utf8).withUnsafeBytes { try backend.write(file, $0) } } == .exists)
            #expect(try backend.text(file) == "a")
            #expect(try backend.put("a", .snapshot) == file.id)
        }
    }

    @Test(arguments: BackendKind.allCases)
    func partsAreReadExactlyOrNotAtAll(_ kind: BackendKind) throws {
        try withBackend(kind) { backend in
            let file = VaultFile(.data, try backend.put("0123456789"))
            var buffer = [UInt8](repeating: 0, count: 4)
            try buffer.withUnsafeMutableBytes { try backend.read(file, at: 3, into: $0) }
            #expect(buffer == Array("3456".utf8))
            #expect(
                errorCode { try buffer.withUnsafeMutableBytes { try backend.read(file, at: 7, into: $0) } } == .damaged)
            #expect(
                errorCode { try buffer.withUnsafeMutableBytes { try backend.read(file, at: 99, into: $0) } } == .damaged
            )
            #expect(errorCode { _ = try backend.readAll(file, limit: 9) } == .damaged)
            try backend.put("", .index)
            #expect(try backend.text(VaultFile(.index, .of(""))).isEmpty)
        }
    }

    @Test(arguments: BackendKind.allCases)
    func manyFilesAreListedOnceAndInOrderThoughSeveralWrite(_ kind: BackendKind) throws {
        try withBackend(kind) { backend in
            try Parallel.forEach(60, workers: 4, state: { () }) { _, number in
                // Two threads write each file; one of them finds it there.
                try backend.put("blob \(number / 2)")
            }
            let listed = try backend.settled(.data).items.map(\.id)
            #expect(listed == (0..<30).map { SHA256Digest.of("blob \($0)") }.sorted())
        }
    }

    /// Who does not wait may be told of what was, but of nothing that never was.
    @Test(arguments: BackendKind.allCases)
    func aListingAtOnceShowsWhatIsOrWas(_ kind: BackendKind) throws {
        try withBackend(kind) { backend in
            let files = try (0..<8).map { VaultFile(.index, try backend.put("\($0)", .index)) }
            #expect(Set(try backend.list(.index).items.map(\.id)).isSubset(of: files.map(\.id)))
            #expect(try backend.settled(.index).items.count == 8)
            try backend.remove(Array(files[..<5]))
            #expect(Set(try backend.list(.index).items.map(\.id)).isSuperset(of: files[5...].map(\.id)))
            #expect(try backend.settled(.index).items.map(\.id) == files[5...].map(\.id).sorted())
            // Asked for by name, a file is there or is not.
            #expect(try files.map { try backend.size($0) } == [nil, nil, nil, nil, nil, 1, 1, 1])
        }
    }

    @Test(arguments: BackendKind.allCases)
    func whereNobodyWasInterruptedNothingIsSweptAndNothingLost(_ kind: BackendKind) throws {
        try withBackend(kind) { backend in
            for kind in VaultFile.Kind.allCases where kind != .config { try backend.put("x", kind) }
            try backend.setRoomAside()
            #expect(try backend.sweep() == 0)
            for kind in VaultFile.Kind.allCases where kind != .config {
                let file = VaultFile(kind, .of("x"))
                #expect(try backend.settled(kind).sizes == [file.id: 1])
                #expect(try backend.hasPlace(for: file))
            }
            // At most once, and never again without being set aside.
            if try backend.giveRoomUp() { #expect(try !backend.giveRoomUp()) }
        }
    }

    @Test func theLayoutIsThatOfRestic() throws {
        try withTemporaryFolder { folder in
            let backend = try FolderBackend.create("\(folder)/v")
            let id = try backend.put("x").hex
            let status = try #require(try FileStatus.ofName("\(folder)/v/data/\(id.prefix(2))/\(id)"))
            #expect(status.mode & 0o777 == 0o400)
            #expect(try #require(try FileStatus.ofName("\(folder)/v/data")).mode & 0o777 == 0o700)
            #expect(try Directory.names(in: "\(folder)/v/data").count == 256)
            #expect(try Directory.names(in: "\(folder)/v") == ["data", "index", "keys", "locks", "snapshots"])
        }
    }

    @Test func aFolderThatIsMissingIsMadeByTheWriterAndEmptyForTheReader() throws {
        try withTemporaryFolder { folder in
            let backend = try FolderBackend.create("\(folder)/v")
            try Directory.removeTree("\(folder)/v/data")
            try Directory.removeTree("\(folder)/v/locks")
            #expect(try backend.list(.data) == VaultListing())
            #expect(try backend.list(.lock) == VaultListing())
            let id = try backend.put("x")
            #expect(try backend.list(.data).items.map(\.id) == [id])
        }
    }

    @Test func filesInTheWrongPlaceAreNamedAndForeignOnesPassedOver() throws {
        try withTemporaryFolder { folder in
            let backend = try FolderBackend.create("\(folder)/v")
            let id = try backend.put("x").hex
            let wrong = id.hasPrefix("00") ? "01" : "00"
            try writeFile("\(folder)/v/data/\(wrong)/\(id)", "x")
            try writeFile("\(folder)/v/data/\(id)", "x")
            try Directory.createAll("\(folder)/v/data/\(id.prefix(3))")
            try writeFile("\(folder)/v/data/\(id.prefix(3))/\(id)", "x")
            try writeFile("\(folder)/v/data/00/notes.txt", "x")
            try writeFile("\(folder)/v/data/00/\(id)-tmp-123", "x")
            try writeFile("\(folder)/v/index/\(id.uppercased())", "x")
            _ = try runProcess(["bash", "-c", "touch \(folder)/v/data/00/$'bad\\xff'"])
            let data = try backend.list(.data)
            #expect(data.items.map(\.id.hex) == [id])
            #expect(
                data.misplaced.map(\.path).sorted()
                    == ["data/\(wrong)/\(id)", "data/\(id)", "data/\(id.prefix(3))/\(id)"].sorted())
            #expect(try backend.list(.index).misplaced == [.init(path: "index/\(id.uppercased())", size: 1)])
            for place in ["sub", "lost+found/deep", "data/74/old"] {
                try writeFile("\(folder)/v/\(place)/\(id.reversed().map(String.init).joined())", "a snapshot")
                try writeFile("\(folder)/v/\(place)/\(id)", "a copy")
            }
            let other = id.reversed().map(String.init).joined()
            let strays = try backend.list(.config).misplaced.map(\.path).sorted()
            #expect(strays == ["lost+found/deep/\(other)", "sub/\(other)"])
            #expect(try backend.list(.data).misplaced.map(\.path).contains("data/74/old/\(other)"))
            #expect(try backend.sweep() == 1)
            _ = try runProcess(["bash", "-c", "rm \(folder)/v/data/00/$'bad\\xff'"])
        }
    }

    @Test func whatAKilledWriterLeftIsSweptAway() throws {
        try withTemporaryFolder { folder in
            let backend = try FolderBackend.create("\(folder)/v")
            let id = try backend.put("x")
            let path = "\(folder)/v/\(VaultFile(.data, id).path)"
            try writeFile(AtomicFile.temporaryName(for: path), "half")
            try writeFile(AtomicFile.temporaryName(for: "\(folder)/v/config"), "half")
            #expect(try backend.sweep() == 2)
            #expect(try backend.sweep() == 0)
            #expect(try backend.list(.data).items.map(\.id) == [id])
        }
    }

    @Test func aVaultThatIsNotThereIsNotFound() throws {
        try withTemporaryFolder { folder in
            #expect(errorCode { _ = try FolderBackend("\(folder)/none") } == .notFound)
            try writeFile("\(folder)/file", "x")
            #expect(errorCode { _ = try FolderBackend("\(folder)/file") } == .notFound)
        }
    }
}
