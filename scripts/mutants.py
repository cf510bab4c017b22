#!/usr/bin/env python3
"""Plants the bugs of Tests/Mutants one at a time, and says which of them the tests see.

    scripts/mutants.py [--check] [--likely] [--report] [WHICH]

WHICH is a list of numbers such as 1-20,35 (default: all), or a rule such as I11. Every bug becomes a branch in a copy
of the sources below .build/mutants, which is built once; BACKUP_TOOL_MUTANT switches one bug on. Its likely tests
run first; where they see nothing, all tests run (--likely: not). Results are kept, so that parts add up; --report
prints them and runs nothing. --check only looks whether every entry still fits the sources and is Swift there.
"""

import collections
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPY = f"{ROOT}/.build/mutants"
RESULTS = f"{ROOT}/.build/mutants-results.json"
COPIED = ["Package.swift", "Sources", "Tests", "Benchmarks/BibTeXParse", "docs", "samples", "README.md",
          "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "scripts"]
BAR = 95
LEAST = 150
# Of these groups of docs/invariants.md no bug may stay unseen.
STRICT = ("Nothing is lost", "Old or new, never half")
TIMEOUT = 600
# These judge the text of the sources, which the branches have changed.
ABOUT_TEXT = ["LayerTests", "aLayerNamesOnlyTypes", "filesAndFunctionsStaySmall", "onlyAtomicFileRenames",
              "bytesFromOutsideCannotTrap", "modulesAreImportedOnly", "DocumentationTests"]

SWITCH = """import Glibc

/// Which planted bug is switched on.
public enum Mutant {
    private static let number = getenv("BACKUP_TOOL_MUTANT").flatMap { Int32(String(cString: $0)) } ?? 0
    public static func on(_ number: Int32) -> Bool { number == Self.number }
}
"""


class Stale(Exception):
    pass


class Entry:
    """A planted bug: `before` stands once in `file`, behind the line `anchor` if there is one."""

    def __init__(self, rule, title, place):
        self.rule, self.title, self.place = rule, title, place
        self.file, self.anchor, self.see = "", "", ""
        self.before, self.after, self.written = [], [], []
        self.number = 0
        # Whether the tests that see it read the sources, so that nothing need be built.
        self.is_text = False

    @property
    def name(self):
        return f"bug {self.number} ({self.rule}, {self.title}; {self.place})"

    @property
    def switch(self):
        """The number of its switch, which stays while others come and go: then little is built anew."""
        return int(self.key[:7], 16)

    @property
    def key(self):
        text = "\n".join([self.file, self.anchor] + self.before + ["=>"] + self.after + self.written)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_entries():
    entries = []
    folder = f"{ROOT}/Tests/Mutants"
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".txt"):
            continue
        file, see = "", ""
        for number, line in enumerate(open(f"{folder}/{name}", encoding="utf-8"), 1):
            line = line.rstrip("\n")
            if line.startswith("file "):
                file, see = line[5:].strip(), ""
            elif line.startswith("see "):
                see = line[4:].strip()
            elif match := re.match(r"(text )?(I\d+) (.*)", line):
                entries.append(Entry(match[2], match[3], f"Tests/Mutants/{name}:{number}"))
                entries[-1].file, entries[-1].see, entries[-1].is_text = file, see, bool(match[1])
            elif line.startswith("in "):
                entries[-1].anchor = line[3:].strip()
            elif line.startswith("seen by "):
                entries[-1].see = line[8:].strip()
            elif line.startswith("- "):
                entries[-1].before.append(line[2:].strip())
            elif line.startswith("+ "):
                entries[-1].after.append(line[2:].strip())
            elif line.startswith("= "):
                entries[-1].written.append(line[2:].strip())
            elif line.strip() and not line.startswith("#"):
                sys.exit(f"Tests/Mutants/{name}:{number}: is no line of a list of bugs: {line}")
    for number, entry in enumerate(entries, 1):
        entry.number = number
    return entries


# Finding the text

