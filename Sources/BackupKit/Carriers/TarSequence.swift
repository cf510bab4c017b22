/// A tar archive read from its beginning to its end: plain, or packed by anybody's zstd, gzip or xz.
struct TarSequence: CarrierReader {
    let file: FileHandle
    let limits: ReadLimits
    /// Opens the unpacked bytes at their beginning.
    let open: @Sendable (FileHandle) throws -> any ByteSource

    private func cursor() throws -> TarCursor { TarCursor(try open(file), archive: file.path, limits: limits) }

    func list() throws -> [EntryInfo] {
        let cursor = try cursor()
        var meter = LimitMeter(limits)
        var entries: [EntryInfo] = []
        while let member = try cursor.next() {
            try Interrupt.check()
            if !member.isRoot { try meter.admit(member.info, isFolder: member.isFolder) }
            if !member.isFolder { entries.append(member.info) }
            try cursor.leave(member, unread: member.info.size)
        }
        if let finding = cursor.findings.first(where: { $0.severity == .damage }) {
            throw BackupError(.damaged, finding.message, at: finding.subject, remedy: finding.remedy)
        }
        return entries
    }

    func visit(
        where isWanted: @Sendable (EntryInfo) -> Bool, _ body: @Sendable (EntryInfo, any EntryBytes) throws -> Void
    ) throws -> [Finding] {
        let cursor = try cursor()
        var meter = LimitMeter(limits)
        do {
            while let member = try step({ try cursor.next() }) {
                try Interrupt.check()
                if !member.isRoot { try meter.admit(member.info, isFolder: member.isFolder) }
                let bytes = TarEntryBytes(cursor, member)
                if !member.isFolder, isWanted(member.info) { try body(member.info, bytes) }
                if let failure = cursor.failure { throw Torn(cause: failure) }
                try step { try bytes.leave() }
            }
        } catch let torn as Torn {
            return cursor.findings + [torn.cause.asFinding]
        }
        return cursor.findings
    }

    func read(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let cursor = try cursor()
        while let member = try cursor.next() {
            if !member.isFolder && member.info.path.utf8.elementsEqual(path.utf8) {
                return try TarEntryBytes(cursor, member).forEachChunk(body)
            }
            try cursor.leave(member, unread: member.info.size)
        }
        throw BackupError(.notFound, "is not in \(file.path)", at: path)
    }

    /// The archive's own damage, told apart from what the visitor throws.
    private struct Torn: Error {
        let cause: BackupError
    }

    private func step<Result>(_ work: () throws -> Result) throws -> Result {
        do {
            return try work()
        } catch let error as BackupError where error.code == .damaged {
            throw Torn(cause: error)
        }
    }
}
