import CSystem

public enum Terminal {
    /// The width of the terminal behind a descriptor, or 0 when it is none.
    public static func columns(_ descriptor: Int32) -> Int { Int(csystem_terminal_columns(descriptor)) }
}

public enum Process {
    /// What a program asks of its process once, at its start.
    public static func keepFreedMemory() { csystem_keep_freed_memory() }

    /// Gives back to the system what is free now, wherever it lies.
    static func returnFreedMemory() { csystem_return_freed_memory() }
}
