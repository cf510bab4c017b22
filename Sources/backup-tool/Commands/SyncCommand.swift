import BackupKit

extension Option {
    /// An empty one asks for nobody.
    static let user = Option.value("user", "NAME", "Your name on the hub (default: that of the last sync)", .anyText)
    static let allowNetwork = Option.flag(
        "allow-network", "Allow a hub file on NFS, SMB, FUSE or the like")
}

extension Invocation {
    /// `--user`, else what the environment and the configuration say. Empty only where `--user ''` asks for nobody.
    func user() throws -> String? {
        if let named = value(Option.user.name) { return named }
        if let named = environment["BACKUP_TOOL_USER"], !named.isEmpty { return named }
        return try configuration().text("user")
    }

    fileprivate func hub(of store: Store) throws -> FileHub {
        let path = try hubPath(of: store)
        do { return try FileHub(path, allowingNetwork: flag(Option.allowNetwork.name)) } catch let error as BackupError
            where error.code == .notFound
        {
            if try namedHub == nil, try store.hasDamagedHubLink() { throw damagedHubLink(of: store) }
            // A new hub would be another one: what is missing is the disk.
            guard let known = try store.syncState()?.location, known == (try placeOfHub(path)) else {
                throw error
            }
            throw BackupError(
                .notFound, "the hub of the last sync is not there", at: path,
                remedy: "connect its disk, or name the hub with --hub where it is now")
        }
    }

    /// Where a hub would be that is not there, as the store remembers places.
    private func placeOfHub(_ path: String) throws -> String {
        let folder = parent(of: try absolutePath(path))
        return "\(Directory.real(folder) ?? folder)/\(lastComponent(of: path))"
    }

    private func damagedHubLink(of store: Store) -> BackupError {
        BackupError(
            .notFound, "what the store remembers of its hub is damaged, and no hub is where it says", at: store.path,
            remedy: "name the hub: 'backup-tool sync --hub PATH'")
    }

    private var namedHub: String? {
        get throws {
            if let named = value("hub") ?? environment["BACKUP_TOOL_HUB"], !named.isEmpty { return named }
            let configured = try configuration().text("hub")
            return configured?.isEmpty == false ? configured : nil
        }
    }

    /// The named hub, else the one that the store synced with last.
    fileprivate func hubPath(of store: Store) throws -> String {
        if let named = try namedHub {
            try LocalPath.check(named)
            return named
        }
        if let known = try store.syncState()?.location, !known.isEmpty { return known }
        if try store.hasDamagedHubLink() { throw damagedHubLink(of: store) }
        throw usage("this store has no hub yet: give --hub PATH")
    }

    func show(_ sync: SyncState, of store: String) {
        let last = sync.syncedAt.map { "last sync \($0.iso8601.prefix(19))Z" } ?? "never synced to the end"
        output.note("hub \(printable(sync.location)), \(last)")
        say(sync.held)
        if let finding = Finding.filesOnTheWay(sync.awaited, to: store) { say([finding]) }
    }

    fileprivate func say(_ held: [Held]) {
        guard !output.isJSON else { return }
        say(
            held.map { held in
                let id = held.id.description
                if held.isIncoming {
                    let remedy: String? =
                        switch held.kind {
                        case .missing: "sync a device that has the file, then this one"
                        case .damaged: "sync a device that has this record as it was: it sends it again"
                        default: nil
                        }
                    return Finding(.skipped, .warning, id, "cannot be fetched: \(held.reason)", remedy: remedy)
                }
                guard held.kind == .local else {
                    let isDamaged = held.kind == .permission && held.size == 0
                    return Finding(
                        .skipped, .warning, id, "stays on this device: \(held.reason)",
                        remedy: isDamaged ? "sync the device that wrote that version: it sends it again" : nil)
                }
                return Finding(
                    .notAskedFor, .note, id, "the version of other devices is not fetched: \(held.reason)",
                    remedy: "\(TypedCommand.quoted("store enable-cloud", [id])) merges the two, "
                        + "\(TypedCommand.quoted("store delete", [id])) takes theirs")
            })
    }
}

