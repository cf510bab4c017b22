/// What unpacks the parts of a file one by one: frames of zstd, members of gzip, streams of xz.
protocol UnpackingStream: AnyObject {
    /// What such a part is called.
    static var name: String { get }
    /// The bytes that each begins with.
    static var magic: [UInt8] { get }
    /// Whether no part was begun, or the last one has ended.
    var isAtEnd: Bool { get }
    func begin() throws
    /// Takes bytes of the part and gives what comes out of them; it may hold some back until the next call.
    func step(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> UnpackingStep
}

/// What one step did.
struct UnpackingStep {
    var taken: Int
    var produced: Int
    var failure: String?
    /// It asks for more memory than we grant, or for a dictionary.
    var refused = false
}
