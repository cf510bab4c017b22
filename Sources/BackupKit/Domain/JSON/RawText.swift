/// What an entry, or a part between entries, is as somebody wrote it: one value that has two names. Of two texts the older one
/// goes; a record that an earlier version left with both says the newer one.
enum RawText {
    static let plain = "rawBibTeX"
    /// The name where its bytes are not UTF-8.
    static let base64 = "rawBase64"

    static func holds(_ name: String) -> Bool { name == plain || name == base64 }

    /// The name of the older one where fields hold two texts. `kept` counts where both have one time.
    static func older(in fields: [Field], atEqualTimes kept: String = plain, time: (String) -> Timestamp) -> String? {
        guard Set(fields.map(\.name).filter(holds)).count > 1 else { return nil }
        let (plainTime, otherTime) = (time(plain), time(base64))
        if plainTime == otherTime { return kept == plain ? base64 : plain }
        return plainTime > otherTime ? base64 : plain
    }
}
