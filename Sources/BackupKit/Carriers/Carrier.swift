/// The bytes of the entry that is being visited.
public protocol EntryBytes {
    /// Calls `body` with the entry's bytes in order; may be called once, or not at all. Throws `.damaged` where the
    /// carrier knows that the bytes are not what was written.
    func forEachChunk(_ body: (UnsafeRawBufferPointer) throws -> Void) throws
    /// The same for whoever makes the SHA-256 of all of it and knows what that must be: the carrier need not make digests
    /// of its own to find what this one shows.
    func forEachChunkToDigest(_ body: (UnsafeRawBufferPointer) throws -> Void) throws
}

extension EntryBytes {
    func forEachChunkToDigest(_ body: (UnsafeRawBufferPointer) throws -> Void) throws { try forEachChunk(body) }
}

/// What to do with an archive of another program that holds what no backup does.
enum ForeignArchive {
    static let remedy = "unpack it with the program that made it, and name the folder"
}

/// Where a layout is read from: a folder, an archive, later a vault. The contract, proved by one conformance suite:
/// - names that `EntryName` refuses, links, devices and names that collide MUST make `visit` and `list` throw
///   `.refused` with the entry named, and `ReadLimits` that are passed MUST too;
/// - `visit` calls `body` once for every wanted file, in any order and MAY call it from several threads at once. Other files
///   are read only where the carrier cannot step over them;
/// - an error that `body` throws ends the visit and is thrown on. A body that catches the error of `forEachChunk` and
///   returns lets the visit go on with the next entry that can be found;
/// - damage of the carrier itself (a torn end, an unreadable stretch, bytes after the end) comes back as findings of
///   `visit`; `list`, which has none to give, throws `.damaged` where it meets such damage;
/// - folders are not listed, but their names are checked like the others. Names are compared byte by byte.
public protocol CarrierReader: Sendable {
    func list() throws -> [EntryInfo]
    func visit(
        where isWanted: @Sendable (EntryInfo) -> Bool, _ body: @Sendable (EntryInfo, any EntryBytes) throws -> Void
    ) throws -> [Finding]
    /// Reads one entry, without the rest where the carrier can. Throws `.notFound` when there is none of that name.
    func read(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws
}

extension CarrierReader {
    public func visit(_ body: @Sendable (EntryInfo, any EntryBytes) throws -> Void) throws -> [Finding] {
        try visit(where: { _ in true }, body)
    }
}

/// Where a layout is written to. Entries arrive in the layout's order; `produce` MUST hand over exactly `info.size`
/// bytes, else `add` throws. Without `finish` nothing that was written counts.
public protocol CarrierWriter: AnyObject {
    func add(_ info: EntryInfo, _ produce: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void) throws
    func finish() throws
}
