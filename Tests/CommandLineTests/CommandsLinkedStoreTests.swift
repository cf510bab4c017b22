import TestSupport
import Testing

/// A store or a hub that is named by a link is the one that the link leads to, with its files and its locks.
@Suite struct CommandsLinkedStoreTests {
    @Test func aStoreAndAHubBehindLinks_haveTheirOwnFiles() throws {
        let bench = try Workbench()
        try bench.write("pdfs/a.pdf", "file a\n")
        try bench.write("all.bib", "@misc{k, title={T}, author={A}, file={:pdfs/a.pdf:PDF}}\n")
        try bench.shell("mkdir disk && ln -s disk/store.db linked.db && ln -s disk/hub.db hub.db")
        try bench.tool(exit: 0, "store", "init", "--store", "disk/store.db")
        try bench.tool(exit: 0, "hub", "init", "disk/hub.db")
        try bench.tool(exit: 0, "import", "--store", "linked.db", "all.bib", "--attachments", "pdfs")
        for store in ["linked.db", "disk/store.db"] {
            try bench.tool(exit: 0, "store", "check", "--store", store)
            try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", store)
        }
        try bench.tool(exit: 0, "store", "init", "--store", "other.db")
        try bench.tool(exit: 0, "sync", "--hub", "disk/hub.db", "--store", "other.db")
        try bench.tool(exit: 0, "store", "check", "--store", "other.db")
        #expect(try !bench.exists("linked.db.assets") && !bench.exists("hub.db.assets"))
        #expect(try bench.exists("disk/store.db.assets/Attachments/a.pdf"))
    }
}
