import TestSupport
import Testing

@testable import BackupKit

private func withBackend(_ body: (FolderBackend) throws -> Void) throws {
    try withTemporaryFolder { try body(try FolderBackend.create("\($0)/v")) }
}

private func make(_ backend: any VaultBackend, _ password: String = "secret", resume: Bool = false) throws -> Vault {
    try Vault.create(
        backend, password: utf8(password), polynomial: testPolynomial, cost: testCost, resume: resume)
}

@Test func keysThatAskForTooMuchWorkAreNotTried() {
    #expect(ScryptCost(n: 1 << 19, r: 8, p: 64).refusal?.contains("times the usual work") == true)
    #expect(ScryptCost(n: .max, r: .max, p: 1).refusal != nil)
    #expect(ScryptCost(n: 1 << 17, r: 8, p: 10).refusal == nil)
    var budget = ScryptCost.Budget()
    let tried = (0..<20).filter { _ in budget.refusal(of: ScryptCost(n: 1 << 18, r: 8, p: 5)) == nil }
    #expect(tried.count == 6)
    // A cheap one that follows is tried all the same, and twenty usual ones are.
    #expect(budget.refusal(of: .usual) == nil)
    budget = ScryptCost.Budget()
    #expect((0..<20).allSatisfy { _ in budget.refusal(of: .usual) == nil })
}

@Suite struct VaultKeyTests {
    @Test func aVaultOpensWithItsPasswordAndNoOther() throws {
        try withBackend { backend in
            let made = try make(backend)
            let again = try Vault.open(backend, password: utf8("secret"))
            #expect(again.id == made.id && again.key == made.key && again.version == 2)
            #expect(again.polynomial == testPolynomial)
            for wrong in ["Secret", "secret ", "secret\n", "s"] {
                #expect(errorCode { _ = try Vault.open(backend, password: utf8(wrong)) } == .wrongPassword)
            }
        }
    }

    @Test func anEmptyPasswordMakesNoVault() throws {
        try withBackend { backend in
            #expect(errorCode { _ = try make(backend, "") } == .usage)
            let keys = try backend.list(.key).items
            #expect(keys.isEmpty)
        }
    }

    @Test func aSecondVaultIsNotMadeOverTheFirst() throws {
        try withBackend { backend in
            _ = try make(backend)
            for resume in [false, true] {
                let error = #expect(throws: BackupError.self) { _ = try make(backend, resume: resume) }
                #expect(error?.code == .exists && error?.message == "there is a vault already")
            }
        }
    }

    @Test func anInterruptedInitIsResumedWithItsKey() throws {
        try withBackend { backend in
            let first = try make(backend)
            try backend.remove([.config])
            #expect(errorCode { _ = try Vault.open(backend, password: utf8("secret")) } == .notFound)
            #expect(errorCode { _ = try make(backend) } == .exists)
            #expect(errorCode { _ = try make(backend, "other", resume: true) } == .wrongPassword)
            let second = try make(backend, resume: true)
            #expect(second.key == first.key && second.keyID == first.keyID)
        }
    }

    @Test func aLostConfigurationOfAUsedVaultIsNotReplaced() throws {
        try withBackend { backend in
            _ = try make(backend)
            try backend.remove([.config])
            _ = try utf8("pack").withUnsafeBytes { try backend.store(.data, $0) }
            #expect(errorCode { _ = try make(backend, resume: true) } == .exists)
        }
    }

    @Test func keysAreAddedListedChangedAndRemoved() throws {
        try withBackend { backend in
            let vault = try make(backend)
            let ring = KeyRing(backend: backend)
            let second = try ring.add(vault.key, password: utf8("two"), cost: testCost, userName: "ann")
            #expect(try vault.listKeys().entries.map(\.userName).sorted() == ["ann", "backup-tool"])
            let other = try Vault.open(backend, password: utf8("two"))
            #expect(other.keyID == second && other.key == vault.key)
            #expect(errorCode { _ = try other.removeKey(second.hex) } == .refused)
            #expect(errorCode { _ = try other.removeKey("zz") } == .failed)
            #expect(try other.removeKey(String(vault.keyID.hex.prefix(10))) == vault.keyID)
            #expect(errorCode { _ = try Vault.open(backend, password: utf8("secret")) } == .wrongPassword)
            #expect(try other.listKeys().entries.map(\.id) == [second])
        }
    }

    /// Who believes in a key that a storage has not kept locks itself out.
    @Test func aKeyThatAStorageChangesIsNotBelievedIn() throws {
        try withBackend { backend in
            let vault = try make(backend)
            let ring = KeyRing(backend: ChangingBackend(inner: backend))
            #expect(errorCode { _ = try ring.add(vault.key, password: utf8("two"), cost: testCost) } == .failed)
            #expect(try vault.listKeys().entries.map(\.id) == [vault.keyID])
        }
    }

