import TestSupport
import Testing

/// A command that finds too little memory says so, and leaves nothing behind.
@Suite struct LittleMemoryTests {
    @Test(arguments: ["out.tar.zst", "out", "out.zip"]) func anExportWithTooLittleMemory_saysSo(name: String) throws {
        let bench = try Workbench()
        try bench.write("one.bib", "@misc{one, title={One}, year={1999}}\n")
        try bench.tool(exit: 0, "import", "--create", "one.bib")
        func limited(_ kilobytes: Int, _ command: String) throws -> String {
            try bench.shell("r=0; (ulimit -v \(kilobytes); exec $T \(command)) > said 2>&1 || r=$?; echo $r; cat said")
        }
        // The libraries alone take much more than what is used.
        var least = 40_000
        while try !limited(least, "store info").hasPrefix("0\n"), least < 4_000_000 { least += 10_000 }
        var isRefused = false
        for limit in stride(from: least, to: least + 240_000, by: 10_000) {
            let said = try limited(limit, "export --force -o \(name)")
            #expect(said.hasPrefix("0\n") || said.hasPrefix("75\n"), "\(limit): \(said)")
            isRefused = isRefused || said.hasPrefix("75\n")
        }
        #expect(isRefused)
        try bench.tool(exit: 0, "verify", name)
        #expect(try bench.shell("ls -A").split(separator: "\n").filter { $0.contains(".tmp-") } == [])
    }
}