def find(entry, lines):
    """The range of lines that `before` stands on."""
    if not entry.before:
        raise Stale("it has no line that begins with '- '")
    stripped = [line.strip() for line in lines]
    start = 0
    if entry.anchor:
        places = [i for i, line in enumerate(stripped) if entry.anchor in line]
        if not places:
            raise Stale(f"'{entry.anchor}' is not in {entry.file}")
        start = places[0]
    count = len(entry.before)
    found = [i for i in range(start, len(lines) - count + 1) if stripped[i:i + count] == entry.before]
    if not found:
        raise Stale(f"its text is not in {entry.file}: {entry.before[0]}")
    if len(found) > 1 and not entry.anchor:
        raise Stale(f"its text is {len(found)} times in {entry.file}; add a line 'in …': {entry.before[0]}")
    return found[0], found[0] + count


# Making a branch of it

def split_clauses(text):
    """Splits a condition at its commas, those in brackets and strings aside."""
    parts, depth, start, in_string = [], 0, 0, False
    for index, char in enumerate(text):
        if char == '"' and text[index - 1:index] != "\\":
            in_string = not in_string
        elif not in_string and char in "([{":
            depth += 1
        elif not in_string and char in ")]}":
            depth -= 1
        elif not in_string and depth == 0 and char == ",":
            parts.append(text[start:index].strip())
            start = index + 1
    return parts + [text[start:].strip()]


def is_binding(clause):
    return re.match(r"(let|var|case)\b", clause) is not None


def switched(number, after, before):
    """An expression that is `after` where the bug is on."""
    has_try = re.search(r"\btry\b(?![?!])", after + before)
    return f"{'try ' if has_try else ''}(Mutant.on({number}) ? ({after}) : ({before}))"


def switch_condition(current, before, number, after):
    """`current` are the clauses as they are by now, `before` as they were."""
    if after == "false":
        current[0] = (f"!Mutant.on({number}), {current[0]}" if is_binding(before[0])
                      else switched(number, "false", current[0]))
        return
    wanted = split_clauses(after)
    steps = difflib.SequenceMatcher(None, before, wanted, autojunk=False).get_opcodes()
    for kind, start, end, new_start, new_end in steps:
        if kind == "equal":
            continue
        if end - start == new_end - new_start == 1 and is_binding(before[start]):
            name, _, value = current[start].partition(" = ")
            other, _, new = wanted[new_start].partition(" = ")
            if name == other and not name.startswith("case"):
                current[start] = f"{name} = {switched(number, new, value)}"
                continue
        if any(is_binding(clause) for clause in before[start:end] + wanted[new_start:new_end]):
            raise Stale("a clause that binds a name cannot be switched")
        added = wanted[new_start:new_end]
        for index in range(start, end):
            current[index] = switched(number, added.pop(0) if added else "true", current[index])
        if added:
            more = [f"(!Mutant.on({number}) || ({clause}))" for clause in added]
            if end > 0:
                current[end - 1] = ", ".join([current[end - 1]] + more)
            else:
                current[0] = ", ".join(more + [current[0]])


KEYWORD = re.compile(r"^((?:\} )?(?:else )?(?:if|while|guard))\s+(.*)$")
LOOP = re.compile(r"^(for .*? in) (.*?)(?: where (.*))? \{$")
DECLARATION = re.compile(r"^((?:(?:private|fileprivate|public|internal|static|lazy)\s+)*(?:let|var)\s+[^={]+?)\s*=\s+(.*)$")
ONE_LINER = re.compile(r"^(.*?\b(?:func|var|init|subscript|get|defer)\b.*?)\{ (.*) \}$")
CASE = re.compile(r"^((?:case .*?|default):)\s+(.*)$")


Header = collections.namedtuple("Header", "keyword condition end body")