extension Held {
    fileprivate var json: JSONValue {
        [
            "record": .string(id.description), "kind": .string(kind.rawValue), "reason": .string(reason),
            "since": .string(since.iso8601),
        ]
    }
}

extension SyncState {
    var json: JSONValue {
        [
            "hub": .string(location), "lastSync": syncedAt.map { .string($0.iso8601) } ?? .null,
            "pending": .int(pending), "held": .array(held.map(\.json)),
            "awaited": .array(awaited.map { .string($0) }),
        ]
    }
}

extension Command {
    static let sync = Command(
        "sync", "Exchange changes with a hub", in: .store,
        discussion: """
            Sends local changes to the hub and fetches the changes of other devices. Records that changed on both sides \
            merge field by field: the newer value wins, lists such as tags are joined. Deleted records stay deleted, \
            local-only records stay on this device. A sync that was interrupted continues the next time.

            A record that cannot be sent (too large for the hub, or no permission) stays here, is listed, and does not \
            hold up the others.
            """,
        options: [
            .store, .value("hub", "PATH", "The hub, as 'hub init' made it (default: the last one)", .file), .user,
            .flag("change-user", "Sync as another user than last time"), .allowNetwork, .dryRun,
        ],
        examples: [
            Example("backup-tool sync --hub /srv/hub.db --user ann", "Sync with a hub for the first time"),
            Example("backup-tool sync", "Sync again: the store remembers the hub and the user"),
            Example("backup-tool sync --dry-run", "See how much waits on both sides"),
        ],
        reports: true,
        run: { call in
            let dryRun = call.flag("dry-run")
            let store = try call.store(.write)
            let hub = try call.hub(of: store)
            var options = SyncOptions(user: try call.user(), dryRun: dryRun)
            options.changesUser = call.flag("change-user")
            if options.changesUser, options.user == nil { throw call.usage("--change-user needs --user NAME") }
            let result = try Synchronizer.sync(store, with: hub, options)
            call.report(result, of: store.path, dryRun: dryRun)
            return result.needsAttention ? .incomplete : .done
        })
}

extension Invocation {
    fileprivate func report(_ result: SyncResult, of store: String, dryRun: Bool) {
        if output.isJSON {
            output.report([
                "message_type": "sync", "dryRun": .bool(dryRun), "pulled": .int(result.pulled),
                "pushed": .int(result.pushed), "merged": .int(result.merged), "joined": .int(result.joined),
                "conflicts": .int(result.conflicts),
                "clamped": .int(result.clamped), "resynced": .bool(result.resynced),
                "attachments": ["sent": .int(result.assetsSent), "fetched": .int(result.assetsFetched)],
                "held": .array(result.held.map(\.json)), "findings": .array(result.findings.map(\.json)),
                "awaited": .array(result.awaited.map { .string($0) }),
            ])
            return
        }
        say(result.findings)
        say(result.held)
        if let finding = Finding.filesOnTheWay(result.awaited, to: store) { say([finding]) }
        if result.resynced {
            output.note("The hub is not the one that this store knew, so everything was compared.")
        }
        var parts = [
            "\(HumanText.count(result.pulled)) pulled", "\(HumanText.count(result.pushed)) pushed",
        ]
        if result.merged > 0 { parts.append("\(HumanText.count(result.merged)) merged") }
        if result.joined > 0 { parts.append("\(HumanText.count(result.joined, "duplicate event")) joined") }
        if result.conflicts > 0 { parts.append(HumanText.count(result.conflicts, "conflict")) }
        if result.assetsSent > 0 { parts.append("\(HumanText.count(result.assetsSent, "file")) sent") }
        if result.assetsFetched > 0 { parts.append("\(HumanText.count(result.assetsFetched, "file")) fetched") }
        let list = parts.joined(separator: ", ")
        output.note(dryRun ? "Dry run: \(list), nothing written." : "\(list).")
    }
}
