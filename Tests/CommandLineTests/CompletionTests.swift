import TestSupport
import Testing

@testable import backup_tool

/// What bash would offer for the last of these words.
private func bashOffers(_ words: String...) throws -> [String] {
    let script =
        BashCompletions(root: sampleRoot).script + """
            COMP_WORDS=("$@")
            COMP_CWORD=$(($# - 1))
            _backup_tool
            if ((${#COMPREPLY[@]})); then printf '%s\\n' "${COMPREPLY[@]}"; fi
            """
    let result = try runProcess(
        ["bash", "--norc", "-s", "--", "backup-tool"] + words, stdin: Array(script.utf8), in: "/usr")
    #expect(result.stderr == "" && result.status == 0)
    return result.stdoutLines
}

@Test func bash_completesCommandsOptionsAndTheirValues() throws {
    #expect(try bashOffers("exp") == ["export"])
    #expect(try bashOffers("") == ["export", "store", "diff"])
    #expect(try bashOffers("-q", "store", "in") == ["init", "info"])
    #expect(try bashOffers("export", "--fo") == ["--force", "--format"])
    #expect(try bashOffers("export", "-F", "") == ["dir", "tar.zst", "zip"])
    #expect(try bashOffers("export", "-o", "store", "--format", "=", "z") == ["zip"])
    #expect(try bashOffers("export", "--format", "=") == ["dir", "tar.zst", "zip"])
    #expect(try bashOffers("export", "--only", "notes,ev") == ["notes,events"])
    #expect(try bashOffers("export", "--level", "") == [])
    #expect(try bashOffers("export", "--", "--fo") == [])
    #expect(try bashOffers("diff", "a", "lib").contains("lib"))
    #expect(try bashOffers("store", "info", "shar") == ["share"])
    #expect(try bashOffers("store", "info", "x", "shar") == [])
    #expect(try bashOffers("export", "-o", "shar") == ["share"])
}

@Test(arguments: Completions.shells)
func script_isGoodForItsShell(shell: String) throws {
    guard hasProgram(shell) else { return }
    for script in [Completions.script(for: shell, root: sampleRoot), try runTool(["completions", shell]).stdout] {
        let result = try runProcess([shell, "-n"] + (shell == "bash" ? ["-s"] : []), stdin: Array(script.utf8))
        #expect(result.stderr == "" && result.stdout == "" && result.status == 0)
    }
}

@Test func fish_completesCommandsOptionsAndTheirValues() throws {
    guard hasProgram("fish") else { return }
    let asked = [
        ("backup-tool exp", ["export"]), ("backup-tool store in", ["info", "init"]),
        ("backup-tool export --fo", ["--force", "--format"]), ("backup-tool export --format z", ["zip"]),
        ("backup-tool export --only notes,ev", ["notes,events"]),
    ]
    for (line, expected) in asked {
        let script = FishCompletions(root: sampleRoot).script + "complete -C '\(line)'\n"
        let result = try runProcess(["fish", "--no-config"], stdin: Array(script.utf8), in: "/usr")
        let words = result.stdoutLines.map { String($0.prefix { $0 != "\t" }) }
        #expect(words.sorted() == expected && result.stderr == "", "\(line)")
    }
}

@Test func zsh_completesCommandsOptionsAndTheirValues() throws {
    guard hasProgram("zsh") else { return }
    // zsh completes only in its line editor, so a zsh in a pseudo terminal is driven by another one.
    let asked = [
        ("backup-tool exp", "backup-tool export "), ("backup-tool store ini", "backup-tool store init "),
        ("backup-tool export --forc", "backup-tool export --force "),
        ("backup-tool export --format z", "backup-tool export --format zip "),
        ("backup-tool export --only notes,ev", "backup-tool export --only notes,events,"),
    ]
    let driver =
        """
        zmodload zsh/zpty
        zpty inner zsh -f -i
        zpty -w inner "PS1=; unsetopt beep; TERM=dumb; autoload -U compinit; compinit -u -D; source $1"
        zpty -w inner "show() { print -r -- \\"<<\\$BUFFER>>\\"; zle kill-whole-line; zle accept-line }; zle -N show"
        zpty -w inner "bindkey '^I' complete-word '^X' show; print REA''DY"
        zpty -r -m inner answer '*READY*'
        for line in \(asked.map { "'\($0.0)'" }.joined(separator: " ")); do
            zpty -w -n inner "$line"$'\\t\\x18'
            zpty -r -m inner answer '*<<*>>*'
            print -r -- "$answer"
        done
        """
    let command = #"f=$(mktemp); printf '%s' "$0" >"$f"; zsh -f -c "$1" zsh "$f"; rm "$f""#
    let script = ZshCompletions(root: sampleRoot).script
    let result = try runProcess(["bash", "-c", command, script, driver], timeout: 30)
    for (line, expected) in asked {
        #expect(result.stdout.contains("<<\(expected)>>"), "\(line): \(result.stdout) \(result.stderr)")
    }
}
