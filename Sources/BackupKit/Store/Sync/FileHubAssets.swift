/// The bytes of assets beside the hub's database: `<hub>.assets/ab/<digest>`.
extension FileHub {
    private func assetPath(_ digest: SHA256Digest) -> String {
        let name = digest.hex
        return "\(path).assets/\(name.prefix(2))/\(name)"
    }

    public func missingAssets(of digests: [SHA256Digest]) throws -> Set<SHA256Digest> {
        Set(try digests.filter { try !hasAsset($0) })
    }

    private func hasAsset(_ digest: SHA256Digest) throws -> Bool {
        try FileStatus.ofName(assetPath(digest))?.isRegular == true
    }

    public func forgetDamagedAsset(_ digest: SHA256Digest) throws {
        let path = assetPath(digest)
        guard try hasAsset(digest), try Store.digest(ofFile: path) != digest else { return }
        try Directory.removeTree(path)
    }

    public func putAsset(
        _ digest: SHA256Digest, size: Int64, _ write: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {
        let target = assetPath(digest)
        try Directory.createAll(parent(of: target))
        try AtomicFile.write(target, replace: true) { file in
            let hasher = SHA256Hasher()
            var count: Int64 = 0
            try write { chunk in
                hasher.update(chunk)
                count += Int64(chunk.count)
                try file.write(chunk)
            }
            guard count == size, hasher.finish() == digest else {
                throw BackupError(.damaged, "the bytes sent are not those of this digest", at: target)
            }
        }
    }

    public func getAsset(_ digest: SHA256Digest, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
        guard try hasAsset(digest) else { return false }
        try FileHandle.openForReading(assetPath(digest)).forEachChunk(body)
        return true
    }
}
