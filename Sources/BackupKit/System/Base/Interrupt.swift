import CSystem

/// The request to stop that a signal left behind.
public enum Interrupt {
    /// Installs the handlers; called once, by the command line.
    public static func install() { csystem_catch_interrupts() }

    /// The number of the signal that asked us to stop, or nil.
    public static var signal: Int32? {
        let number = csystem_caught_signal()
        return number == 0 ? nil : number
    }

    /// Throws when somebody pressed Control-C; long loops call it between pieces of work.
    @inline(__always)
    public static func check() throws {
        if csystem_caught_signal() != 0 { throw BackupError(.interrupted, "interrupted") }
    }
}
