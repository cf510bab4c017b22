import CSystem

public enum Terminal {
    /// The width of the terminal behind a descriptor, or 0 when it is none.
    public static func columns(_ descriptor: Int32) -> Int { Int(csystem_terminal_columns(descriptor)) }
}
