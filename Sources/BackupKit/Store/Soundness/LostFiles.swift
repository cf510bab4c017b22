/// Attachments whose files are gone: no file lies under their paths, and no undo needs their bytes.
extension Store {
    private func lostFiles() throws -> [Asset] {
        var lost: [Asset] = []
        try forEachAsset { asset in
            try Interrupt.check()
            let places = [blobPath(asset.digest), "\(assetFolder)/\(asset.path)"]
            if try places.allSatisfy({ try FileStatus.ofName($0) == nil }) { lost.append(asset) }
        }
        return lost
    }

    /// Goes on without them; their records go on to name them. An undo has them in the table again. Where the hub has a file,
    /// the next sync fetches it.
    func giveUpLostFiles(dryRun: Bool) throws -> [StoreRepairResult.Step] {
        let lost = try lostFiles()
        guard !lost.isEmpty else { return [] }
        let message = "its file is lost, and was given up"
        return try batch(kind: "repair", source: lastComponent(of: assetFolder), dryRun: dryRun) {
            for asset in lost {
                // Else the sync would take it for a delete.
                if try hubAsset(asset.path)?.digest != nil { try wantAsset(asset.path) }
                try removeAsset(asset)
            }
            let steps = lost.map { StoreRepairResult.Step(action: .accept, subject: $0.path, message: message) }
            return (steps, summary: JSON.object([JSON.Member("lost", JSON(lost.count))]).compact)
        }.result
    }
}
