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

    private static let carriers = ["folder", "a.zip", "a.tar.zst", "a.tar", "a.tar.gz"]

    /// What happens to a file: it is gone, it is shorter, and there is one more. `views` are files that `records.jsonl`
    /// stands for.
    private static let accidents = [
        "rm two", "printf B > two", "cp two more.bin", "printf x >> library.bib", "rm library.bib",
        "echo '{' > events/2026-01-01.jsonl", "echo more > more.txt", "rm README.txt",
    ]

    /// A backup in which something happened to a file, packed by other programs.
    private func pack(_ carrier: String, after accident: String, to name: String, _ bench: Workbench) throws {
        let script = accident.replacing("two", with: "Attachments/two.bin").replacing(
            "more.bin", with: "Attachments/m.bin")
        try bench.shell("rm -rf f \(name); cp -r folder f; mkdir -p f/events; cd f; \(script); rmdir events || true")
        switch carrier {
        case "folder": try bench.shell("mv f \(name)")
        case "a.zip": try bench.shell("cd f; zip -qr ../\(name) .")
        default: try bench.shell("cd f; tar -caf ../\(name) *")
        }
    }

    @Test(arguments: carriers)
    func whatIsNotAskedFor_stopsNothing_whateverHappenedToIt(_ carrier: String) throws {
        let bench = try bench()
        try bench.shell("head -c 5000 /dev/urandom > two.bin; head -c 4000 /dev/urandom > one.bin")
        try bench.tool(exit: 0, "import", "--create", "--store", "small.db", "a.bib")
        try bench.tool(exit: 0, "export", "--store", "small.db", "-o", "folder")
        for (number, accident) in Self.accidents.enumerated() {
            let name = carrier == "folder" ? "f\(number)" : "\(number)\(carrier)"
            try pack(carrier, after: accident, to: name, bench)
            try bench.tool(exit: 4, "restore", name, "--create", "--store", "all.db")
            let one = ["restore", name, "--create", "--store", "one\(number).db", "--match", "citeKey=one"]
            for words in [one + ["--dry-run"], one] {
                let told = try bench.tool(words)
                #expect(told.status == 0, "\(accident): \(told)")
            }
            try bench.shell("cmp one.bin one\(number).db.assets/Attachments/one.bin")
            try bench.tool(exit: 0, "store", "check", "--store", "one\(number).db")
            guard accident.contains("two"), !accident.hasPrefix("cp") else { continue }
            // What is asked for is missed.
            try bench.tool(exit: 4, "restore", name, "--create", "--store", "two.db", "--match", "citeKey=two")
            #expect(try !bench.exists("two.db"))
        }
        // A file that the manifest does not list is judged by whoever asks for it.
        try pack(carrier, after: Self.accidents[2], to: carrier == "folder" ? "m" : "m\(carrier)", bench)
        try bench.tool(
            exit: 4, "restore", carrier == "folder" ? "m" : "m\(carrier)", "--create", "--store", "m.db", "--match",
            "m.bin")
    }

    /// What an archive is cut behind is not there: whether it was asked for or not, nothing vouches for the rest.
    @Test(arguments: ["a.zip", "a.tar.zst", "a.tar", "a.tar.gz"])
    func aCutArchive_isAnError(_ backup: String) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", backup)
        try bench.shell("truncate -s -7000000 \(backup)")
        try bench.tool(exit: 4, "restore", backup, "--create", "--store", "two.db", "--match", "citeKey=two")
        #expect(try !bench.exists("two.db"))
    }
}
