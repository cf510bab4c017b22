extension Vault {
    /// Sees what lies in the vault beside what its index says. Packs that no index names are added to it and returned:
    /// they are the caller's to `adopt`. Packs that are gone or have another size are not relied on any more, and are
    /// findings: a backup that trusted the index would leave out what only they held, and call itself complete.
    func reconcile(_ index: inout BlobIndex) throws -> (unindexed: [PackIndex.Pack], findings: [Finding]) {
        let listing = try backend.list(.data)
        let findings = distrustLost(&index, listing.sizes)
        let unknown = listing.items.filter { index.packNumber($0.id) == nil }
        let found = try Parallel.map(unknown.count, state: { (try VaultCipher(key), RawBuffer()) }) { tools, number in
            try adoptable(unknown[number], tools.0, tools.1)
        }
        let unindexed = found.compactMap(\.self)
        for pack in unindexed { index.add(pack) }
        return (unindexed, findings)
    }

    /// What an interrupted backup left. Headers of packs are authenticated and tell all that an index would, but whoever
    /// relied on a pack that was damaged since would leave out what only it held: it must be what its name says, and one that
    /// is not is left to `check` and `prune`.
    private func adoptable(
        _ item: VaultListing.Item, _ cipher: VaultCipher, _ buffer: RawBuffer
    ) throws -> PackIndex.Pack? {
        try Interrupt.check()
        guard let pack = try header(of: item, cipher) else { return nil }
        do {
            let digest = try backend.digest(of: VaultFile(.data, item.id), size: item.size, in: buffer)
            return digest == item.id ? pack : nil
        } catch let error as BackupError where [.damaged, .notFound].contains(error.code) {
            return nil
        }
    }

    private func distrustLost(_ index: inout BlobIndex, _ sizes: [SHA256Digest: Int64]) -> [Finding] {
        var findings: [Finding] = []
        for (number, pack) in index.packs.enumerated() where !pack.isToBeDeleted {
            guard let finding = Self.wrongSize(of: pack, sizes[pack.id]) else { continue }
            index.distrust(number)
            findings.append(finding)
        }
        return findings
    }

    /// What is wrong with a pack that has this size, or is not there.
    static func wrongSize(of pack: BlobIndex.Pack, _ size: Int64?) -> Finding? {
        let path = VaultFile(.data, pack.id).path
        guard let size else {
            return Finding(.entryMissing, .damage, path, "the pack is missing", remedy: packRemedy)
        }
        if UInt64(clamping: size) == pack.size { return nil }
        return Finding(
            .sizeMismatch, .damage, path, "has \(size) bytes, and \(pack.size) by the index", remedy: packRemedy)
    }

    /// What a pack says of itself; nil where that cannot be understood, or does not fit its size.
    func header(of item: VaultListing.Item, _ cipher: VaultCipher) throws -> PackIndex.Pack? {
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
