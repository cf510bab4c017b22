/// What `--force` may replace. It stands for an earlier export of the same name, not for whatever lies there.
enum Replacing {
    /// Throws unless `target` is free, empty, or holds what exports and restores write and nothing else, and none of
    /// `sources`. `isKnown` tells of a file that is going to be there again.
    static func check(
        _ target: String, keeping sources: [String], isKnown: (_ relativePath: String) throws -> Bool
    ) throws {
        guard let status = try FileStatus.ofTarget(target) else { return }
        for source in sources {
            guard let read = try FileStatus.ofTarget(source) else { continue }
            if try read.isSame(as: status) || Directory.isInside(source, target) {
                throw refusal(target, "\(source) lies in it and would be lost")
            }
            if try read.isDirectory && Directory.isInside(target, source) {
                throw refusal(target, "it lies in \(source), which is being read")
            }
        }
        guard status.isDirectory else {
            if Store.isStore(target) { throw refusal(target, "it is a store") }
            return
        }
        // What is no library any more has no manifest that anybody could go by.
        let layout = try? OpenedLayout.open(target)
        try Directory.walk(target) { path, status in
            if status.isDirectory || layout?.expected[path] != nil || Layout.isClutter(path) { return }
            if try status.isRegular && (isWritten(path) || isKnown(path)) { return }
            throw refusal(target, "'\(path)' is of no export and no restore")
        }
    }

    /// An export of a store, which may hold what its records name.
    static func check(_ target: String, by store: Store) throws {
        try check(target, keeping: [store.path, store.assetFolder]) { try store.asset($0) != nil }
    }

    private static func refusal(_ target: String, _ reason: String) -> BackupError {
        BackupError(
            .refused, "--force does not replace this: \(reason)", at: target,
            remedy: "choose another name, or remove it yourself")
    }

    /// Whether exports write files of this name: those of a layout, and days of events.
    private static func isWritten(_ path: String) -> Bool {
        if Layout.role(of: path) != .unknown { return true }
        let ending = ".jsonl"
        return path.utf8.count == "2026-02-14.jsonl".utf8.count && path.hasSuffix(ending)
            && LocalTime(path.dropLast(ending.count)) != nil
    }
}
