/// Finds out what a schema lies in: a JSON file, CloudKit's own language, a Core Data model, or an Xcode folder of models.
public enum SchemaFile {
    /// `read` gives the bytes of a small file, or nil where there is none.
    public static func read(
        _ path: String, _ findings: inout [Finding], read: (String) throws -> [UInt8]?
    ) throws -> DataSchema {
        let file = try self.file(of: path, read)
        guard let bytes = try read(file) else {
            throw BackupError(.notFound, "there is no such file", at: file, remedy: "name a schema file")
        }
        guard bytes.count <= TOML.maximumBytes else {
            throw BackupError(.refused, "is larger than any schema should be", at: file)
        }
        do {
            return try bytes.withUnsafeBytes { all in
                let text = all.withoutByteOrderMark
                if DataSchema.looksLikeCoreData(text) { return try DataSchema(coreData: text, &findings) }
                if file.hasSuffix(".ckdb") || DataSchema.looksLikeCloudKit(text) {
                    return try DataSchema(cloudKit: text, &findings)
                }
                return try DataSchema(parsing: text, &findings)
            }
        } catch let error as BackupError {
            throw BackupError(error.code, error.message, at: file, remedy: error.remedy)
        }
    }

    private static func file(of path: String, _ read: (String) throws -> [UInt8]?) throws -> String {
        guard try FileStatus.ofTarget(path)?.isDirectory == true else { return path }
        if try FileStatus.ofTarget("\(path)/contents") != nil { return "\(path)/contents" }
        let names = try Directory.names(in: path).sorted(by: precedesBytewise)
        if let current = try read("\(path)/.xccurrentversion") {
            return try self.current(current, of: path, among: names.filter { $0.hasSuffix(".xcdatamodel") })
        }
        let isFamily = path.hasSuffix(".xcdatamodeld")
        let kinds = [".xcdatamodel"] + (isFamily ? [] : [".xcdatamodeld", ".ckdb"])
        let schemas = names.filter { name in kinds.contains { name.hasSuffix($0) } }
        guard let only = schemas.first else {
            throw BackupError(
                .notFound, "holds no Core Data model (.xcdatamodel, .xcdatamodeld) and no .ckdb file", at: path,
                remedy: "name the schema file itself")
        }
        guard schemas.count == 1 else {
            // A folder of one model has no file that says which is the current one.
            let what =
                isFamily
                ? "models, and no .xccurrentversion says which is the current one"
                : "schemas (\(firstNames(schemas, most: 9))), and one is checked at a time"
            throw BackupError(
                .failed, "holds \(schemas.count) \(what)", at: path,
                remedy: "name one: "
                    + schemas.map { TypedCommand.quoted("schema check", ["\(path)/\($0)"]) }.joined(separator: " or "))
        }
        if only.hasSuffix(".xcdatamodel") { return "\(path)/\(only)/contents" }
        return only.hasSuffix(".ckdb") ? "\(path)/\(only)" : try file(of: "\(path)/\(only)", read)
    }

    /// What `.xccurrentversion` says.
    private static func current(_ file: [UInt8], of path: String, among models: [String]) throws -> String {
        guard let name = DataSchema.currentModel(of: file) else {
            throw BackupError(
                .damaged, "does not say which model is the current one", at: "\(path)/.xccurrentversion",
                remedy: "name the model itself")
        }
        guard models.contains(where: { sameBytes($0, name) }) else {
            throw BackupError(
                .notFound, "names the model '\(printable(name))', which is not there", at: "\(path)/.xccurrentversion",
                remedy: "name the model itself")
        }
        return "\(path)/\(name)/contents"
    }
}