def parse_header(line):
    """The parts of `if a, b {`, `guard a else { return }` and their like; nothing for other lines."""
    match = KEYWORD.match(line)
    if not match or line[-1] not in "{}":
        return None
    rest, body = match[2], None
    if rest.endswith("}"):
        depth = 0
        for index in range(len(rest) - 1, -1, -1):
            depth += (rest[index] == "}") - (rest[index] == "{")
            if depth == 0:
                break
        rest, body = rest[:index + 1], rest[index + 1:-1].strip()
    condition = rest[:-1].strip()
    end = " else" if condition.endswith(" else") else ""
    return Header(match[1], condition.removesuffix(" else"), end, body)


def statement(number, after, before):
    if not after:
        return f"if !Mutant.on({number}) {{ {before} }}"
    return f"if Mutant.on({number}) {{ {after} }} else {{ {before} }}"


def branch(before, bugs, in_string):
    """The lines that stand for `before`, given (number, after) for each bug planted there."""
    if in_string:
        text = before[0]
        for number, after in bugs:
            def literal(part):
                return '"' + part.replace('"', '\\"') + '"'
            inner = text if text.startswith("\\(") else literal(text)
            text = f"\\(Mutant.on({number}) ? {literal(' '.join(after))} : {inner})"
        return [text]
    if len(before) == 1 and all(len(after) <= 1 for _, after in bugs):
        line = before[0]
        first = bugs[0][1][0] if bugs[0][1] else ""
        if LOOP.match(line) and LOOP.match(first):
            return [switch_loop(LOOP.match(line), bugs)]
        if parse_header(line) and parse_header(first):
            return [switch_header(parse_header(line), bugs)]
        for pattern in (CASE, DECLARATION, ONE_LINER):
            match, other = pattern.match(line), pattern.match(first)
            if not match or not other or match[1] != other[1]:
                continue
            inner = match[2]
            for number, after in bugs:
                new = pattern.match(after[0])[2]
                inner = (switched(number, new, inner) if pattern is DECLARATION else statement(number, new, inner))
            return [f"{match[1]} = {inner}" if pattern is DECLARATION
                    else f"{match[1]} {inner}" if pattern is CASE else f"{match[1]}{{ {inner} }}"]
    if before[0].endswith("{") and sum(line.count("{") - line.count("}") for line in before) > 0:
        raise Stale("the head of a block can only be changed alone, by another head of its kind")
    if re.match(r"((private|fileprivate|static) )*(let|var) ", before[0]):
        raise Stale("what is declared in a branch is unknown behind it; write the line with '=' and MUTANT")
    lines = []
    for number, after in bugs:
        lines += [f"if Mutant.on({number}) {{"] + after + ["} else"]
    if lines[-2:] == [f"if Mutant.on({bugs[-1][0]}) {{", "} else"]:
        return lines[:-2] + [f"if !Mutant.on({bugs[-1][0]}) {{"] + before + ["}"]
    return lines[:-1] + ["} else {"] + before + ["}"]


def switch_header(head, bugs):
    clauses = split_clauses(head.condition)
    current, body = list(clauses), head.body
    for number, after in bugs:
        other = parse_header(after[0])
        if not other or other.keyword != head.keyword:
            raise Stale("the head of a block can only become another head of its kind")
        if other.condition != head.condition:
            switch_condition(current, clauses, number, other.condition)
        elif other.body != head.body:
            body = statement(number, other.body or "", body)
    text = f"{head.keyword} {', '.join(current)}{head.end} {{"
    return text if head.body is None else f"{text} {body} }}"


def switch_loop(match, bugs):
    values, where = match[2], match[3]
    for number, after in bugs:
        other = LOOP.match(after[0])
        if not other or other[1] != match[1]:
            raise Stale("the head of a loop can only become another head of the same loop")
        if other[2] != match[2]:
            values = switched(number, other[2], values)
        if other[3] != match[3]:
            where = switched(number, other[3] or "true", where or "true")
    return f"{match[1]} {values}{' where ' + where if where else ''} {{"


