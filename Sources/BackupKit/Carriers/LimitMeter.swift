/// Counts what an archive lists against the limits, and keeps its names apart.
struct LimitMeter {
    /// Names of more than this would cost more memory than a listing may take.
    private static let nameBytesMax = 128 << 20

    private let limits: ReadLimits
    private var names = EntryNameSet()
    private var entries = 0
    private(set) var totalBytes: Int64 = 0
    private var nameBytes = 0

    init(_ limits: ReadLimits) { self.limits = limits }

    /// Throws `.refused` when this entry goes beyond a limit or its name collides.
    mutating func admit(_ info: EntryInfo, isFolder: Bool = false) throws {
        entries += 1
        nameBytes += info.path.utf8.count
        guard entries <= limits.entries, nameBytes <= Self.nameBytesMax else {
            throw BackupError(.refused, "the archive has more than \(entries - 1) entries", at: info.path)
        }
        guard info.size <= limits.entryBytes else {
            throw BackupError(.refused, "is larger than \(limits.entryBytes) bytes", at: info.path)
        }
        let (sum, overflow) = totalBytes.addingReportingOverflow(info.size)
        guard !overflow, sum <= limits.totalBytes else {
            throw BackupError(.refused, "the archive unpacks to more than \(limits.totalBytes) bytes", at: info.path)
        }
        totalBytes = sum
        try names.insert(info.path, isFolder: isFolder)
    }
}
