import BackupKit

extension Command {
    static let storeShare = Command(
        "share", "Share a zone with a user", in: .store,
        discussion: """
            A zone without a share is open to every user of the hub. A shared zone is open to its owner and to the users \
            it is shared with. The next sync sends the share to the hub; 'undo' takes it back.
            """,
        options: [
            .store, .value("with", "USER", "The user to share with", required: true),
            .value(
                "permission", "WHAT", "What the user may do (default: read)",
                .oneOf(Share.Permission.allCases.map(\.rawValue))),
            .value("owner", "USER", "The owner, when the zone is shared for the first time"), .user,
        ],
        arguments: [Argument("ZONE", "The zone")],
        examples: [
            Example("backup-tool store share OllieEvents --with ben --owner ann", "Ben may read Ann's events"),
            Example(
                "backup-tool store share OllieEvents --with ben --permission read-write", "Ben may also write them"),
        ],
        reports: true,
        run: { call in
            let zone = try call.argument("ZONE")
            guard let user = call.value("with"), !user.isEmpty else { throw call.usage("--with needs a name") }
            let permission = call.value("permission").flatMap(Share.Permission.init(rawValue:)) ?? .read
            let store = try call.store(.write)
            let caller = try call.user().flatMap { $0.isEmpty ? nil : $0 }
            let owner = call.value("owner").flatMap { $0.isEmpty ? nil : $0 } ?? caller
            call.report(try store.share(zone, with: user, permission, owner: owner, by: caller), zone, "store-share")
            return .done
        })

    static let storeUnshare = Command(
        "unshare", "Stop sharing a zone with a user, or with all", in: .store,
        discussion:
            "Without USER the share is removed and the zone is open to every user again. The next sync sends it to the hub.",
        options: [.store, .value("with", "USER", "The user to remove, as in 'share'"), .user],
        arguments: [Argument("ZONE", "The zone"), Argument("USER", "The user to remove", .text, .optional)],
        examples: [Example("backup-tool store unshare OllieEvents ben", "Ben may no longer read them")],
        reports: true,
        run: { call in
            let zone = try call.argument("ZONE")
            let user = call.value("with")
            if user?.isEmpty == true { throw call.usage("--with needs a name") }
            guard user == nil || call.arguments("USER").isEmpty else {
                throw call.usage("name the user once: as USER or with --with")
            }
            let store = try call.store(.write)
            let caller = try call.user().flatMap { $0.isEmpty ? nil : $0 }
            let share = try store.unshare(zone, user ?? call.arguments("USER").first, by: caller)
            call.report(share, zone, "store-unshare")
            return .done
        })
}

extension Invocation {
    fileprivate func report(_ share: Share?, _ zone: String, _ what: String) {
        let users = share?.participants.sorted { $0.key < $1.key } ?? []
        if output.isJSON {
            output.report([
                "message_type": .string(what), "zone": .string(zone),
                "owner": share.map { .string($0.owner) } ?? .null,
                "participants": .array(
                    users.map { ["user": .string($0.key), "permission": .string($0.value.rawValue)] }),
            ])
        } else if let share {
            let list = users.map { "\(printable($0.key)) (\($0.value.rawValue))" }.joined(separator: ", ")
            output.print("\(printable(zone)) of \(printable(share.owner)): \(list.isEmpty ? "nobody else" : list)")
        } else {
            output.print("\(printable(zone)) is open to every user of the hub")
        }
    }
}
