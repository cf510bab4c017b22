/// Rows of small tables, and what was noted of them: where the two differ, one of them is damaged.
extension StoreRepair {
    mutating func mendSmallRows() throws {
        try mendSettings()
        try mendAssets()
        try mendUnreadableAssets()
        try mendSizes()
        try mendLatestTime()
        try mendSeed()
        guard accepts else { return }
        for row in try store.changedSmallRows() {
            note(.accept, row.subject, row.isGone ? "was accepted as lost" : "was taken as it is")
        }
        try Witness.refresh(Witness.ofData, store.database)
    }

    // MARK: Settings

    private mutating func mendSettings() throws {
        var damaged: [DamagedRow] = []
        _ = try store.settings { damaged.append($0) }
        let sound = try source?.settings() ?? []
        for row in damaged {
            if let setting = sound.first(where: { $0.name == row.subject }) {
                replaced.append(row.line)
                try write(setting, at: store.clock.now().milliseconds)
            } else if accepts {
                try takeOut(row, "setting", key: "key", .accept, "cannot be read, and was given up")
            }
        }
        guard source != nil else { return }
        for row in try store.changedSmallRows() where row.table == "setting" {
            let parts = row.noted?.split(separator: " ", maxSplits: 1).map(String.init) ?? []
            if parts.count == 2, let time = Int64(parts[0]),
                let setting = sound.first(where: { $0.name == row.key && $0.value == parts[1] })
            {
                // What the backup says is what was noted of it.
                try write(setting, at: time)
            } else if let value = try store.storedSetting(row.key)?.value,
                try isInBackup(setting: row.key, value)
            {
                note(
                    .setting, row.key, "has the value of the backup; its check value was damaged and was written again")
                try store.noteAgain(row)
            }
        }
    }

    private mutating func write(_ setting: Field, at time: Int64) throws {
        note(.setting, setting.name, "has the value of the backup")
        try store.database.statement("INSERT OR REPLACE INTO setting (key, value, modified_at) VALUES (?, ?, ?)")
            .bind(1, setting.name).bind(2, setting.value).bind(3, time).run()
        _ = store.nextChange()
    }

    // MARK: Attachments

    /// A file tells which of two rows about it is right.
    private mutating func mendAssets() throws {
        for row in try store.changedSmallRows() where row.table == "asset" {
            if let noted = row.notedAsset, try StoreCheck.isFile(of: noted, in: store) {
                note(.exact, row.key, "was restored")
                try putRow(noted, isThere: !row.isGone)
            } else if !row.isGone, let asset = try store.ifSound({ try store.asset(row.key) }) ?? nil,
                try hasItsFile(asset)
            {
                note(.exact, row.key, "agrees with its file; its check value was damaged and was written again")
                try store.noteAgain(row)
            }
        }
        // What was noted under a name that nothing has, and is noted of something by now.
        for row in try store.changedSmallRows() where row.table == "asset" && row.isGone {
            guard let noted = row.notedAsset, try store.hasAsset(like: noted) else { continue }
            note(.exact, row.key, "is no attachment: what was noted of one stood under this name")
            try store.forget(row)
        }
    }

    /// Rows that cannot be read. What they were is told by what was noted of them, by the backup, or by the file, where the
    /// row has its digest.
    private mutating func mendUnreadableAssets() throws {
        var damaged: [DamagedRow] = []
        try store.forEachAsset(damaged: { damaged.append($0) }) { _ in }
        for row in damaged {
            let path = row.subject
            if (try? Store.checkPlace(path)) == nil {
                try mendPath(of: row)
                continue
            }
            let noted = try store.changedSmallRows(of: "asset").first { sameBytes($0.key, path) }?.notedAsset
            let known = try noted ?? source.flatMap { source in try source.ifSound { try source.asset(path) } ?? nil }
            let file = try store.file(at: path, isLocalOnly: known?.isLocalOnly ?? row.isLocalOnly)
            if let file, [known?.digest, row.digest].contains(file.digest) {
                try takeOut(row, "asset", key: "path", .exact, "is again what its file is")
                try store.putRow(file)
            } else if let known {
                try takeOut(row, "asset", key: "path", .older, "was restored; its file is not")
                try store.putRow(known)
            } else if accepts {
                let message = file == nil ? "cannot be read, and was given up" : "was taken as its file is"
                try takeOut(row, "asset", key: "path", .accept, message)
                if let file { try store.putRow(file) }
            }
        }
    }

    /// A row under whose path no file can lie. Where an attachment has the same bytes, nothing is lost with it.
    private mutating func mendPath(of row: DamagedRow) throws {
        if let digest = row.digest, try store.hasAsset(digest: digest) {
            try takeOut(row, "asset", key: "path", .exact, "is no attachment: its bytes are those of another one")
        } else if accepts {
            try takeOut(row, "asset", key: "path", .accept, "cannot be read, and was given up")
        }
    }

    /// Takes an unreadable row out of its table; its values are kept in the file.
    private mutating func takeOut(
        _ row: DamagedRow, _ table: String, key: String, _ action: StoreRepairResult.Step.Action, _ message: String
    ) throws {
        note(action, row.subject, message)
        replaced.append(row.line)
        try store.database.statement("DELETE FROM \(table) WHERE hex(\(key)) = ?").bind(1, row.hex(of: key)).run()
        _ = store.nextChange()
    }

