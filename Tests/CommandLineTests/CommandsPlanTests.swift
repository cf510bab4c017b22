import TestSupport
import Testing

/// What a plan says of each change.
@Suite struct CommandsPlanTests {
    @Test func thePlanListsSettings_withTheirValues() throws {
        let bench = try Workbench()
        try bench.write("a/settings.json", #"{"theme":"dark"}"#)
        try bench.tool(exit: 0, "import", "--store", "A.db", "--create", "a", "--only", "settings")
        try bench.tool(exit: 0, "export", "--store", "A.db", "-o", "backup")
        try bench.write("a/settings.json", #"{"theme":"light"}"#)
        let new = try bench.tool(exit: 0, "import", "--store", "A.db", "a", "--only", "settings", "--dry-run")
        #expect(new.stdout.contains("~ theme\n    value: \"dark\" → \"light\""), "\(new.stdout)")
        try bench.tool(exit: 0, "import", "--store", "A.db", "a", "--only", "settings")
        let same = try bench.tool(exit: 0, "import", "--store", "A.db", "a", "--only", "settings")
        #expect(same.stderr.contains("1 setting unchanged"), "\(same.stderr)")
        let plan = try bench.json(
            exit: 0, "restore", "backup", "--store", "A.db", "--only", "settings", "--mode", "replace", "--dry-run")
        let change = plan["plan"]?.array?.first?["changes"]?.array?.first
        #expect(change?["before"]?.string == "\"light\"" && change?["after"]?.string == "\"dark\"", "\(plan)")
    }

    @Test func aPlanShowsWhereLongValuesDiffer() throws {
        let bench = try Workbench()
        let entry = "@book{K1, title={A title that is long enough for a line}, author={Foo, Bar}, note={ONE}}\n"
        try bench.write("a.bib", entry)
        try bench.tool(exit: 0, "import", "--store", "A.db", "--create", "a.bib")
        try bench.write("a.bib", entry.replacing("ONE", with: "TWO"))
        let plan = try bench.tool(exit: 0, "import", "--store", "A.db", "a.bib", "--dry-run").stdout
        #expect(plan.contains(/rawBibTeX: ….*ONE.* → ….*TWO/), "\(plan)")
    }
}
