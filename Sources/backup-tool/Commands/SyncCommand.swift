import BackupKit

extension Option {
    static let user = Option.value("user", "NAME", "Who you are to the hub")
}

extension Invocation {
    /// `--user`, else what the environment and the configuration say.
    func user() throws -> String? {
        if let named = value(Option.user.name) ?? environment["BACKUP_TOOL_USER"] { return named.isEmpty ? nil : named }
        return try configuration().text("user")
    }

    fileprivate func hubPath() throws -> String {
        if let named = value("hub") ?? environment["BACKUP_TOOL_HUB"] {
            try LocalPath.check(named)
            return named
        }
        if let named = try configuration().text("hub") { return named }
        throw usage("no hub is named: give --hub PATH")
    }

    func show(_ sync: SyncState) {
        let last = sync.syncedAt.map { "last sync \($0.iso8601.prefix(19))Z" } ?? "never synced to the end"
        output.note("hub \(printable(sync.location)), \(last)")
        say(sync.held)
    }

    fileprivate func say(_ held: [Held]) {
        guard !output.isJSON else { return }
        say(
            held.filter { $0.kind != .local || output.isVerbose }.map {
                Finding(.skipped, .warning, $0.id.description, "stays on this device: \($0.reason)")
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
        ]
    }
}

extension Command {
    static let sync = Command(
        "sync", "Exchange changes with a hub", in: .store,
        discussion: """
            What changed here goes to the hub, what others changed comes, and what changed on both sides is merged field \
            by field: the newer one wins, lists such as tags are joined. What is deleted stays deleted, and what is kept \
            on this device only stays on it. Everything works without a hub and catches up later; a sync that is \
            interrupted goes on the next time.

            What cannot go (too large for the hub, or no permission) stays here, is named, and blocks nothing else.
            """,
        options: [
            .store, .value("hub", "PATH", "The hub, as 'hub init' made it", .file), .user, .dryRun,
        ],
        examples: [
            Example("backup-tool sync --hub /mnt/shared/hub.db", "Bring this store and the hub together"),
            Example("backup-tool sync --hub hub.db --dry-run", "See how much waits on both sides"),
        ],
        reports: true,
        run: { call in
            let dryRun = call.flag("dry-run")
            let hub = try FileHub(try call.hubPath())
            let store = try call.store(dryRun ? .read : .write)
            let options = SyncOptions(user: try call.user(), dryRun: dryRun)
            let result = try Synchronizer.sync(store, with: hub, options)
            call.report(result, dryRun: dryRun)
            return result.needsAttention ? .incomplete : .done
        })

    static let hub = Command(
        "hub", "Make the place where stores meet", in: .store,
        discussion: "A hub is one file with a folder of attachments beside it, on a disk that all stores can reach.",
        subcommands: [hubInit])

    private static let hubInit = Command(
        "init", "Make a new, empty hub", in: .store,
        discussion: "What is there already is never touched.",
        arguments: [Argument("PATH", "Where the hub is to be", .file)],
        examples: [Example("backup-tool hub init /mnt/shared/hub.db", "A hub on a shared disk")],
        reports: true,
        run: { call in
            let hub = try FileHub.create(try call.argument("PATH"))
            if call.output.isJSON {
                call.output.report([
                    "message_type": "hub-init", "path": .string(hub.path), "hubId": .string(try hub.identity().id),
                ])
            } else {
                call.output.note("New hub: \(printable(hub.path))")
            }
            return .done
        })
}

extension Invocation {
    fileprivate func report(_ result: SyncResult, dryRun: Bool) {
        if output.isJSON {
            output.report([
                "message_type": "sync", "dryRun": .bool(dryRun), "pulled": .int(result.pulled),
                "pushed": .int(result.pushed), "merged": .int(result.merged), "conflicts": .int(result.conflicts),
                "clamped": .int(result.clamped), "resynced": .bool(result.resynced),
                "attachments": ["sent": .int(result.assetsSent), "fetched": .int(result.assetsFetched)],
                "held": .array(result.held.map(\.json)), "findings": .array(result.findings.map(\.json)),
            ])
            return
        }
        say(result.findings)
        say(result.held)
        if result.resynced {
            output.note("The hub is not the one that this store knew, so everything was compared.")
        }
        var parts = [
            "\(HumanText.count(result.pulled)) pulled", "\(HumanText.count(result.pushed)) pushed",
        ]
        if result.merged > 0 { parts.append("\(HumanText.count(result.merged)) merged") }
        if result.conflicts > 0 { parts.append(HumanText.count(result.conflicts, "conflict")) }
        let list = parts.joined(separator: ", ")
        output.note(dryRun ? "Would be: \(list). Nothing was written." : "\(list).")
    }
}
