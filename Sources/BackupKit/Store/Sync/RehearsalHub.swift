/// A hub for a dry run: a copy of the records, and the files of the hub itself, which are only read.
final class RehearsalHub: Hub {
    private let real: FileHub
    private let records: FileHub
    private var sent: Set<SHA256Digest> = []
    private var forgotten: Set<SHA256Digest> = []

    /// `path` is where the copy is to lie.
    init(_ real: FileHub, copyAt path: String) throws {
        self.real = real
        records = try real.copy(to: path)
    }

    func identity() throws -> HubIdentity { try real.identity() }

    func push(_ push: HubPush, by caller: String?) throws -> HubAnswer { try records.push(push, by: caller) }

    func changes(after token: String?, limit: Int, for caller: String?) throws -> HubPage {
        try records.changes(after: token, limit: limit, for: caller)
    }

    func fetch(_ ids: [RecordID], for caller: String?) throws -> HubFetch { try records.fetch(ids, for: caller) }

    func missingAssets(of digests: [SHA256Digest]) throws -> Set<SHA256Digest> {
        try real.missingAssets(of: digests).union(forgotten.intersection(digests)).subtracting(sent)
    }

    func forgetDamagedAsset(_ digest: SHA256Digest) throws {
        let hasher = SHA256Hasher()
        let isDamaged = try real.getAsset(digest) { hasher.update($0) } && hasher.finish() != digest
        if isDamaged { forgotten.insert(digest) }
    }

    func putAsset(
        _ digest: SHA256Digest, size: Int64, _ write: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {
        let hasher = SHA256Hasher()
        var count: Int64 = 0
        try write { chunk in
            hasher.update(chunk)
            count += Int64(chunk.count)
        }
        guard count == size, hasher.finish() == digest else {
            throw BackupError(.damaged, "the bytes sent are not those of this digest", at: digest.hex)
        }
        sent.insert(digest)
        forgotten.remove(digest)
    }

    func getAsset(_ digest: SHA256Digest, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
        try !forgotten.contains(digest) && real.getAsset(digest, body)
    }
}
