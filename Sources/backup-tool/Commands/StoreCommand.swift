import BackupKit

extension Command {
    static let store = Command(
        "store", "Create, inspect and change the sync store", in: .store,
        discussion: "The store is an SQLite database with a folder of attachments beside it.",
        subcommands: [
            storeInit, storeInfo, storeDigest, storeCheck, storeRepair, storePurge, storeChanges, storeDelete,
            storeSetLocal, storeEnableCloud, storeShare, storeUnshare, storeAdopt,
        ])

    private static let storeInit = Command(
        "init", "Create an empty store", in: .store,
        discussion: "An existing file is never touched.",
        options: [.store],
        examples: [Example("backup-tool store init --store ~/library.db", "Create a store at a path of your choice")],
        reports: true,
        run: { call in
            let path = try call.storePath()
            let store = try Store.create(path)
            if call.output.isJSON {
                call.output.report([
                    "message_type": "store-init", "path": .string(path), "storeId": .string(try store.storeID),
                ])
            } else {
                call.output.note("New store: \(printable(path))")
            }
            return .done
        })

    private static let storeInfo = Command(
        "info", "Show counts and sizes of the store", in: .store, options: [.store],
        examples: [Example("backup-tool store info --json", "Counts for a script")],
        reports: true,
        run: { call in
            let path = try call.storePath()
            let store = call.watched(try Store(path, .read))
            let ((info, sync), status) = try call.reading(store) { try (store.info(), store.syncState()) }
            if call.output.isJSON {
                call.output.report([
                    "message_type": "store-info", "path": .string(path), "storeId": .string(try store.storeID),
                    "records": info.records.json,
                    "types": .object(info.types.map { .init(key: $0.type, value: .int($0.count)) }),
                    "tombstones": .int(info.tombstones), "localOnly": .int(info.localOnly),
                    "assets": .int(info.assets), "assetBytes": .int(Int(info.assetBytes)),
                    "settings": .int(info.settings), "conflicts": .int(info.conflicts),
                    "schemaVersion": .int(info.schemaVersion), "token": .string(try store.token().description),
                    "sync": sync?.json ?? .null,
                ])
                return status
            }
            var table = Table([.left("WHAT"), .right("COUNT")])
            for kind in Kind.allCases where kind != .attachments && kind != .settings {
                table.add([kind.rawValue, HumanText.count(info.records[kind] ?? 0)])
            }
            table.add(["other parts of .bib files", HumanText.count(info.partsOfFiles)])
            table.add(["attachments", HumanText.count(info.assets)])
            table.add(["settings", HumanText.count(info.settings)])
            table.add(["tombstones", HumanText.count(info.tombstones)])
            table.add(["local only", HumanText.count(info.localOnly)])
            table.add(["conflicts", HumanText.count(info.conflicts)])
            if let sync {
                table.add(["waiting for the hub", HumanText.count(sync.pending)])
                table.add(["held", HumanText.count(sync.held.count)])
            }
            table.print(to: call.output)
            if let sync { call.show(sync, of: path) }
            call.output.note(
                "\(HumanText.bytes(Int(info.assetBytes))) of attachments, schema \(info.schemaVersion), \(printable(path))"
            )
            return status
        })

    private static let storeDigest = Command(
        "digest", "Print the content digest", in: .store,
        discussion: """
            64 hexadecimal digits that stand for everything in the store, times included. Two stores with the same content \
            have the same digest, however they came to it.
            """,
        options: [.store, .only],
        examples: [Example("backup-tool store digest", "Compare it with a manifest's contentDigest")],
        reports: true,
        run: { call in
            let store = try call.store(.read)
            let digest = try store.read { try store.contentDigest(kinds: call.kinds()) }
            if call.output.isJSON {
                call.output.report(["message_type": "store-digest", "contentDigest": .string(digest.hex)])
            } else {
                call.output.print(digest.hex)
            }
            return .done
        })

    private static let storeDelete = editing(
        "delete", "Delete records, everywhere", done: "deleted",
        discussion: "A tombstone stays, which holds nothing of the record, so that no late device brings it back."
    ) { store, ids, dryRun in
        try store.curate(.delete, ids, dryRun: dryRun)
    }

    private static let storeSetLocal = editing(
        "set-local", "Keep records on this device only", done: "kept on this device",
        discussion: "Everybody else gets a tombstone; the copy here is protected from whatever they send."
    ) { store, ids, dryRun in
        try store.keepOnThisDevice(ids, dryRun: dryRun)
    }

    private static let storeEnableCloud = editing(
        "enable-cloud", "Give local-only records back to the cloud", done: "given back",
        discussion: """
            The whole record overwrites its tombstone, so that the other devices get it again. What a restore has put in \
            quarantine becomes the newest version of its record, with the files that it links.
            """
    ) { try Quarantine.enableCloud($1, in: $0, dryRun: $2) }

    private static func editing(
        _ name: String, _ summary: String, done: String, discussion: String,
        _ edit: @escaping @Sendable (_ store: Store, _ ids: [String], _ dryRun: Bool) throws -> Store.Curated
    ) -> Command {
        Command(
            name, summary, in: .store, discussion: discussion + " All of the records or none. 'undo' takes it back.",
            options: [.store, .dryRun],
            arguments: [Argument("ID", "A local id, a record name, or zone/name", .text, .oneOrMore)],
            examples: [Example("backup-tool store \(name) 4F6D3B0A-0D6C-8F3E-9B1A-2C3D4E5F6071", "One record")],
            reports: true,
            run: { call in
                let store = try call.store(.write)
                let isRehearsal = call.flag("dry-run")
                let curated = try edit(store, call.arguments("ID"), isRehearsal)
                let ids = curated.ids
                if call.output.isJSON {
                    call.output.report([
                        "message_type": .string("store-\(name)"), "dryRun": .bool(isRehearsal),
                        "records": .array(ids.map { .string($0.description) }),
                        "batch": curated.batch.map { .int(Int($0)) } ?? .null,
                    ])
                } else {
                    for id in ids {
                        call.output.print("\(printable(id.description)) \(isRehearsal ? "would be " : "")\(done)")
                    }
                    if curated.batch != nil {
                        call.output.note("'backup-tool undo' takes this back.")
                    } else if !isRehearsal {
                        call.output.note("Nothing changed: it was so already.")
                    }
                }
                call.say(curated.findings)
                return curated.findings.isEmpty ? .done : .incomplete
            })
    }
}
