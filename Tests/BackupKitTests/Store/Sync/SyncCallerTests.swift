import TestSupport
import Testing

@testable import BackupKit

/// Who asks, and what is whose.
@Suite struct SyncCallerTests {
    /// Ann's zone, shared with Ben, on the hub; and a device of Ben's that has synced once as `first`.
    private func withBensDevice(syncedFirstAs first: String?, _ body: (Devices) throws -> Void) throws {
        try withDevices("ann", "ben") { devices in
            for number in 0..<5 { try devices.edit("ann", "r\(number)", "{}") }
            try devices["ann"].share("Z", with: "ben", .readWrite, owner: "ann")
            try devices.sync("ann", user: "ann")
            #expect(try devices.sync("ben", user: first).pulled == (first == "ben" ? 6 : 0))
            try body(devices)
        }
    }

    @Test func whoSyncedOnceWithoutAName_getsEverythingUnderIt() throws {
        try withBensDevice(syncedFirstAs: nil) { devices in
            #expect(try devices.sync("ben", user: "ben").pulled == 6)
            #expect(try devices["ann"].digest() == devices["ben"].digest())
            // And is who it was, when nobody says anything.
            try devices.edit("ben", "mine", "{}")
            #expect(try devices.sync("ben").pushed == 1)
        }
    }

    @Test func anotherNameIsRefusedUnlessItIsMeant() throws {
        try withBensDevice(syncedFirstAs: "bne") { devices in
            try devices.edit("ben", "mine", "{}")
            let error = #expect(throws: BackupError.self) { try devices.sync("ben", user: "ben") }
            #expect(error?.code == .refused && error?.remedy?.contains("--change-user") == true)
            var options = SyncOptions(user: "ben")
            options.changesUser = true
            let result = try Synchronizer(devices["ben"], devices.hub, options).run()
            #expect(result.pulled == 6 && result.pushed == 1 && result.held.isEmpty)
            #expect(try devices.sync("ben", user: "ben").pulled == 0)
            // Nobody is another caller than Ben.
            #expect(throws: BackupError.self) { try devices.sync("ben", user: "") }
        }
    }

    @Test func aDryRunAsksAsTheUserOfTheStore() throws {
        try withBensDevice(syncedFirstAs: "ben") { devices in
            try devices.edit("ann", "new", "{}")
            try devices.sync("ann")
            let result = try Synchronizer.sync(devices["ben"], with: devices.hub, SyncOptions(dryRun: true))
            #expect(result.pulled == 1)
        }
    }

    @Test func aZoneWhoseShareCannotGoStaysHere_andGoesWithIt() throws {
        try withDevices("ann", "ben", "eve") { devices in
            for number in 0..<22 { try devices.edit("ann", "r\(number)", "{}") }
            try devices.edit("ann", "open", "{}", zone: "Open")
            try devices["ann"].share("Z", with: "ben", .readWrite, owner: "ann")
            for name in ["ann", "ben"] { try devices.sync(name, user: name) }
            devices.hub = try FileHub.create("\(devices.folder)/hub2.db")
            // Ben may not share Ann's zone, so nothing of it goes to the new hub.
            let result = try devices.sync("ben", user: "ben")
            #expect(result.pushed == 1 && result.held.count == 23 && result.held.allSatisfy { $0.kind == .permission })
            #expect(try devices.hub.all(for: "eve").0.map(\.record.id.zone) == ["Open"])
            try devices.sync("eve", user: "eve")
            #expect(try devices["eve"].all().map(\.id.name) == ["open"])
            try devices.sync("ann", user: "ann")
            #expect(try devices.sync("ben", user: "ben").held.isEmpty)
            try devices.edit("ben", "r1", "{\"x\":1}")
            try devices.sync("ben")
            try devices.sync("ann")
            #expect(try devices["ann"].digest() == devices["ben"].digest())
            #expect(try devices["eve"].all().count == 1)
        }
    }

