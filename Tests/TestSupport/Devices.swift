import BackupKit

/// Some devices and the hub that they share, in one folder with one clock.
public final class Devices {
    public let folder: String
    public let clock: TestClock
    public private(set) var stores: [Store] = []
    public let names: [String]
    public var hub: any Hub
    public var hubPath: String { "\(folder)/hub.db" }

    public init(_ names: [String], in folder: String, limits: HubLimits = .file) throws {
        self.folder = folder
        self.names = names
        clock = TestClock()
        hub = try FileHub.create("\(folder)/hub.db", limits: limits)
        for name in names { stores.append(try Store.create("\(folder)/\(name).db", clock: clock.clock)) }
    }

    public func path(_ name: String) -> String { "\(folder)/\(name).db" }

    public subscript(name: String) -> Store {
        stores[names.firstIndex(of: name) ?? 0]
    }

    /// Syncs one device; time goes on.
    @discardableResult
    public func sync(_ name: String, user: String? = nil, with hub: (any Hub)? = nil) throws -> SyncResult {
        clock.advance()
        var options = SyncOptions(user: user)
        options.sleep = { _ in }
        return try Synchronizer(self[name], hub ?? self.hub, options).run()
    }

    /// Syncs one device as the command does, which knows what the fields of a publication mean; time goes on.
    @discardableResult
    public func syncLibrary(_ name: String) throws -> SyncResult {
        clock.advance()
        var options = SyncOptions()
        options.sleep = { _ in }
        return try Synchronizer.sync(self[name], with: hub, options)
    }

    public func syncAll(rounds: Int = 2) throws {
        for _ in 0..<rounds { for name in names { try sync(name) } }
    }

    /// Writes a record on a device, now.
    public func edit(_ name: String, _ id: String, _ fields: String, zone: String = "Z") throws {
        clock.advance()
        let now = clock.now
        let record = Record(
            id: RecordID(zone: zone, name: id), type: "Item", localID: id, fields: fields, createdAt: now,
            modifiedAt: now,
            deviceID: name)
        try self[name].take(record)
    }

    public func delete(_ name: String, _ id: String) throws {
        clock.advance()
        _ = try self[name].delete([id])
    }

    /// The fields of a record as a device shows it: nil when it is not there, or is deleted.
    public func shown(_ name: String, _ localID: String) throws -> String? {
        let live = try self[name].all().filter { $0.localID == localID && !$0.isDeleted }
        return live.count > 1 ? "\(live.count) of them" : live.first?.fields
    }
}

/// Runs `body` with new devices and a hub, and looks over what is left of each.
public func withDevices(
    _ names: String..., limits: HubLimits = .file, _ body: (Devices) throws -> Void
) throws {
    try withTemporaryFolder { folder in
        let devices = try Devices(names, in: folder, limits: limits)
        try body(devices)
        for name in names { try checkSound(devices.path(name)) }
    }
}
