extension Vault {
    /// Packs that lie in the vault and in no index: what an interrupted backup left. Their headers are authenticated
    /// and tell all that an index would; a pack whose header does not fit its size is left to `check`.
    func unindexedPacks(_ index: BlobIndex) throws -> [PackIndex.Pack] {
        let unknown = try backend.list(.data).items.filter { index.packNumber($0.id) == nil }
        let found = try Parallel.map(unknown.count, state: { try VaultCipher(key) }) { cipher, number in
            try header(of: unknown[number], cipher)
        }
        return found.compactMap { $0 }
    }

    private func header(of item: VaultListing.Item, _ cipher: VaultCipher) throws -> PackIndex.Pack? {
        let file = VaultFile(.data, item.id)
        do {
            var tail = try read(file, (item.size - min(item.size, Int64(PackHeader.usualTail)))..<item.size)
            guard tail.count >= PackHeader.trailerSize else { return nil }
            let range = try tail.suffix(PackHeader.trailerSize).withUnsafeBytes {
                try PackHeader.range(trailer: $0, packSize: item.size)
            }
            if item.size - range.lowerBound > Int64(tail.count) { tail = try read(file, range.lowerBound..<item.size) }
            let start = tail.count - Int(item.size - range.lowerBound)
            let blobs = try tail.withUnsafeMutableBytes { bytes in
                let sealed = UnsafeMutableRawBufferPointer(
                    rebasing: bytes[start..<bytes.count - PackHeader.trailerSize])
                return try PackHeader.decode(cipher.openInPlace(sealed))
            }
            return PackHeader.packSize(blobs) == UInt64(item.size) ? PackIndex.Pack(id: item.id, blobs: blobs) : nil
        } catch let error as BackupError where [.damaged, .notFound].contains(error.code) {
            return nil
        }
    }

    private func read(_ file: VaultFile, _ range: Range<Int64>) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        try bytes.withUnsafeMutableBytes { try backend.read(file, at: range.lowerBound, into: $0) }
        return bytes
    }
}