    /// A file that has the digest of its row tells its size.
    private mutating func mendSizes() throws {
        var wrong: [(path: String, size: Int64)] = []
        try store.forEachAsset(damaged: { _ in }) { asset in
            try Interrupt.check()
            if let size = try store.sizeOfSoundFile(of: asset) { wrong.append((asset.path, size)) }
        }
        for (path, size) in wrong {
            note(.exact, path, "has the size of its file again, whose bytes are the right ones")
            try store.database.statement("UPDATE asset SET size = ? WHERE path = ?").bind(1, size).bind(2, path).run()
            _ = store.nextChange()
        }
    }

    private mutating func putRow(_ asset: Asset, isThere: Bool) throws {
        if isThere {
            try store.database.statement(
                "UPDATE asset SET size = ?, sha256 = ?, local_only = ?, modified_ns = ? WHERE path = ?"
            ).bind(1, asset.size).bind(2, asset.digest.hex).bind(3, asset.isLocalOnly ? Int64(1) : 0)
                .bind(4, asset.modifiedNanoseconds).bind(5, asset.path).run()
            _ = store.nextChange()
            return
        }
        // Its row has another path now, where no such file lies.
        for row in try store.changedSmallRows() where row.table == "asset" && row.noted == nil {
            guard let other = try store.ifSound({ try store.asset(row.key) }) ?? nil, other.digest == asset.digest,
                try !hasItsFile(other)
            else { continue }
            try store.database.statement("DELETE FROM asset WHERE path = ?").bind(1, other.path).run()
        }
        try store.putRow(asset)
    }

    /// Whether the file lies there: that an undo has kept the same bytes says nothing of a path.
    private func hasItsFile(_ asset: Asset) throws -> Bool {
        try store.assetStatus(store.foundPlace(of: asset))?.isRegular == true && StoreCheck.isFile(of: asset, in: store)
    }

    // MARK: The seed of the hashes

    /// The rows tell which seed is theirs.
    private mutating func mendSeed() throws {
        let changed = try store.changedSmallRows(of: "meta").map(\.key)
        for (key, value) in store.hasher.metaRows where changed.contains(key) {
            try store.database.statement("INSERT OR REPLACE INTO meta VALUES (?, ?)").bind(1, key).bind(2, value).run()
            note(.exact, "meta \(key)", "is again what the rows were written with")
        }
    }

    // MARK: The store's clock

    /// The clock is never behind what it has dated, and was never ahead of now.
    private mutating func mendLatestTime() throws {
        guard let row = try store.changedSmallRows().first(where: { $0.subject == Store.latestTimeRow }) else { return }
        let newest = try store.database.integer("SELECT ifnull(max(modified_at), 0) FROM record")
        let now = store.clock.now().milliseconds
        let told = try [row.noted, store.meta(row.key)].compactMap { $0.flatMap { Int64($0) } }
        let time = max(newest, told.filter { $0 <= now }.max() ?? newest)
        try store.database.statement("INSERT OR REPLACE INTO meta VALUES (?, ?)")
            .bind(1, row.key).bind(2, String(time)).run()
        note(.counter, row.subject, "the store's clock was set to \(Timestamp(milliseconds: time).iso8601)")
    }
}

extension DamagedRow {
    private func value(_ column: String) -> JSON? { (try? JSON(parsing: line))?["row"]?[column] }

    fileprivate var digest: SHA256Digest? { value("sha256")?.string.flatMap { SHA256Digest(hex: $0) } }
    fileprivate var isLocalOnly: Bool { value("local_only")?.compact == "1" }

    /// A text of the row as SQLite's `hex` says it.
    fileprivate func hex(of column: String) -> String {
        guard let text = value(column)?.string else { return value(column)?["text"]?.string?.uppercased() ?? "" }
        let digits = Array("0123456789ABCDEF".utf8)
        return String(decoding: text.utf8.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}

extension ChangedRow {
    /// The attachment that was noted.
    fileprivate var notedAsset: Asset? {
        let parts = noted?.split(separator: " ").map(String.init) ?? []
        guard table == "asset", parts.count == 4, let size = Int64(parts[0]), let isLocal = Int64(parts[2]),
            let time = Int64(parts[3]), let digest = SHA256Digest(hex: parts[1])
        else { return nil }
        return Asset(
            path: key, size: size, digest: digest, isLocalOnly: isLocal != 0, modifiedNanoseconds: time)
    }
}

extension Store {
    /// Notes of a row what it says now. Must run inside `write`.
    fileprivate func noteAgain(_ row: ChangedRow) throws {
        guard let key = Witness.ofData.first(where: { $0.table == row.table })?.key("") else { return }
        // The trigger does it.
        try database.statement("UPDATE \(row.table) SET \(key) = \(key) WHERE \(key) = ?").bind(1, row.key).run()
    }

    fileprivate func forget(_ row: ChangedRow) throws {
        try database.statement("DELETE FROM witness WHERE place = ? AND key = ?")
            .bind(1, row.table).bind(2, row.key).run()
    }

    fileprivate func hasAsset(like other: Asset) throws -> Bool {
        let query = try database.prepare("SELECT 1 FROM asset WHERE sha256 = ? AND modified_ns = ?")
            .bind(1, other.digest.hex).bind(2, other.modifiedNanoseconds)
        return try query.step()
    }

    /// Whether an attachment that can be read has these bytes.
    fileprivate func hasAsset(digest: SHA256Digest) throws -> Bool {
        var isFound = false
        try forEachAsset(damaged: { _ in }) { isFound = isFound || $0.digest == digest }
        return isFound
    }
}
