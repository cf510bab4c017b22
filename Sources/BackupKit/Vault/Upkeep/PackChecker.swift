import Synchronization

/// Reads a pack once from end to end: the seal of every blob, its unpacking and its name, the header against the index, and
/// the pack's own name; what is sealed is hashed beside what is in it (decision 079). A pack may be larger than memory, so
/// it is read piece by piece. One checker serves one thread.
final class PackChecker {
    struct Report: Sendable {
        var findings: [Finding] = []
        /// Numbers of blobs that cannot be had.
        var damaged: [Int] = []
        var bytes: Int64 = 0
        /// What kept it from being read, where that was not what is in it.
        var unread: BackupError?
    }

    /// Small enough to be in the processor's cache when its bytes are looked at the second time.
    private static let pieceBytes = 1 << 20

    private let backend: any VaultBackend
    private let index: BlobIndex
    private let reader: BlobReader
    private let hasher = PieceHasher()
    private let buffer = RawBuffer()

    init(_ vault: Vault, _ index: BlobIndex) throws {
        backend = vault.backend
        self.index = index
        reader = try BlobReader(vault)
    }

    func check(_ number: Int) throws -> Report {
        let pack = index.packs[number]
        let file = VaultFile(.data, pack.id)
        var report = Report()
        do {
            // The missing and those of another size are findings already.
            guard let size = try backend.size(file), UInt64(size) == pack.size else {
                report.damaged = try salvage(pack, &report)
                return report
            }
            try read(pack, file, size, &report)
        } catch let error as BackupError where error.isOfBytes {
            report.findings.append(
                Finding(.unreadable, .damage, file.path, error.message, remedy: Vault.packRemedy))
            if !Self.isDamage(error) { report.unread = error }
            report.damaged = try salvage(pack, &report)
        }
        return report
    }

    private func read(_ pack: BlobIndex.Pack, _ file: VaultFile, _ size: Int64, _ report: inout Report) throws {
        // What an interrupted reading left.
        _ = hasher.finish()
        var blobs = pack.blobs
        var position: Int64 = 0
        while !blobs.isEmpty {
            // As many blobs as fit, and one in any case.
            var count = 1
            while count < blobs.count, Int64(index[blobs.lowerBound + count].end) - position <= Self.pieceBytes {
                count += 1
            }
            let part = blobs.prefix(count)
            let end = Int64(index[part.upperBound - 1].end)
            guard part.allSatisfy({ Int64(index[$0].offset) >= position && Int64(index[$0].end) <= end }) else {
                throw BackupError(.damaged, "by the index its blobs overlap")
            }
            guard end <= size else { throw BackupError(.damaged, "by the index its blobs reach beyond its end") }
            let bytes = try buffer.with(count: Int(end - position))
            try backend.read(file, at: position, into: bytes)
            var hashed = 0
            for number in part {
                let start = Int(Int64(index[number].offset) - position)
                let end = start + Int(index[number].length)
                // With the gap before it, if there is one.
                let new = UnsafeRawBufferPointer(rebasing: bytes[min(hashed, end)..<end])
                try open(number, UnsafeRawBufferPointer(rebasing: bytes[start..<end]), new, file, &report)
                hashed = max(hashed, end)
            }
            position = end
            blobs = blobs.dropFirst(count)
        }
        try checkHeader(pack, file, position..<size, &report)
        report.bytes = size
        if hasher.finish() != pack.id {
            report.findings.append(
                Finding(
                    .digestMismatch, .damage, file.path, "the pack is not what its name says: its SHA-256 is another",
                    remedy: Vault.packRemedy))
        }
    }

    /// Looks at a blob; `new` are the bytes of the pack that were not hashed before it.
    private func open(
        _ number: Int, _ sealed: UnsafeRawBufferPointer, _ new: UnsafeRawBufferPointer, _ file: VaultFile,
        _ report: inout Report
    ) throws {
        let blob = index[number]
        var digest: SHA256Digest?
        do {
            let content = try reader.unpack(sealed, blob)
            digest = hasher.add(new, standingFor: content)
            try BlobReader.compare(digest, blob)
        } catch let error as BackupError where error.isOfBytes {
            if digest == nil { _ = hasher.add(new) }
            report.damaged.append(number)
            report.findings.append(
                Finding(
                    .entryDamaged, .damage, file.path,
                    "\(blob.type.name) blob \(blob.id.hex.prefix(10)): \(error.message)"))
        }
    }

    private func checkHeader(
        _ pack: BlobIndex.Pack, _ file: VaultFile, _ range: Range<Int64>, _ report: inout Report
    ) throws {
        let bytes = try buffer.with(count: range.count)
        try backend.read(file, at: range.lowerBound, into: bytes)
        _ = hasher.add(UnsafeRawBufferPointer(bytes))
        do {
            guard bytes.count > PackHeader.trailerSize else { throw BackupError(.damaged, "there is none") }
            let split = bytes.count - PackHeader.trailerSize
            let trailer = UnsafeRawBufferPointer(rebasing: bytes[split...])
            let sealed = try PackHeader.range(trailer: trailer, packSize: range.upperBound)
            guard sealed.lowerBound == range.lowerBound else {
                throw BackupError(.damaged, "it does not begin where the blobs end")
            }
            let plain = try reader.openHeader(UnsafeMutableRawBufferPointer(rebasing: bytes[..<split]))
            let blobs = try PackHeader.decode(plain)
            guard blobs.count == pack.blobs.count, zip(blobs, pack.blobs).allSatisfy({ $0 == index[$1] }) else {
                throw BackupError(.damaged, "it says something else than the index")
            }
        } catch let error as BackupError where error.code == .damaged {
            report.findings.append(Finding(.entryDamaged, .damage, file.path, "the pack's header: \(error.message)"))
        }
    }

    private static func isDamage(_ error: BackupError) -> Bool { error.code == .damaged || error.code == .notFound }

    /// Which blobs of a pack cannot be had, when it has the wrong size or cannot be read as a whole.
    private func salvage(_ pack: BlobIndex.Pack, _ report: inout Report) throws -> [Int] {
        try pack.blobs.filter { number in
            do {
                _ = try reader.read(index[number], in: pack.id)
                return false
            } catch let error as BackupError where error.isOfBytes {
                if !Self.isDamage(error) { report.unread = report.unread ?? error }
                return true
            }
        }
    }
}

/// A sum that several threads add to.
final class Counter: Sendable {
    private let sum = Atomic<UInt64>(0)

    func add(_ value: UInt64) -> UInt64 { sum.add(value, ordering: .relaxed).newValue }
}
