/// What a backup would have gone by, and could not.
struct UnreadBlob: Error {
    let handle: BlobHandle
    let error: BackupError

    static func catching<Value>(_ handle: BlobHandle, _ body: () throws -> Value) throws -> Result<Value, UnreadBlob> {
        do { return .success(try body()) } catch let error as BackupError where error.isVerdict {
            return .failure(UnreadBlob(handle: handle, error: error))
        }
    }
}
