import TestSupport
import Testing

/// Files that nobody can take, among others: they are named, and the others are taken.
private let oddFiles = """
    mkdir -p $D/inner && printf a > $D/a.pdf && printf b > $D/inner/b.pdf
    ln -s /etc/passwd $D/link.pdf; ln -s nowhere $D/dangling.pdf; mkfifo $D/pipe.pdf; mknod $D/device.pdf c 1 3 || :
    printf x > "$D/$(printf 'caf\\351.pdf')"; printf x > "$D/$(printf 'line\\nbreak.pdf')"
    mkdir "$D/$(printf 'dir\\377')" && printf x > "$D/$(printf 'dir\\377/inside.pdf')"
    """

@Test func attachments_thatCannotBeTaken_areNamed_andTheOthersAreTaken() throws {
    let bench = try Workbench()
    try bench.shell("D=files; \(oddFiles)")
    try bench.write("a.bib", "@article{a, title={A}}\n@article{b, title={B}}\n")
    let result = try bench.tool(exit: 3, "import", "a.bib", "--attachments", "files")
    #expect(try bench.files("store.db.assets").sorted() == ["Attachments/a.pdf", "Attachments/inner/b.pdf"])
    for (name, reason) in [
        ("link.pdf", "a symbolic link"), ("dangling.pdf", "a symbolic link"), ("pipe.pdf", "a device or a pipe"),
        ("caf\\xe9.pdf", "its name is not UTF-8"), ("dir\\xff", "its name is not UTF-8"),
        ("line\\u{a}break.pdf", "it holds a control character"),
    ] {
        let line = result.stderr.split(separator: "\n").first { $0.contains("files/\(name): was left out") }
        #expect(line?.contains(reason) == true, "\(name): \(result.stderr)")
    }
    #expect(result.stderr.utf8.allSatisfy { $0 == 0x0A || $0 >= 0x20 })
    // A dry run says the same, and a second run takes nothing new.
    try bench.tool(exit: 3, "import", "--dry-run", "a.bib", "--attachments", "files")
    #expect(try bench.json(exit: 3, "import", "a.bib", "--attachments", "files")["attachmentsAdded"]?.integer ?? 0 == 0)
}

@Test func aFileThatCannotBeRead_costsOnlyItself() throws {
    let bench = try Workbench()
    try bench.shell("mkdir files inner && printf a > files/a.pdf && printf b > files/b.pdf")
    try bench.write("inner/good.bib", "@article{a, title={A}}\n")
    try bench.write("inner/bad.bib", "@article{b, title={B}}\n")
    let tool = try productsDirectory() + "/backup-tool"
    // Root may read everything, so the kernel is made to say no.
    func run(_ unreadable: String, _ words: String...) throws -> ProcessResult {
        try runProcess(
            ["strace", "-f", "-qq", "-o", "trace", "-P", unreadable, "-e", "inject=openat,openat2:error=EACCES", tool]
                + words,
            environment: testEnvironment(), in: bench.folder)
    }
    let result = try run(
        "b.pdf", "import", "--create", "--store", "store.db", "inner/good.bib", "--attachments", "files")
    #expect(result.status == 3 && result.stderr.contains("files/b.pdf: was left out"), "\(result.stderr)")
    #expect(try bench.files("store.db.assets") == ["Attachments/a.pdf"])
    let folder = try run("inner/bad.bib", "import", "--create", "--store", "other.db", "inner")
    #expect(folder.status == 3 && folder.stderr.contains("inner/bad.bib: was left out"), "\(folder.stderr)")
    #expect(try bench.json(exit: 0, "store", "info", "--store", "other.db")["publications"]?.integer ?? 1 == 1)
}

