import CSystem

/// The memory of this process.
public enum ProcessMemory {
    /// What a program asks of its process once, at its start.
    public static func keepFreedMemory() { csystem_keep_freed_memory() }

    /// Gives back to the system what is free now, wherever it lies.
    static func returnFreedMemory() { csystem_return_freed_memory() }
}
