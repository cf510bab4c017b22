/// Finds out what a schema lies in: a JSON file, CloudKit's own language, a Core Data model, or an Xcode folder of models.
public enum SchemaFile {
    /// `read` gives the bytes of a small file, or nil where there is none.
    public static func read(
        _ path: String, _ findings: inout [Finding], read: (String) throws -> [UInt8]?
    ) throws -> DataSchema {
        let file = try self.file(of: path, read)
        guard let bytes = try read(file) else {
            throw BackupError(
                .notFound, sameBytes(file, path) ? "there is no such file" : "holds no 'contents' of a Core Data model",
                at: path)
        }
        guard bytes.count <= TOML.maximumBytes else {
            throw BackupError(.refused, "is larger than any schema should be", at: file)
        }
        do {
            return try bytes.withUnsafeBytes {
                if DataSchema.looksLikeCoreData($0) { return try DataSchema(coreData: $0, &findings) }
                if file.hasSuffix(".ckdb") || DataSchema.looksLikeCloudKit($0) {
                    return try DataSchema(cloudKit: $0, &findings)
                }
                return try DataSchema(parsing: $0, &findings)
            }
        } catch let error as BackupError {
            throw BackupError(error.code, error.message, at: file, remedy: error.remedy)
        }
    }

    private static func file(of path: String, _ read: (String) throws -> [UInt8]?) throws -> String {
        guard try FileStatus.ofTarget(path)?.isDirectory == true else { return path }
        if try FileStatus.ofTarget("\(path)/contents") != nil { return "\(path)/contents" }
        let models = try Directory.names(in: path).filter { $0.hasSuffix(".xcdatamodel") }
        // A folder of one model has no file that says which is the current one.
        guard let current = try read("\(path)/.xccurrentversion") else {
            if models.count == 1 { return "\(path)/\(models[0])/contents" }
            if models.isEmpty { return "\(path)/contents" }
            throw BackupError(
                .failed, "holds \(models.count) models, and no .xccurrentversion says which is the current one",
                at: path,
                remedy: "name the model: \(path)/\(models[0])")
        }
        guard let name = DataSchema.currentModel(of: current) else {
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