def written(group):
    """Lines that somebody wrote with the switch in them; of several bugs at one place each adds its clause."""
    lines = [line.replace("MUTANT", f"Mutant.on({group[0].switch})") for line in group[0].written]
    for entry in group[1:]:
        first, own = group[0].before[0], entry.written
        if len(own) != 1 or len(lines) != 1 or not own[0].startswith(first.removesuffix(" {")):
            raise Stale("two written bugs at one place must each add a clause to one line")
        clause = own[0].removeprefix(first.removesuffix(" {")).removesuffix(" {")
        lines = [lines[0].removesuffix(" {") + clause.replace("MUTANT", f"Mutant.on({entry.switch})") + " {"]
    return lines


def plant(text, entries):
    """The text of one file with a branch for each of its bugs; and those that do not fit."""
    lines = text.split("\n")
    places, stale = collections.defaultdict(list), []
    for entry in entries:
        try:
            place = find(entry, lines)
            if not entry.is_text:
                places[place].append(entry)
        except Stale as problem:
            stale.append((entry, str(problem)))
    taken = sorted(places)
    for (start, end), (next_start, _) in zip(taken, taken[1:]):
        if next_start < end:
            stale.append((places[(next_start, _)][0], f"overlaps with {places[(start, end)][0].name}"))
    if not stale:
        for (start, end) in sorted(places, reverse=True):
            group = places[(start, end)]
            in_string = sum(line.count('"""') for line in lines[:start]) % 2 == 1
            try:
                if group[0].written:
                    lines[start:end] = written(group)
                    continue
                if not in_string and re.search(r"([,=]|&&|\|\|)$", lines[start - 1]):
                    raise Stale("the line goes on with an expression; write it with '=' and MUTANT")
                lines[start:end] = branch(group[0].before, [(e.switch, e.after) for e in group], in_string)
            except Stale as problem:
                stale.append((group[0], str(problem)))
    return "\n".join(lines), stale


# The copy

def copy_sources(entries):
    by_file = collections.defaultdict(list)
    for entry in entries:
        by_file[entry.file].append(entry)
    stale = [(e, f"there is no {file}") for file, group in by_file.items()
             if not os.path.exists(f"{ROOT}/{file}") for e in group]
    texts = {}
    for file, group in by_file.items():
        if os.path.exists(f"{ROOT}/{file}"):
            texts[file], found = plant(open(f"{ROOT}/{file}", encoding="utf-8").read(), group)
            stale += found
    if stale:
        for entry, problem in stale:
            print(f"{entry.name}: {problem}", file=sys.stderr)
        sys.exit(f"{len(stale)} of {len(entries)} planted bugs do not fit the sources any more. Mend or replace them.")
    return texts


