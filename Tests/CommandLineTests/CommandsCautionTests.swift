import Glibc
import TestSupport
import Testing

/// nohup(1) starts a program that ignores SIGHUP, and so it stays.
@Test func aHangUpThatIsIgnoredStaysIgnored() throws {
    let bench = try Workbench()
    func ignored(_ start: String) throws -> Bool {
        // The password command asks what the signals of the tool and of itself are.
        try bench.shell(
            """
            rm -f said
            \(start) $T vault init --vault v-$RANDOM --password-command \
            'grep SigIgn /proc/$PPID/status /proc/self/status > said; echo secret' </dev/null >/dev/null 2>&1
            """)
        let masks = try bench.text("said").split(separator: "\n").compactMap { line in
            line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) }
        }
        #expect(masks.count == 2 && (masks[0] & 1 == 1) == (masks[1] & 1 == 1), "\(masks)")
        return masks.allSatisfy { $0 & 1 == 1 }
    }
    #expect(try ignored("nohup"))
    #expect(try !ignored(""))
}

@Test func aPasswordReachesNoChild() throws {
    let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "canary-1", "RESTIC_PASSWORD": "canary-2", "OTHER": "kept"])
    try bench.tool(
        "vault", "init", "--vault", "v", "--password-command", "env > said; echo secret")
    let said = try bench.text("said")
    #expect(!said.contains("canary") && said.contains("OTHER=kept"), "\(said)")
    // Nor does what is in the command reach a message.
    let failed = try bench.tool(exit: 1, "vault", "check", "--vault", "v", "--password-command", "echo hunter2; exit 3")
    #expect(failed.stderr.contains("the password command ended with 3") && !failed.stderr.contains("hunter2"))
}

@Test func aPasswordCommandThatOthersCanWrite_isNotRun() throws {
    let bench = try Workbench()
    try bench.write("c.toml", "vault = \"v\"\npassword-command = \"touch ran; echo secret\"\n")
    for mode in ["666", "664", "646"] {
        try bench.shell("chmod \(mode) c.toml")
        let result = try bench.tool("vault", "init", "--config", "c.toml")
        #expect(result.status == 1 && result.stderr.contains("chmod go-w"), "\(mode): \(result.stderr)")
        #expect(try bench.tool(exit: 4, "config", "check", "--config", "c.toml").stderr.contains("chmod go-w"))
        #expect(try !bench.exists("ran") && !bench.exists("v"))
    }
    try bench.shell("chmod 644 c.toml")
    try bench.tool(exit: 0, "vault", "init", "--config", "c.toml")
    try bench.shell("chmod 666 c.toml")
    #expect(try bench.tool(exit: 1, "verify", "vault:v", "--config", "c.toml").stderr.contains("chmod go-w"))
}

/// Who can write the folder of a file, or a folder above it, can put another file in its place.
@Test(arguments: ["d/in", "d", "links"])
func aPasswordCommandWhoseFolderOthersCanWrite_isNotRun(folder: String) throws {
    let bench = try Workbench()
    try bench.write("d/in/c.toml", "vault = \"v\"\npassword-command = \"touch ran; echo secret\"\n")
    try bench.shell("chmod 755 . d d/in; chmod 644 d/in/c.toml; mkdir links; ln -s ../d/in/c.toml links/c.toml")
    let config = folder == "links" ? "links/c.toml" : "d/in/c.toml"
    for mode in ["777", "775", "757"] {
        try bench.shell("chmod \(mode) \(folder)")
        let result = try bench.tool(exit: 1, "vault", "init", "--config", config)
        #expect(result.stderr.contains("/\(folder)") && result.stderr.contains("chmod go-w"), "\(result.stderr)")
        #expect(try bench.tool(exit: 4, "config", "check", "--config", config).stderr.contains("its folder"))
        #expect(try !bench.exists("d/in/ran") && !bench.exists("d/in/v"))
    }
    // As in /tmp: others can write there, and cannot replace the files of this user.
    try bench.shell("chmod 1777 \(folder)")
    try bench.tool(exit: 0, "vault", "init", "--config", config)
}

/// A link can be anybody's in a folder with the sticky bit, and a folder on the way can be a link as well.
@Test(.enabled(if: geteuid() == 0), arguments: ["open/c.toml", "open/way/c.toml", "chain.toml"])
func aPasswordCommandByWayOfALinkOfSomebodyElse_isNotRun(config: String) throws {
    let bench = try Workbench()
    try bench.write("own/c.toml", "vault = \"v\"\npassword-command = \"touch ran; echo secret\"\n")
    try bench.shell(
        """
        chmod 755 . own; chmod 644 own/c.toml; mkdir open
        ln -s ../own/c.toml open/c.toml; ln -s ../own open/way; ln -s open/c.toml chain.toml; chmod 1777 open
        """)
    // There is no vault yet.
    let asOwn = try bench.tool(exit: 4, "config", "check", "--config", config)
    #expect(!asOwn.stderr.contains("others") && asOwn.stderr.contains("no vault"), "\(asOwn.stderr)")
    try bench.shell("chown -h nobody open/c.toml open/way")
    let result = try bench.tool(exit: 1, "vault", "init", "--config", config)
    #expect(result.stderr.contains("others can change"), "\(result.stderr)")
    #expect(try bench.shell("find . -name ran").isEmpty)
}
