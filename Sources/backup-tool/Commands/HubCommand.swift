import BackupKit

extension Command {
    static let hub = Command(
        "hub", "Create a sync hub", in: .store,
        discussion: """
            A hub is one file with a folder of attachments beside it. It is for stores of one machine, or on a disk that is \
            carried from one to the next: network file systems are refused, because their locks cannot be relied on.
            """,
        subcommands: [hubInit])

    private static let hubInit = Command(
        "init", "Create an empty hub", in: .store,
        discussion: "An existing file is never touched.",
        options: [.allowNetwork],
        arguments: [Argument("PATH", "The file to create", .file)],
        examples: [Example("backup-tool hub init /srv/hub.db", "A hub for all stores of this machine")],
        reports: true,
        run: { call in
            let hub = try FileHub.create(
                try call.argument("PATH"), allowingNetwork: call.flag(Option.allowNetwork.name))
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
