/// What `store repair --accept` does with attachments that are gone or damaged: it goes on without a file that is gone, and
/// with a damaged one as it is. Records go on to name them, and an undo takes it back.
extension Store {
    /// Where the hub has the right bytes, the next sync fetches them.
    func acceptFiles(dryRun: Bool) throws -> [StoreRepairResult.Step] {
        let (lost, damaged) = try harmedFiles()
        guard !lost.isEmpty || !damaged.isEmpty else { return [] }
        return try batch(kind: "repair", source: lastComponent(of: assetFolder), dryRun: dryRun) {
            var steps: [StoreRepairResult.Step] = []
            for asset in lost {
                // Else the sync would take it for a delete.
                if try hubAsset(asset.path)?.digest != nil { try wantAsset(asset.path) }
                try removeAsset(asset)
                steps.append(.init(action: .accept, subject: asset.path, message: "its file is lost, and was given up"))
            }
            for asset in damaged { steps.append(try accept(damaged: asset)) }
            let counts = [JSON.Member("lost", JSON(lost.count)), JSON.Member("damaged", JSON(damaged.count))]
            return (steps, summary: JSON.object(counts).compact)
        }.result
    }

    private func accept(damaged asset: Asset) throws -> StoreRepairResult.Step {
        func step(_ message: String) -> StoreRepairResult.Step {
            .init(action: .accept, subject: asset.path, message: message)
        }
        if try hubAsset(asset.path)?.digest == asset.digest {
            try wantAsset(asset.path)
            try removeAsset(asset)
            return step("its file is damaged, and was given up: the next sync fetches it from the hub")
        }
        if let status = try assetStatus(asset.path) {
            try keepAsItIs(asset, status, digest(at: asset.path))
        }
        return step("its file is damaged, and was taken as it is")
    }

    /// Those without a file under their path, of whose bytes nothing else is kept, and those whose file has other bytes and
    /// its old time.
    private func harmedFiles() throws -> (lost: [Asset], damaged: [Asset]) {
        var (lost, damaged): ([Asset], [Asset]) = ([], [])
        try forEachAsset { asset in
            try Interrupt.check()
            if try !hasBlob(asset.digest), try assetStatus(asset.path) == nil { return lost.append(asset) }
            let finding = try pending(asset.path) == nil ? StoreCheck.judge(asset, in: self, .digests) : nil
            guard finding?.severity == .damage, [.digestMismatch, .sizeMismatch].contains(finding?.code) else { return }
            damaged.append(asset)
        }
        return (lost, damaged)
    }
}
