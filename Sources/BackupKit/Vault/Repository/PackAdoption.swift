extension Vault {
    /// Sees what lies in the vault beside what its index says. Packs that no index names are added to it and returned:
    /// they are the caller's to `adopt`. Packs that are gone or have another size are not relied on any more, and are
    /// findings: a backup that trusted the index would leave out what only they held, and call itself complete.
    func reconcile(_ index: inout BlobIndex) throws -> (unindexed: [PackIndex.Pack], findings: [Finding]) {
        let listing = try backend.list(.data)
        var findings = distrustLost(&index, listing.sizes)
        let found = try look(at: index.unnamed(among: listing.items), .all)
        let whole = found.compactMap(\.whole)
        for pack in whole { index.add(pack) }
        // What nobody needs must not keep a backup from being made; what cannot be read must be known.
        for pack in found {
            if case .failure = pack.name, let finding = pack.finding(index) { findings.append(finding) }
        }
        return (whole, findings)
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
        if pack.isSize(size) { return nil }
        return Finding(
            .sizeMismatch, .damage, path, "has \(size) bytes, and \(pack.size) by the index", remedy: packRemedy)
    }

    /// What a pack says of itself; nil where that cannot be understood, or does not fit its size.
    func header(of file: VaultFile, size: Int64, _ cipher: VaultCipher) throws -> PackIndex.Pack? {
        do {
            var tail = try read(file, (size - min(size, Int64(PackHeader.usualTail)))..<size)
            guard tail.count >= PackHeader.trailerSize else { return nil }
            let range = try tail.suffix(PackHeader.trailerSize).withUnsafeBytes {
                try PackHeader.range(trailer: $0, packSize: size)
            }
            if size - range.lowerBound > Int64(tail.count) { tail = try read(file, range.lowerBound..<size) }
            let start = tail.count - Int(size - range.lowerBound)
            let blobs = try tail.withUnsafeMutableBytes { bytes in
                let sealed = UnsafeMutableRawBufferPointer(
                    rebasing: bytes[start..<bytes.count - PackHeader.trailerSize])
                return try PackHeader.decode(cipher.openInPlace(sealed))
            }
            return PackHeader.packSize(blobs) == UInt64(size) ? PackIndex.Pack(id: file.id, blobs: blobs) : nil
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

extension BlobIndex {
    /// Whoever stores one of these blobs again must not be told that it is there.
    mutating func distrust(_ blobs: [UnreadBlob]) -> [Finding] {
        blobs.flatMap { blob in
            // Packs that are lost were told of.
            copies(of: blob.handle).map(pack).filter { !packs[$0].isToBeDeleted }.map { number in
                distrust(number)
                return Finding(
                    .unreadable, blob.error.isOfBytes ? .damage : .warning, VaultFile(.data, packs[number].id).path,
                    "cannot be relied on: \(blob.error.message)",
                    remedy: blob.error.isOfBytes ? Vault.packRemedy : blob.error.remedy)
            }
        }
    }
}

extension BlobIndex.Pack {
    func isSize(_ bytes: Int64) -> Bool { UInt64(clamping: bytes) == size }
}
