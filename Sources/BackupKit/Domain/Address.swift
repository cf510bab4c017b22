/// Addresses as people may see them: messages and reports end in logs and mails.
public enum Address {
    /// Without a password, and without what stands behind a question mark.
    public static func withoutPassword(_ address: String) -> String {
        guard let slashes = address.firstRange(of: "://") else { return address }
        let question = address[slashes.upperBound...].firstIndex(of: "?")
        var rest = address[slashes.upperBound..<(question ?? address.endIndex)]
        // A password may hold what should be escaped in it.
        if let at = rest.lastIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") {
            rest = rest[...colon] + "…" + rest[at...]
        }
        return address[..<slashes.upperBound] + rest + (question == nil ? "" : "?…")
    }

    /// The host alone: addresses of watchdogs carry their keys in the path.
    public static func host(_ address: String) -> String {
        let parts = address.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count > 2 else { return "the address" }
        return "\(parts[0])//\(parts[2].split(separator: "@").last ?? "")/…"
    }
}
