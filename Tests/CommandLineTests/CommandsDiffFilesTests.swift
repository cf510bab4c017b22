import TestSupport
import Testing

/// `diff` compares the files that are there, not only the store's rows.
struct CommandsDiffFilesTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}, file={:a.pdf:PDF}}\n@misc{b, title={B}, file={:b.pdf:PDF}}\n")
        try bench.write("a.pdf", "%PDF one\n")
        try bench.write("b.pdf", "%PDF two\n")
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "e.tar")
        try bench.tool(exit: 0, "diff", "e.tar", "store.db")
        return bench
    }

    @Test func filesThatAreGoneOrChanged_areDifferences_andNamed() throws {
        let bench = try bench()
        let paths = try bench.shell("cd store.db.assets; find . -name '*.pdf' | cut -c3- | sort")
            .split(separator: "\n").map(String.init)
        #expect(paths.count == 2)
        try bench.write("store.db.assets/\(paths[0])", "%PDF changed since\n")
        try bench.shell("rm 'store.db.assets/\(paths[1])'")
        for (sides, gone) in [(["e.tar", "store.db"], "- attachments"), (["store.db", "e.tar"], "+ attachments")] {
            let result = try bench.tool(["diff"] + sides)
            #expect(result.status == 3, "\(result.stderr)")
            #expect(result.stdout.contains("~ attachments \(paths[0])"), "\(result.stdout)")
            #expect(result.stdout.contains("\(gone) \(paths[1])"), "\(result.stdout)")
            #expect(result.stderr.contains(paths[0]) && result.stderr.contains("\(paths[1]): its file is missing"))
        }
        // An export taken now says the same.
        try bench.tool(exit: 3, "export", "-o", "now.tar")
        #expect(try bench.json(exit: 3, "diff", "e.tar", "now.tar")["differences"]?.integer == 2)
        #expect(try bench.json(exit: 3, "diff", "now.tar", "store.db")["differences"]?.integer == 0)
    }

    @Test func aFolderOfAttachmentsThatIsGone_isNoEquality() throws {
        let bench = try bench()
        try bench.shell("rm -r store.db.assets")
        let result = try bench.tool(exit: 3, "diff", "e.tar", "store.db")
        #expect(!result.stderr.contains("No difference"), "\(result.stderr)")
        // Only its time is another: it is read, and equal.
        try bench.tool("restore", "e.tar")
        try bench.shell("find store.db.assets -name '*.pdf' -exec touch {} +")
        try bench.tool(exit: 0, "diff", "e.tar", "store.db")
    }

    /// I784. A changed file behind a manifest is found by whoever reads it: 'verify' does, and so does a comparison with
    /// something else.
    @Test func aBackupWithTheDigestOfTheOtherSide_isEqual_unread() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "folder")
        try bench.shell("printf '%%PDF ONE\\n' > folder/Attachments/a.pdf")
        for sides in [["folder", "store.db"], ["store.db", "folder"], ["folder", "e.tar"]] {
            #expect(try bench.json(exit: 0, "diff", sides[0], sides[1])["differences"]?.integer == 0, "\(sides)")
        }
        try bench.tool(exit: 4, "verify", "folder")
        try bench.shell("printf more >> folder/Attachments/a.pdf")
        try bench.tool(exit: 4, "diff", "folder", "store.db")
        try bench.shell("rm folder/Attachments/a.pdf")
        try bench.tool(exit: 4, "diff", "folder", "store.db")
        try bench.tool(exit: 0, "restore", "e.tar", "--create", "--store", "other.db", "--match", "citeKey=a")
        try bench.tool(exit: 4, "diff", "folder", "other.db")
        #expect(try bench.json(exit: 0, "diff", "e.tar", "other.db")["differences"]?.integer ?? 0 > 1)
    }

    /// Equal digests, no difference; and two ways to write a letter are two values.
    @Test func settings_areComparedByWhatTheySay() throws {
        let bench = try Workbench()
        for (name, text) in [
            ("a", #"{"x":{"a":1,"z":"é"},"n":1.50}"#), ("b", #"{"n":1.50,"x":{"z":"\u00e9","a":1}}"#),
            ("c", #"{"x":{"a":1,"z":"e\u0301"},"n":1.50}"#),
        ] {
            try bench.write("\(name)/settings.json", text)
            try bench.tool(exit: 0, "import", "--create", "--store", "\(name).db", name, "--only", "settings")
            try bench.tool(exit: 0, "export", "--store", "\(name).db", "-o", "\(name).tar")
        }
        #expect(try bench.digest("a.db") == bench.digest("b.db"))
        for sides in [["a.db", "b.db"], ["a.tar", "b.db"], ["b.db", "a.tar"]] {
            #expect(try bench.json(exit: 0, "diff", sides[0], sides[1])["differences"]?.integer == 0, "\(sides)")
        }
        #expect(try bench.digest("a.db") != bench.digest("c.db"))
        #expect(try bench.json(exit: 0, "diff", "a.db", "c.db")["differences"]?.integer == 1)
    }

    @Test func whatIsNoBackup_isRefusedAsByRestore() throws {
        let bench = try bench()
        for sides in [["a.bib", "store.db"], ["store.db", "a.bib"]] {
            let told = try bench.tool(exit: 64, "diff", sides[0], sides[1]).stderr
            #expect(told == (try bench.tool(exit: 64, "restore", "a.bib").stderr), "\(sides)")
        }
    }
}
