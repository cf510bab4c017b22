struct ZshCompletions {
    let root: Command

    var script: String {
        let functions = root.everyCommand().map { function($0.path, $0.command) }
        return """
            #compdef backup-tool
            # zsh completion for backup-tool, written by 'backup-tool completions zsh'.

            \(functions.joined(separator: "\n\n"))

            # Sourced, this only defines the completion; autoloaded from $fpath, it completes at once.
            if [[ $funcstack[1] == _backup-tool ]]; then
                _backup-tool "$@"
            else
                compdef _backup-tool backup-tool
            fi

            """
    }

    private func function(_ path: [String], _ command: Command) -> String {
        let name = functionName(path)
        var specifications = command.completedOptions(path: path).map(specification)
        guard !command.subcommands.isEmpty else {
            specifications += command.arguments.map(specification)
            return """
                \(name)() {
                    _arguments -s -S \\
                \(specifications.map { "        " + quoted($0) }.joined(separator: " \\\n"))
                }
                """
        }
        specifications += ["1: :->command", "*:: :->rest"]
        let names = command.subcommands.map { "            " + quoted("\(escape($0.name)):\($0.summary)") }
        let cases = command.subcommands.map { "                \($0.name)) \(functionName(path + [$0.name])) ;;" }
        return """
            \(name)() {
                local curcontext=$curcontext state line
                local -a commands
                _arguments -C -s -S \\
            \(specifications.map { "        " + quoted($0) }.joined(separator: " \\\n"))
                case $state in
                    command)
                        commands=(
            \(names.joined(separator: "\n"))
                        )
                        _describe command commands
                        ;;
                    rest)
                        case $line[1] in
            \(cases.joined(separator: "\n"))
                        esac
                        ;;
                esac
            }
            """
    }

    private func functionName(_ path: [String]) -> String {
        path.isEmpty ? "_backup-tool" : "_backup-tool_" + path.joined(separator: "_")
    }

    /// "(-o --output)"{-o+,--output=}"[help]:PATH:_files", with the alternatives written out by the shell.
    private func specification(_ option: Option) -> String {
        let value = option.placeholder.map { ":\(escape($0)):\(action(option.values))" } ?? ""
        let help = "[" + escape(option.help) + "]"
        let many = option.isRepeated ? "*" : ""
        let long = "--\(option.name)" + (option.takesValue ? "=" : "")
        guard let short = option.short else { return many + long + help + value }
        let both = option.isRepeated ? "*" : "(-\(short) --\(option.name))"
        // The brace must stay outside of quotes for the shell to expand it; `quoted` sees to that.
        return both + "\u{0}{-\(short)\(option.takesValue ? "+" : ""),\(long)}\u{0}" + help + value
    }

    private func specification(_ argument: Argument) -> String {
        let start = argument.isMany ? "*" : ""
        let optional = argument.isRequired || argument.isMany ? ":" : "::"
        return "\(start)\(optional)\(escape(argument.name)):\(action(argument.values))"
    }

    private func action(_ values: Values) -> String {
        switch values {
        case .text, .anyText, .tags: " "
        case .file, .backup: "_files"
        case .directory, .vault: "_files -/"
        case .command: "(\(Command.commandNames(root).joined(separator: " ")))"
        case .oneOf(let words): "(\(words.joined(separator: " ")))"
        case .listOf(let words): "_values -s , kind \(words.joined(separator: " "))"
        }
    }

    /// Backslash, colon and bracket mean something within a specification.
    private func escape(_ text: String) -> String {
        text.map { "\\:[]".contains($0) ? "\\\($0)" : String($0) }.joined()
    }

    private func quoted(_ text: String) -> String {
        text.split(separator: "\u{0}", omittingEmptySubsequences: false).map { part in
            part.hasPrefix("{") ? String(part) : Completions.quoted(String(part), quote: "'\\''")
        }.joined()
    }
}

struct FishCompletions {
    let root: Command

    var script: String {
        let all = root.everyCommand()
        let paths = all.map { key($0.path) }.filter { !$0.isEmpty }.joined(separator: " ")
        return """
            # fish completion for backup-tool, written by 'backup-tool completions fish'.

            # True when the commands named so far are exactly these: "/store/init".
            function __backup_tool_at --argument-names wanted
                set -l at ''
                for word in (commandline -opc)[2..-1]
                    if contains -- "$at/$word" \(paths)
                        set at "$at/$word"
                    end
                end
                test "$at" = "$wanted"
            end

            complete -c backup-tool -f
            \(all.flatMap { lines($0.path, $0.command) }.joined(separator: "\n"))

            """
    }

    private func key(_ path: [String]) -> String { path.map { "/" + $0 }.joined() }

    private func lines(_ path: [String], _ command: Command) -> [String] {
        let start = "complete -c backup-tool -n '__backup_tool_at \(path.isEmpty ? "\"\"" : key(path))'"
        let commands = command.subcommands.map { "\(start) -a \($0.name) -d \(quoted($0.summary))" }
        let options = command.completedOptions(path: path).map { option in
            let short = option.short.map { " -s \($0)" } ?? ""
            let value = option.takesValue ? " -r" + action(option.values) : ""
            return "\(start)\(short) -l \(option.name)\(value) -d \(quoted(option.help))"
        }
        let arguments = command.arguments.map { start + action($0.values) }.filter { $0 != start }
        return commands + options + arguments
    }

    private func action(_ values: Values) -> String {
        switch values {
        case .text, .anyText, .tags: ""
        case .file, .backup: " -F"
        case .directory, .vault: " -a '(__fish_complete_directories)'"
        case .command: " -a \(quoted(Command.commandNames(root).joined(separator: " ")))"
        case .oneOf(let words): " -a \(quoted(words.joined(separator: " ")))"
        case .listOf(let words): " -a '(__fish_append , \(words.joined(separator: " ")))'"
        }
    }

    private func quoted(_ text: String) -> String {
        let escaped = text.split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\\\")
        return Completions.quoted(escaped, quote: "\\'")
    }
}