@Test(arguments: ["plain", "imbib"])
func foldersGivenToImport_costOnlyWhatIsOdd(_ kind: String) throws {
    let bench = try Workbench()
    if kind == "imbib" {
        try bench.write("library.bib", "@article{a, title={A}}\n")
        try bench.tool(exit: 0, "import", "--create", "--store", "from.db", "library.bib")
        try bench.tool(exit: 0, "export", "--store", "from.db", "--format", "imbib", "-o", "folder")
    } else {
        try bench.write("folder/library.bib", "@article{a, title={A}}\n")
    }
    try bench.shell("D=folder/Attachments; mkdir -p $D; \(oddFiles)")
    let result = try bench.tool(exit: 3, "import", "folder")
    let count = try bench.shell("sqlite3 store.db \"SELECT count(*) FROM record WHERE type = 'Publication'\"")
    #expect(count == "1\n", "\(result.stderr)")
    #expect(result.stderr.contains("caf\\xe9.pdf"), "\(result.stderr)")
    if kind == "imbib" { #expect(try bench.exists("store.db.assets/Attachments/a.pdf")) }
}

@Suite struct PipeTests {
    @Test func aPipeIsNoConfigurationPasswordOrSchema() throws {
        let bench = try Workbench()
        try bench.shell(
            "mkfifo pipe && $T store init -q && printf pw > pw && chmod 600 pw && $T vault init -q --vault v --password-file pw"
        )
        for words in [
            ["config", "check", "--config", "pipe"], ["schema", "check", "pipe"], ["import", "pipe"],
            ["vault", "snapshots", "--vault", "v", "--password-file", "pipe"], ["verify", "pipe"],
        ] {
            let result = try bench.shell(
                "r=0; timeout 20 $T \(words.joined(separator: " ")) 2> said || r=$?; cat said; echo $r")
            #expect(["1", "4", "64"].contains(String(result.split(separator: "\n").last ?? "")), "\(words): \(result)")
            #expect(result.contains("pipe"), "\(words): \(result)")
        }
    }

    @Test func aPasswordFromAnOpenFileIsRead() throws {
        let bench = try Workbench()
        try bench.shell(
            """
            printf pw > pw; chmod 600 pw; $T vault init -q --vault v --password-file pw
            $T vault snapshots --vault v --password-file <(sleep 0.5; echo pw)
            $T vault snapshots --vault v --password-file /dev/fd/3 3< <(echo pw)
            $T vault snapshots --vault v --password-file /dev/fd/3 3< pw
            echo pw | $T vault snapshots --vault v --password-file /dev/stdin
            """)
    }

    @Test func aPipeThatStaysSilentIsLeftOnRequest() throws {
        let bench = try Workbench()
        let status = try bench.shell(
            """
            printf pw > pw; chmod 600 pw; $T vault init -q --vault v --password-file pw
            mkfifo silent; sleep 60 > silent & holder=$!
            exec 3< silent
            $T vault snapshots --vault v --password-file /dev/fd/3 2> said & tool=$!
            sleep 1; kill -TERM $tool; r=0; wait $tool || r=$?; kill $holder; echo $r
            """)
        #expect(status.hasSuffix("143\n"))
    }
}

/// 27 macros, each twice the one before: 700 bytes that would say 134 million.
@Test func macrosThatDouble_endAtALimit_andTheTextStays() throws {
    let bench = try Workbench()
    var text = "@string{m0 = {x}}\n"
    for number in 1...27 { text += "@string{m\(number) = m\(number - 1) # m\(number - 1)}\n" }
    text += "@article{bomb, title = m27 # { and more}, year = 2020}\n@article{b, journal = m3}\n"
    try bench.write("bomb.bib", text)
    let said = try bench.shell(
        "r=0; (ulimit -v 600000; exec $T import bomb.bib) 2>&1 || r=$?; echo $r; $T export -q -o out; cat out/library.bib"
    )
    #expect(said.contains("\n3\n") && said.contains("bomb.bib:") && said.contains("16384 bytes"))
    #expect(said.contains("title = m27 # { and more}") && said.contains("@string{m27 = m26 # m26}"))
    let records = try bench.shell("sqlite3 store.db \"SELECT fields FROM record WHERE fields LIKE '%journal%'\"")
    #expect(records.contains("xxxxxxxx"))
}

/// All is in the store; only the folder that the archive was unpacked into stays. The next command that writes removes it.
@Test(arguments: [["restore"], ["restore", "--mode", "replace"], ["import"]])
func aFolderOfItsOwnThatCannotBeRemoved_failsNoCommand(words: [String]) throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{k1, title={One}, file={k1.txt}}\n")
    try bench.write("b.bib", "@misc{k2, title={Two}}\n")
    try bench.write("k1.txt", "text\n")
    try bench.tool(exit: 0, "import", "--create", "--store", "from.db", "a.bib")
    try bench.tool(exit: 0, "export", "--store", "from.db", "-o", "a.zip")
    try bench.tool(exit: 0, "import", "--create", "b.bib")
    let command = (words + ["a.zip"]).joined(separator: " ")
    try bench.shell("strace -f -qq -o trace -e trace=rmdir -e inject=rmdir:error=EIO $T \(command)")
    #expect(try bench.text("trace").contains(".incoming"))
    #expect(try bench.text("store.db.assets/Attachments/k1.txt") == "text\n")
    try bench.tool(exit: 0, "store", "check")
    try bench.tool(exit: 0, "import", "b.bib")
    #expect(try !bench.shell("ls -a store.db.assets").contains(".incoming"))
}
