/// What `--force` may replace. It stands for an earlier export of the same name, not for whatever lies there.
enum Replacing {
    /// Throws unless `target` is free, empty, or what an earlier export or restore wrote, and holds none of `sources`.
    static func check(_ target: String, keeping sources: [String]) throws {
        guard let status = try FileStatus.ofTarget(target) else { return }
        for source in sources {
            if try FileStatus.ofTarget(source)?.isSame(as: status) == true || Directory.isInside(source, target) {
                throw refusal(target, "\(source) lies in it and would be lost")
            }
            if try FileStatus.ofTarget(source)?.isDirectory == true, try Directory.isInside(target, source) {
                throw refusal(target, "lies in \(source), which is being read")
            }
        }
        guard status.isDirectory else {
            if Store.isStore(target) { throw refusal(target, "is a store") }
            return
        }
        let names = try Directory.names(in: target, skippingForeign: true)
        if let name = try names.first(where: { try isVault("\(target)/\($0)") }) {
            throw refusal(target, "a vault lies in it: \(name)")
        }
        if let name = names.first(where: { $0.hasSuffix(Store.assetFolder(of: "")) }) {
            throw refusal(target, "the attachments of a store lie in it: \(name)")
        }
        if try isVault(target) { throw refusal(target, "is a vault: write \(VaultAddress.scheme)\(target)") }
        guard try isOurs(target, names) else { throw refusal(target, "was written by no export and no restore") }
    }

    private static func refusal(_ target: String, _ reason: String) -> BackupError {
        BackupError(
            .refused, "--force does not replace this: \(reason)", at: target,
            remedy: "choose another name, or remove it yourself")
    }

    private static func isVault(_ path: String) throws -> Bool {
        try [VaultFile.Kind.config, .key, .snapshot].allSatisfy {
            try FileStatus.ofTarget("\(path)/\($0.rawValue)") != nil
        }
    }

    /// With its manifest anything may lie beside; without, as after a restore of what had none, only what we write.
    private static func isOurs(_ target: String, _ names: [String]) throws -> Bool {
        if names.contains(Manifest.fileName),
            names.contains(Layout.bibliography) || names.contains(ChecksumFile.fileName)
        {
            return true
        }
        let files = try names.filter { try FileStatus.ofTarget("\(target)/\($0)")?.isDirectory != true }
        let ours = files.filter { Layout.files.contains($0) || $0.hasSuffix(".jsonl") }
        return names.isEmpty || !ours.isEmpty && ours.count == files.count
    }
}