    @Test func theFilesOfSuchAZoneStayWithIt_unlessAnotherZoneNamesThem() throws {
        try withDevices("ann", "ben") { devices in
            let store = devices["ann"]
            for path in ["Attachments/hers.jpg", "Attachments/both.jpg", "Attachments/nobodys.jpg"] {
                _ = try store.batch(kind: "import", source: "test") {
                    try place(path, path, in: store)
                    return ((), summary: "")
                }
            }
            try devices.edit("ann", "walk", #"{"photo":"hers.jpg","thumbnail_path":"both.jpg"}"#)
            try devices.edit("ann", "open", #"{"photo":"both.jpg"}"#, zone: "Open")
            try store.share("Z", with: "ben", .readWrite, owner: "ann")
            try devices.sync("ann", user: "ann")
            try devices.sync("ben", user: "ben")
            #expect(try devices["ann"].digest() == devices["ben"].digest())

            devices.hub = try FileHub.create("\(devices.folder)/hub2.db")
            let result = try devices.sync("ben", user: "ben")
            #expect(result.held.map(\.id.name).sorted() == ["Attachments/hers.jpg", "share", "walk"])
            #expect(
                try devices.hub.all(for: "eve").0.map(\.record.id.name).sorted() == [
                    "Attachments/both.jpg", "Attachments/nobodys.jpg", "open",
                ])
            #expect(try devices.hub.missingAssets(of: [.of("Attachments/hers.jpg")]).count == 1)

            try devices.sync("ann", user: "ann")
            #expect(try devices.sync("ben", user: "ben").held.isEmpty)
            #expect(try devices["ann"].digest() == devices["ben"].digest())
        }
    }

    /// An earlier version made such shares, and one may lie on a hub.
    @Test func aShareOfFilesOnAHub_countsForNothing() throws {
        try withDevices("bob", "eve") { devices in
            _ = try devices["bob"].batch(kind: "import", source: "test") {
                try place("Attachments/a.pdf", "the bytes", in: devices["bob"])
                return ((), summary: "")
            }
            func share(_ type: String) -> Record {
                record(Share.recordName, Share(owner: "bob").fields, type: type, zone: Store.assetZone)
            }
            guard case .rejected(_, let refused, _) = try devices.hub.put(share(Share.recordType), by: "bob") else {
                Issue.record("the hub took a share of files")
                return
            }
            #expect(refused[0]?.contains("files go to everybody") == true)
            try devices.hub.put(share("Item"), by: "bob")
            try SQLite(devices.hubPath, .readWrite).execute(
                "DELETE FROM proof; UPDATE record SET type = 'Share' WHERE zone = 'Assets'")
            try devices.sync("bob", user: "bob")
            let result = try devices.sync("eve", user: "eve")
            #expect(result.held.isEmpty && result.assetsFetched == 1, "\(result)")
        }
    }

    /// Cut after any request: what lies on the hub was never open to others.
    @Test func aShareGoesBeforeItsZone() throws {
        var limits = HubLimits.file
        limits.recordsPerPush = 2
        try withDevices("ann", limits: limits) { devices in
            for number in 0..<9 { try devices.edit("ann", "r\(number)", "{}") }
            try devices["ann"].share("Z", with: "ben", .read, owner: "ann")
            try devices.edit("ann", "last", "{}")
            try devices.sync("ann", user: "ann")
            let first = try #require(try devices.hub.all(for: "ann").0.min { $0.version < $1.version })
            #expect(Share.isShare(first.record))
        }
    }

    @Test(arguments: ["lost", "damaged"])
    func aFileThatTheHubLostComesAgainFromADeviceThatHasIt(_ how: String) throws {
        try withDevices("A", "B") { devices in
            _ = try devices["A"].batch(kind: "import", source: "test") {
                try place("Attachments/a.pdf", "the bytes", in: devices["A"])
                return ((), summary: "")
            }
            try devices.sync("A")
            let file =
                "\(devices.hubPath).assets/" + SHA256Digest.of("the bytes").hex.prefix(2) + "/"
                + SHA256Digest.of("the bytes").hex
            try Directory.removeTree(file)
            if how == "damaged" { try writeFile(file, "the bytez") }
            let held = try devices.sync("B")
            #expect(held.held.map(\.kind) == [.missing] && held.needsAttention)
            #expect(try devices.sync("A").assetsSent == 1)
            let result = try devices.sync("B")
            #expect(result.held.isEmpty && result.assetsFetched == 1)
            #expect(try devices.sync("A").assetsSent == 0)
        }
    }

    @Test func networkFileSystemsAreKnownByTheirNumbers() {
        for (type, name) in [(0x6969, "NFS"), (0xFF53_4D42, "SMB"), (0x6573_5546, "FUSE"), (0x0102_1997, "9P")] {
            #expect(FileSystem.networkName(ofType: Int64(type)) == name)
        }
        // ext4, XFS, Btrfs, tmpfs, overlay, ZFS
        for type in [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630, 0x2FC1_2FC1] {
            #expect(FileSystem.networkName(ofType: Int64(type)) == nil)
        }
    }
}
