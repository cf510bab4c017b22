/// Completion scripts, made from the declarations. They are static: completing starts no process.
enum Completions {
    static let shells = ["bash", "zsh", "fish"]

    static func script(for shell: String, root: Command) -> String {
        switch shell {
        case "zsh": ZshCompletions(root: root).script
        case "fish": FishCompletions(root: root).script
        default: BashCompletions(root: root).script
        }
    }

    /// In single quotes, as all three shells understand them, for a text without a single quote; those are put in
    /// as the shell at hand wants them.
    static func quoted(_ text: String, quote: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: quote) + "'"
    }
}

extension Command {
    /// What may be given here: own options, and those of every command.
    func completedOptions(path: [String]) -> [Option] {
        options + Option.everywhere + (path.isEmpty ? [.version] : [])
    }

    /// The names of the commands that a `.command` argument may start with.
    static func commandNames(_ root: Command) -> [String] { root.subcommands.map(\.name) }
}

extension Option {
    /// "--output" and "-o".
    var words: [String] { ["--" + name] + (short.map { ["-\($0)"] } ?? []) }
}

struct BashCompletions {
    let root: Command

    var script: String {
        let all = root.everyCommand()
        return """
            # bash completion for backup-tool, written by 'backup-tool completions bash'.

            _backup_tool() {
                local cur=${COMP_WORDS[COMP_CWORD]} prev= path= valued= words= i word count=0 ended=
                if ((COMP_CWORD > 0)); then prev=${COMP_WORDS[COMP_CWORD - 1]}; fi
                # bash takes "--name=value" for three words.
                if [[ $cur == = ]]; then
                    cur=
                elif [[ $prev == = ]] && ((COMP_CWORD > 1)); then
                    prev=${COMP_WORDS[COMP_CWORD - 2]}
                fi
                COMPREPLY=()

                # Which command is it, and how many arguments has it already?
                valued=\(valued(root, []))
                for ((i = 1; i < COMP_CWORD; i++)); do
                    word=${COMP_WORDS[i]}
                    if [[ -z $ended && $word == -- ]]; then
                        ended=1
                    elif [[ -z $ended && $word == --* && ${COMP_WORDS[i + 1]} == = ]]; then
                        i=$((i + 2))
                    elif [[ -z $ended && $word == -?* ]]; then
                        if [[ $valued == *" $word "* ]]; then i=$((i + 1)); fi
                    else
                        case "$path/$word" in
            \(lines(all.filter { !$0.path.isEmpty }, indent: 16) { path, command in
                "\(key(path))) path=\(key(path)) valued=\(valued(command, path)) ;;"
            })
                            *) count=$((count + 1)) ;;
                        esac
                    fi
                done

                if [[ -z $ended ]]; then
                    case "$path:$prev" in
            \(optionValues(all))
                    esac
                    if [[ $cur == -* ]]; then
                        case "$path" in
            \(lines(all, indent: 16) { path, command in
                "'\(key(path))') words='\(command.completedOptions(path: path).flatMap(\.words).joined(separator: " "))' ;;"
            })
                        esac
                        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
                        return
                    fi
                fi
                case "$path:$count" in
            \(argumentValues(all))
                esac
            }

            _backup_tool_files() {
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
            }

            _backup_tool_words() {
                mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
            }

            # Words separated by commas: the last one is completed, the others stand before it.
            _backup_tool_list() {
                local before=
                if [[ $2 == *,* ]]; then before=${2%,*},; fi
                compopt -o nospace 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${2##*,}")
            }

            complete -F _backup_tool backup-tool

            """
    }

    /// "/store/init"; the tool itself is "".
    private func key(_ path: [String]) -> String { path.map { "/" + $0 }.joined() }

    private func valued(_ command: Command, _ path: [String]) -> String {
        "' " + command.completedOptions(path: path).filter(\.takesValue).flatMap(\.words).joined(separator: " ") + " '"
    }

    private func lines(
        _ commands: [(path: [String], command: Command)], indent: Int, _ line: ([String], Command) -> String
    ) -> String {
        let space = String(repeating: " ", count: indent)
        return commands.map { space + line($0.path, $0.command) }.joined(separator: "\n")
    }

    private func optionValues(_ commands: [(path: [String], command: Command)]) -> String {
        commands.flatMap { path, command in
            command.completedOptions(path: path).filter(\.takesValue).map { option in
                let patterns = option.words.map { "'\(key(path)):\($0)'" }.joined(separator: " | ")
                return "            \(patterns)) \(action(option.values)) return ;;"
            }
        }.joined(separator: "\n")
    }

    private func argumentValues(_ commands: [(path: [String], command: Command)]) -> String {
        commands.flatMap { path, command in
            guard command.subcommands.isEmpty else {
                let words = command.subcommands.map(\.name).joined(separator: " ")
                return ["        '\(key(path)):'*) _backup_tool_words '\(words)' \"$cur\" ;;"]
            }
            return command.arguments.enumerated().map { index, argument in
                let place = argument.isMany ? "*" : String(index)
                return "        '\(key(path)):'\(place)) \(action(argument.values)) ;;"
            }
        }.joined(separator: "\n")
    }

    private func action(_ values: Values) -> String {
        switch values {
        case .text, .anyText, .tags: "COMPREPLY=();"
        case .file, .backup: "_backup_tool_files -f \"$cur\";"
        case .directory, .vault: "_backup_tool_files -d \"$cur\";"
        case .command: "_backup_tool_words '\(Command.commandNames(root).joined(separator: " "))' \"$cur\";"
        case .oneOf(let words): "_backup_tool_words '\(words.joined(separator: " "))' \"$cur\";"
        case .listOf(let words): "_backup_tool_list '\(words.joined(separator: " "))' \"$cur\";"
        }
    }
}
