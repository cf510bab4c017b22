import CSystem
import Glibc

/// Which file system a path lies on. https://man7.org/linux/man-pages/man2/statfs.2.html
enum FileSystem {
    /// Those whose locks cannot be relied on between machines, or that cannot tell what lies behind them, by their magic
    /// numbers (linux/magic.h).
    private static let network: [Int64: String] = [
        0x6969: "NFS", 0x517B: "SMB", 0xFF53_4D42: "SMB", 0xFE53_4D42: "SMB", 0x6573_5546: "FUSE", 0x0102_1997: "9P",
        0x5346_414F: "AFS", 0x6B41_4653: "AFS", 0x7375_7245: "Coda", 0x564C: "NCP", 0x00C3_6400: "Ceph",
        0x0BD0_0BD0: "Lustre", 0x786F_4256: "VirtualBox shared folder", 0xBACB_ACBC: "VMware shared folder",
    ]

    static func networkName(ofType type: Int64) -> String? { network[type] }

    /// The name of the network file system that a path lies on; nil where it lies on this machine's disks.
    static func networkName(of path: String) throws -> String? {
        let type = csystem_filesystem_type(path)
        guard type >= 0 else { throw BackupError.fromErrno("cannot be examined", at: path) }
        return networkName(ofType: type)
    }
}