    @Test func nothingAboutThisMachineStandsInAKeyFile() throws {
        try withBackend { backend in
            let vault = try make(backend)
            let entry = try #require(try vault.listKeys().entries.first)
            #expect(entry.hostName == "backup-tool" && entry.userName == "backup-tool")
            #expect(entry.created.hasSuffix("T00:00:00Z"))
        }
    }

    @Test func aDamagedKeyIsAFindingAndDoesNotKeepAnotherFromOpening() throws {
        try withBackend { backend in
            let vault = try make(backend)
            for text in ["{", "{\"kdf\":\"scrypt\"}", "", "[]"] {
                _ = try utf8(text).withUnsafeBytes { try backend.store(.key, $0) }
            }
            let again = try Vault.open(backend, password: utf8("secret"))
            #expect(again.key == vault.key)
            #expect(try again.listKeys().findings.count == 4)
            try backend.remove([VaultFile(.key, vault.keyID)])
            #expect(errorCode { _ = try Vault.open(backend, password: utf8("secret")) } == .damaged)
        }
    }

    @Test func keyFilesAndConfigurationsTakeAnyBytes() throws {
        let master = try VaultKey.random()
        let file = try KeyFile(
            sealing: master, password: utf8("p"), cost: testCost, created: "c", userName: "u", hostName: "h")
        let config = ConfigFile(id: .of("x"), polynomial: testPolynomial)
        #expect(try file.bytes.withUnsafeBytes { try KeyFile($0) } == file)
        #expect(try config.bytes.withUnsafeBytes { try ConfigFile($0) } == config)
        for cut in 0..<file.bytes.count {
            #expect(throws: BackupError.self) { try Array(file.bytes[..<cut]).withUnsafeBytes { try KeyFile($0) } }
        }
        for cut in 0..<config.bytes.count {
            #expect(throws: BackupError.self) { try Array(config.bytes[..<cut]).withUnsafeBytes { try ConfigFile($0) } }
        }
        var generator = SeededGenerator(seed: testSeed())
        for _ in 0..<500 {
            var damaged = file.bytes
            damaged[generator.below(damaged.count)] = UInt8.random(in: 0...255, using: &generator)
            _ = try? damaged.withUnsafeBytes { try KeyFile($0).open(password: utf8("p")) }
            damaged = config.bytes
            damaged[generator.below(damaged.count)] = UInt8.random(in: 0...255, using: &generator)
            _ = try? damaged.withUnsafeBytes { try ConfigFile($0) }
        }
    }

    @Test(arguments: [
        "{\"version\":3,\"id\":\"ID\",\"chunker_polynomial\":\"3da3358b4dc173\"}",
        "{\"version\":0,\"id\":\"ID\",\"chunker_polynomial\":\"3da3358b4dc173\"}",
        "{\"version\":2,\"id\":\"x\",\"chunker_polynomial\":\"3da3358b4dc173\"}",
        "{\"version\":2,\"id\":\"ID\",\"chunker_polynomial\":\"fffffffffffffff\"}",
        "{\"version\":2,\"id\":\"ID\",\"chunker_polynomial\":\"0\"}", "{\"version\":2,\"id\":\"ID\"}",
    ])
    func aConfigurationThatWeDoNotKnowIsRefused(_ text: String) {
        let text = text.split(separator: "ID", omittingEmptySubsequences: false).joined(
            separator: SHA256Digest.of("x").hex)
        #expect(throws: BackupError.self) { try utf8(text).withUnsafeBytes { try ConfigFile($0) } }
    }

    @Test func base64TakesPaddingAndNothingElse() {
        #expect(Base64.decode("aGVsbG8=") == utf8("hello"))
        #expect(Base64.decode("") == [])
        for wrong in ["aGVsbG8", "aGVsbG9=", "aGVs bG8=", "====", "a===", "aGVsbG8=aGVs"] {
            #expect(Base64.decode(wrong) == nil, "\(wrong)")
        }
        for count in 0..<70 {
            let some = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            #expect(Base64.decode(Base64.encode(some)) == some)
        }
    }
}

/// A storage that keeps another salt of a key than it was given.
private struct ChangingBackend: VaultBackend {
    let inner: any VaultBackend
    var location: String { inner.location }
    var settling: Double { inner.settling }

    func list(_ kind: VaultFile.Kind) throws -> VaultListing { try inner.list(kind) }
    func size(_ file: VaultFile) throws -> Int64? { try inner.size(file) }
    func read(_ file: VaultFile, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try inner.read(file, at: offset, into: buffer)
    }
    func write(_ file: VaultFile, _ bytes: UnsafeRawBufferPointer) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        let first = text.firstRange(of: "\"salt\":\"").map { text[$0.upperBound] } ?? "A"
        let changed = text.replacing("\"salt\":\"\(first)", with: "\"salt\":\"\(first == "A" ? "B" : "A")")
        try Array(changed.utf8).withUnsafeBytes { try inner.write(file, $0) }
    }
    func remove(_ files: [VaultFile]) throws { try inner.remove(files) }
    func sweep() throws -> Int { try inner.sweep() }
}