def parse(texts):
    """Ends here where a branch is no Swift: a build would say so only after minutes."""
    with tempfile.TemporaryDirectory() as folder:
        for file, text in texts.items():
            os.makedirs(os.path.dirname(f"{folder}/{file}"), exist_ok=True)
            with open(f"{folder}/{file}", "w", encoding="utf-8") as copy:
                copy.write(text)
        words = ["swiftc", "-frontend", "-parse"] + [file for file in texts if file.endswith(".swift")]
        run = subprocess.run(words, cwd=folder, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        for line in run.stderr.split("\n"):
            if "error:" in line:
                print(line, file=sys.stderr)
        sys.exit("A planted bug is no Swift where it stands. Write its lines with '=' and MUTANT.")


def write_copy(texts):
    wanted = {"Sources/BackupKit/Domain/Mutant.swift"}
    for top in COPIED:
        files = [top]
        if os.path.isdir(f"{ROOT}/{top}"):
            files = [os.path.relpath(f"{folder}/{name}", ROOT)
                     for folder, _, names in os.walk(f"{ROOT}/{top}") for name in names]
        for file in files:
            wanted.add(file)
            content = texts[file].encode() if file in texts else open(f"{ROOT}/{file}", "rb").read()
            if file == "Tests/TestSupport/Process.swift":
                # The tool that a test starts has the bug as well.
                content = content.replace(
                    b'variables["PATH"] =',
                    b'variables["BACKUP_TOOL_MUTANT"] = getenv("BACKUP_TOOL_MUTANT").map { String(cString: $0) }\n'
                    b'    variables["PATH"] =')
            put(file, content, os.stat(f"{ROOT}/{file}").st_mode)
    put("Sources/BackupKit/Domain/Mutant.swift", SWITCH.encode(), 0o644)
    for top in ("Sources", "Tests"):
        for folder, _, names in os.walk(f"{COPY}/{top}"):
            for name in names:
                if os.path.relpath(f"{folder}/{name}", COPY) not in wanted:
                    os.remove(f"{folder}/{name}")
    # Some tests read real data that lies beside the project.
    beside = f"{os.path.dirname(COPY)}/shared"
    if os.path.isdir(f"{os.path.dirname(ROOT)}/shared") and not os.path.lexists(beside):
        os.symlink(f"{os.path.dirname(ROOT)}/shared", beside)


def put(file, content, mode):
    path = f"{COPY}/{file}"
    if os.path.exists(path) and open(path, "rb").read() == content:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as target:
        target.write(content)
    os.chmod(path, mode & 0o777)


def build():
    print("Building the tests with all planted bugs switched off …", flush=True)
    words = ["swift", "build", "--package-path", COPY, "--build-tests", "-Xswiftc", "-suppress-warnings"]
    run = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode != 0:
        # The compiler says each of them once for every file that it builds.
        for line in dict.fromkeys(line for line in run.stdout.split("\n") if ".swift:" in line and "error:" in line):
            print(line, file=sys.stderr)
        sys.exit("The copy with the planted bugs does not build.")


# Running

def run_tests(number, filters, skips, about_text=False):
    """Whether all went well, the first test that did not, and the names of all that did not."""
    words = [f"{COPY}/.build/debug/backup-toolPackageTests.xctest", "--testing-library", "swift-testing"]
    for text in filters:
        words += ["--filter", text]
    for text in ([] if about_text else ABOUT_TEXT) + skips:
        words += ["--skip", text]
    environment = dict(os.environ, BACKUP_TOOL_MUTANT=str(number))
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output = process.communicate(timeout=TIMEOUT)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return False, "no test: it did not end", []
    if "Test run with 0 tests" in output:
        if skips:
            return True, "", []
        sys.exit(f"No test has such a name: {' '.join(filters)}. Mend the lists in Tests/Mutants.")
    failed = re.findall(r"✘(?:\x1b\[0m)? Test (\w+)", output)
    failed = [name for name in failed if name not in ("run",)]
    if process.returncode != 0 and not failed:
        return False, "a crash", []
    return process.returncode == 0, failed[0] if failed else "", sorted(set(failed))


def seen_as_text(entry):
    """Who saw a bug in the text of a file, which is put back afterwards."""
    path = f"{COPY}/{entry.file}"
    planted = open(path, encoding="utf-8").read()
    lines = open(f"{ROOT}/{entry.file}", encoding="utf-8").read().split("\n")
    start, end = find(entry, lines)
    lines[start:end] = entry.after
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        return run_tests(0, entry.see.split("|"), [], about_text=True)[1]
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(planted)


def seen(entry, whole, alone):
    """Who saw it: a test's name, or nothing. `alone` says of tests whether they pass without any bug."""
    if entry.is_text:
        return seen_as_text(entry)
    # One suite after the other: most bugs are seen by the first.
    for filters in [[text] for text in entry.see.split("|") if text] + ([[]] if whole else []):
        skips = [name for name in alone if not alone[name]]
        is_fine, first, failed = run_tests(entry.switch, filters, skips)
        if not is_fine and not failed:
            # A machine that is short of memory ends tests, too.
            is_fine, first, failed = run_tests(entry.switch, filters, skips)
        if not is_fine and not failed:
            return first
        for name in failed:
            if name not in alone:
                alone[name] = run_tests(0, [name], [])[0]
                if not alone[name]:
                    print(f"without any bug it fails, and is left out: {name}", flush=True)
            if alone[name]:
                return name
    return ""


def chosen(entries, text):
    if not text:
        return entries
    if re.match(r"I\d+$", text):
        return [entry for entry in entries if entry.rule == text]
    numbers = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return [entry for entry in entries if entry.number in numbers]


# Reporting

def groups():
    """The heading of docs/invariants.md that each rule stands under."""
    heading, found = "", {}
    for line in open(f"{ROOT}/docs/invariants.md", encoding="utf-8"):
        if line.startswith("## "):
            heading = line[3:].strip()
        elif match := re.match(r"\| (I\d+) \|", line):
            found[match[1]] = heading
    return found


def read_results():
    return json.load(open(RESULTS)) if os.path.exists(RESULTS) else {}


def keep_result(entry, who):
    """Adds a result to those of all runs, also of one that is at work on another part."""
    results = dict(read_results(), **{entry.key: who})
    with open(f"{RESULTS}.{os.getpid()}", "w") as file:
        json.dump(results, file)
    os.replace(f"{RESULTS}.{os.getpid()}", RESULTS)
    return results


def report(entries, results, is_whole):
    tried = [entry for entry in entries if entry.key in results]
    headings = groups()
    rules = collections.defaultdict(list)
    for entry in tried:
        rules[entry.rule].append(bool(results[entry.key]))
    print(f"\n{'rule':6}{'tried':>6}{'seen':>6}")
    for rule in sorted(rules, key=lambda rule: int(rule[1:])):
        print(f"{rule:6}{len(rules[rule]):>6}{sum(rules[rule]):>6}")
    unseen = [entry for entry in tried if not results[entry.key]]
    for entry in unseen:
        print(f"NOT seen: {entry.name}")
    share = 100 * (len(tried) - len(unseen)) / max(1, len(tried))
    print(f"{len(tried) - len(unseen)} of {len(tried)} planted bugs were seen: {share:.1f} % (bar: {BAR} %).")
    problems = [] if share >= BAR else [f"less than {BAR} % were seen"]
    strict = sorted({entry.rule for entry in unseen if headings.get(entry.rule) in STRICT})
    if strict:
        problems.append(f"bugs against {', '.join(strict)} were not seen, and none of these may be missed")
    if is_whole:
        if len(tried) < LEAST:
            problems.append(f"only {len(tried)} of at least {LEAST} bugs were tried")
        missing = sorted(set(headings) - {entry.rule for entry in entries}, key=lambda rule: int(rule[1:]))
        if missing:
            problems.append(f"no bug is planted against {', '.join(missing)}")
    for problem in problems:
        print(f"The bar is missed: {problem}.")
    return 1 if problems else 0


def main():
    flags = [word for word in sys.argv[1:] if word.startswith("--")]
    words = [word for word in sys.argv[1:] if not word.startswith("--") and word]
    if set(flags) - {"--check", "--likely", "--report"}:
        sys.exit(__doc__.strip())
    entries = read_entries()
    if "--report" in flags:
        sys.exit(report(entries, read_results(), True))
    part = chosen(entries, words[0] if words else "")
    texts = copy_sources(entries)
    if shutil.which("swift") is None:
        sys.exit("There is no 'swift' on the PATH.")
    parse(texts)
    if "--check" in flags:
        print(f"All {len(entries)} planted bugs fit the sources.")
        return
    if not part:
        sys.exit("No planted bug has such a number or rule.")
    write_copy(texts)
    build()
    alone = {}
    for entry in part:
        start = time.monotonic()
        who = seen(entry, "--likely" not in flags, alone)
        results = keep_result(entry, who)
        verdict = f"seen by {who}" if who else "NOT SEEN"
        print(f"{entry.number:4} {entry.rule:5} {entry.title}: {verdict} ({time.monotonic() - start:.0f} s)", flush=True)
    sys.exit(report(part, results, len(part) == len(entries)))


if __name__ == "__main__":
    main()
