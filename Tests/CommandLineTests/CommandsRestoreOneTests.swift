import TestSupport
import Testing

/// A restore of a few records reads and judges their files, and no others.
@Suite struct CommandsRestoreOneTests {
    /// Two publications with a file each. The files fill more than a frame of an archive, and do not compress.
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{one, title={One}, file={one.bin}}\n@misc{two, title={Two}, file={two.bin}}\n")
        try bench.shell("head -c 6000000 /dev/urandom > one.bin; head -c 12000000 /dev/urandom > two.bin")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        return bench
    }

    /// Changes a byte in the middle of a file, wherever a backup keeps its bytes.
    private func damage(_ name: String, in backup: String, _ bench: Workbench) throws {
        try bench.write(
            "damage.py",
            """
            import os, sys
            piece = open(sys.argv[1], "rb").read()[4000000:4000064]
            places = [os.path.join(a, n) for a, _, names in os.walk(sys.argv[2]) for n in names] or [sys.argv[2]]
            for place in places:
                with open(place, "r+b") as file:
                    at = file.read().find(piece)
                    if at >= 0:
                        file.seek(at)
                        file.write(bytes([piece[0] ^ 1]))
                        sys.exit(0)
            sys.exit("nowhere")
            """)
        try bench.shell("python3 damage.py \(name).bin \(backup)")
    }

    @Test(arguments: ["folder", "a.zip", "a.tar.zst", "a.tar"])
    func whatIsNotAskedFor_isNotRead(_ backup: String) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", backup)
        try damage("two", in: backup, bench)
        try bench.tool(exit: 4, "restore", backup, "--create", "--store", "all.db")
        let one = ["restore", backup, "--create", "--store", "one.db", "--match", "citeKey=one"]
        // A tar archive has no index: all of it has to be read, but not judged.
        let plan = try bench.tool(one + ["--dry-run"])
        let told = try bench.tool(one)
        #expect(told.status == 0 && plan.status == 0, "\(told)")
        #expect(plan.stderr.contains("1 attachment added"), "\(plan)")
        try bench.shell("cmp one.bin one.db.assets/Attachments/one.bin && ! ls one.db.assets/Attachments/two.bin")
        try bench.tool(exit: 0, "store", "check", "--store", "one.db")
        let two = try bench.tool(
            exit: 4, "restore", backup, "--create", "--store", "two.db", "--match", "citeKey=two")
        #expect(two.stderr.contains("is damaged"), "\(two.stderr)")
        #expect(try !bench.exists("two.db"))
    }
}
