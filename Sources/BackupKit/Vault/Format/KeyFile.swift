/// A file of `keys/`: plain JSON that holds the vault's master key, sealed with a key made of a password. Everybody who
/// sees the vault can read who made it, where and when, so we write none of that unless asked.
struct KeyFile: Equatable {
    static let limit = 64 << 10
    static let saltBytes = 64

    var created: String
    var userName: String
    var hostName: String
    let cost: ScryptCost
    let salt: [UInt8]
    let data: [UInt8]

    /// Seals the master key for a password.
    init(
        sealing master: VaultKey, password: [UInt8], cost: ScryptCost, created: String, userName: String,
        hostName: String
    ) throws {
        self.created = created
        self.userName = userName
        self.hostName = hostName
        self.cost = cost
        salt = try SecureRandom.bytes(Self.saltBytes)
        let own = try VaultCipher(Self.key(password, cost, salt))
        data = try own.seal(Self.encode(master))
    }

    /// Reads any bytes.
    init(_ bytes: UnsafeRawBufferPointer) throws {
        let json = try JSON(parsing: bytes)
        guard json["kdf"]?.string == "scrypt" else {
            throw BackupError(.damaged, "its key derivation is not scrypt")
        }
        func count(_ name: String) throws -> UInt64 {
            guard let value = json[name]?.integer, value > 0 else {
                throw BackupError(.damaged, "'\(name)' is no positive number")
            }
            return UInt64(value)
        }
        func octets(_ name: String) throws -> [UInt8] {
            guard let value = json[name]?.string.flatMap(Base64.decode) else {
                throw BackupError(.damaged, "'\(name)' is not Base64")
            }
            return value
        }
        cost = try ScryptCost(n: count("N"), r: count("r"), p: count("p"))
        salt = try octets("salt")
        data = try octets("data")
        guard salt.count == Self.saltBytes else { throw BackupError(.damaged, "its salt is not 64 bytes long") }
        created = json["created"]?.string ?? ""
        userName = json["username"]?.string ?? ""
        hostName = json["hostname"]?.string ?? ""
    }

    var bytes: [UInt8] {
        Array(
            JSON.object([
                .init("created", .string(created)), .init("username", .string(userName)),
                .init("hostname", .string(hostName)), .init("kdf", "scrypt"), .init("N", JSON(cost.n)),
                .init("r", JSON(cost.r)), .init("p", JSON(cost.p)), .init("salt", .string(Base64.encode(salt))),
                .init("data", .string(Base64.encode(data))),
            ]).compact.utf8)
    }

    /// The master key; nil when the password is another.
    func open(password: [UInt8]) throws -> VaultKey? {
        let own = try VaultCipher(Self.key(password, cost, salt))
        guard try data.withUnsafeBytes({ try own.isAuthentic($0) }) else { return nil }
        guard let master = try Self.decode(own.open(data)) else {
            throw BackupError(.damaged, "the master key in it is no key")
        }
        return master
    }

    private static func key(_ password: [UInt8], _ cost: ScryptCost, _ salt: [UInt8]) throws -> VaultKey {
        guard let key = VaultKey(joined: try cost.derive(password: password, salt: salt)) else {
            throw BackupError(.failed, "the key derivation gives zeros")
        }
        return key
    }

    private static func encode(_ key: VaultKey) -> [UInt8] {
        let mac = JSON.object([
            .init("k", .string(Base64.encode(key.macK))), .init("r", .string(Base64.encode(key.macR))),
        ])
        let json = JSON.object([.init("mac", mac), .init("encrypt", .string(Base64.encode(key.encrypt)))])
        return Array(json.compact.utf8)
    }

    private static func decode(_ bytes: [UInt8]) throws -> VaultKey? {
        let json = try bytes.withUnsafeBytes { try JSON(parsing: $0) }
        guard let encrypt = json["encrypt"]?.string.flatMap(Base64.decode),
            let macK = json["mac"]?["k"]?.string.flatMap(Base64.decode),
            let macR = json["mac"]?["r"]?.string.flatMap(Base64.decode)
        else { return nil }
        return VaultKey(encrypt: encrypt, macK: macK, macR: macR)
    }
}
