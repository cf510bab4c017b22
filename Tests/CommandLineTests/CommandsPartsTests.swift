import TestSupport
import Testing

/// gzip and xz files may be several, one behind the other: `cat` makes such, and tools that pack on several cores.
@Suite struct CommandsPartsTests {
    /// An export of the samples, in parts of some KiB, and how many records it has.
    private func bench(_ format: String) throws -> (bench: Workbench, records: Int64) {
        let bench = try Workbench()
        try bench.importSamples()
        try bench.tool("export", "-o", "whole.tar")
        let pack = format == "tar.gz" ? "gzip" : "xz -T1"
        try bench.shell(
            "split -b 20000 whole.tar part.; for part in part.*; do \(pack) -c $part; done > good.\(format)")
        let records = try bench.json(
            exit: 3, "restore", "whole.tar", "--create", "--store", "whole.db", "--allow-damage")
        return (bench, try #require(records["added"]?.integer))
    }

    @Test(arguments: ["tar.gz", "tar.xz"])
    func anArchiveOfSeveralParts_isReadToItsEnd(_ format: String) throws {
        let (bench, records) = try bench(format)
        let verified = try bench.tool("verify", "whole.tar").status
        try bench.tool(exit: verified, "verify", "good.\(format)")
        // Zeros fill up the last block of a tape.
        try bench.shell("(cat good.\(format); head -c 6000 /dev/zero) > padded")
        try bench.tool(exit: verified, "verify", "padded")
        let restored = try bench.json(exit: 3, "restore", "padded", "--create", "--store", "new.db")
        #expect(restored["added"]?.integer == records)
        #expect(try bench.digest("new.db") == bench.digest("whole.db"))
        try bench.shell("(cat good.\(format); echo more) > trailing")
        #expect(try bench.tool(exit: 4, "verify", "trailing").stderr.contains("belong to nothing"))
    }

    @Test(arguments: ["tar.gz", "tar.xz"])
    func anArchiveOfSeveralParts_givesWhatIsInFrontOfItsDamage(_ format: String) throws {
        let (bench, records) = try bench(format)
        try bench.shell("head -c -30 good.\(format) > cut")
        try bench.tool(exit: 4, "verify", "cut")
        let restored = try bench.json(exit: 3, "restore", "cut", "--create", "--store", "new.db", "--allow-damage")
        #expect(restored["added"]?.integer == records, "\(restored)")
        // The checksum of a part in the middle.
        var bytes = try bench.bytes("good.\(format)")
        let first = try firstEnd(bench, format)
        bytes[first - (format == "tar.gz" ? 6 : 30)] ^= 1
        try bench.write("bad", bytes)
        let told = try bench.tool(exit: 4, "verify", "bad").stderr
        #expect(told.contains(format == "tar.gz" ? "gzip member" : "xz stream"), "\(told)")
    }

    /// Where the first part ends.
    private func firstEnd(_ bench: Workbench, _ format: String) throws -> Int {
        let pack = format == "tar.gz" ? "gzip" : "xz -T1"
        return try #require(Int(bench.shell("\(pack) -c part.aa | wc -c").dropLast()))
    }

    /// What a stranger's archive asks for is granted up to what `xz -9` needs.
    @Test(arguments: [64, 256])
    func anXZFileThatAsksForMuchMemory_isRefused(_ size: Int) throws {
        let (bench, _) = try bench("tar.xz")
        try bench.shell("xz -c --lzma2=preset=0,dict=\(size)MiB whole.tar > large.tar.xz")
        let told = try bench.tool("verify", "large.tar.xz")
        #expect(told.stderr.contains("MiB of memory") == (size > 64), "\(told)")
    }
}
