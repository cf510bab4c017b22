extension Snapshot {
    /// What retention has to know of it; nil when its time is none that a calendar has.
    public var retentionItem: RetentionItem? {
        guard let time = SnapshotTime(file.time.text) else { return nil }
        return RetentionItem(
            id: id.hex, time: time, host: file.hostname, paths: file.paths, tags: file.tags, parent: file.parent?.hex,
            isPartial: file.tags.contains(SnapshotTag.partial), original: file.original?.hex)
    }
}
