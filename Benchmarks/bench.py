#!/usr/bin/env python3
"""Measures backup-tool against its peers, in the same run, on the same real data, and proves that the results are right.

    make bench                           everything; the table, and Benchmarks/results/latest.json
    make bench BENCH_FLAGS='--only bib'  the rows whose name contains "bib"
    make bench BENCH_FLAGS=--record      also writes the figures into docs/BENCHMARKS.md

Ours and the peer take turns (A B A B …) after one unmeasured run of each, so that whatever else the machine does hits
both. The figures are medians. Memory is the peak of the process itself, as the kernel counts it (wait4).
The exit code is 0 when every bar is met and everything checked is right, 3 when a bar was missed, 1 when something is
wrong.
"""

import argparse
import collections
import json
import mmap
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

from event_rows import EventRows
from running import Table, Wrong, median, remove, run, say, take_turns
from vault_rows import VaultRows

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "Benchmarks" / "results"
DOCUMENT = ROOT / "docs" / "BENCHMARKS.md"
MEMORY_BAR = 200  # MB


# -- the measurements ------------------------------------------------------------------------------------------------------


class Bench(EventRows, VaultRows):
    def __init__(self, tool, data, work, rounds):
        self.tool, self.data, self.work, self.rounds = tool, data, work, rounds
        self.pdfs, self.bib = data / "pdfs", data / "all.bib"
        self.store, self.archive = work / "library.db", work / "ours.tar.zst"
        self.peer_archive = work / "peer.tar.zst"
        self.layout = work / "layout"
        self.is_prepared = False
        self.table = Table()
        self.checks = []

    def command(self, *words, allowed=(0,), keep_output=False):
        return run([self.tool, *words], allowed, self.work, keep_output)

    def check(self, what, right, detail=""):
        self.checks.append({"what": what, "right": bool(right), "detail": detail})
        print(f"  {'right' if right else 'WRONG'}: {what} {detail}", file=sys.stderr, flush=True)

    def attempt(self, what, command, **options):
        """A check that consists of a program ending well."""
        try:
            run(command, **options)
            self.check(what, True)
        except (Wrong, FileNotFoundError) as problem:
            self.check(what, False, str(problem))

    def prepare(self):
        """A store with all the publications and PDFs, its export, and the same files packed by the peer."""
        if self.is_prepared:
            return
        say("preparing: a store with all the publications and PDFs")
        remove(self.store, f"{self.store}.assets")
        self.command("store", "init", "--store", self.store)
        self.command("import", "--create", "--store", self.store, self.bib, "--attachments", self.pdfs, "--quiet", allowed=(0, 3))
        self.command("export", "--store", self.store, "-o", self.archive, "--quiet")
        self.command("restore", self.archive, "--to", self.layout, "--quiet")
        run(f"tar -cf - -C '{self.layout}' . | zstd -q -T2 -3 -o '{self.peer_archive}'")
        self.is_prepared = True

    def export(self):
        def ours():
            remove(self.archive)
            return self.command("export", "--store", self.store, "-o", self.archive, "--quiet")

        def peer():
            remove(self.peer_archive)
            return run(f"tar -cf - -C '{self.layout}' . | zstd -q -T2 -3 -o '{self.peer_archive}'")

        runs = take_turns(ours, [peer], self.rounds)
        self.table.time("export, digests and read-back", runs[0], runs[1], 1.0)
        sizes = [path.stat().st_size for path in (self.archive, self.peer_archive)]
        ratio = sizes[0] / sizes[1]
        self.table.add(
            "size of the export", f"{sizes[0] / 1e6:.0f} MB", f"{sizes[1] / 1e6:.0f} MB", f"{ratio:.3f}×", "≤ 1.03×", ratio <= 1.03
        )

    def verify(self):
        runs = take_turns(
            lambda: self.command("verify", self.archive, "--quiet"),
            [lambda: run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], folder=self.layout)],
            self.rounds,
        )
        self.table.time("verify", runs[0], runs[1], 0.35)

    def restore(self):
        target = self.work / "restored"

        def ours():
            remove(target)
            return self.command("restore", self.archive, "--to", target, "--quiet")

        def peer():
            remove(target)
            target.mkdir()
            return run(["tar", "--zstd", "-xf", self.peer_archive, "-C", target])

        runs = take_turns(ours, [peer], self.rounds)
        remove(target)
        self.table.time("restore to a folder", runs[0], runs[1], 1.2)

    def one_file(self):
        """A file from the middle of the archive; GNU tar reads on to the end, so its place makes no difference to it."""
        files = sorted(path for path in self.layout.rglob("*.pdf"))
        name = str(files[len(files) // 2].relative_to(self.layout))
        target = self.work / "one"
        target.mkdir(exist_ok=True)
        runs = take_turns(
            lambda: self.command("show", self.archive, name),
            [lambda: run(["tar", "--zstd", "-xf", self.peer_archive, "-C", target, "./" + name])],
            self.rounds,
        )
        expected = (self.layout / name).read_bytes()
        shown = subprocess.run([self.tool, "show", self.archive, name], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.check("the one file is the right one", shown.stdout == expected)
        self.check("the peer's too", (target / name).read_bytes() == expected)
        remove(target)
        self.table.time("read one file of it", runs[0], runs[1], 0.05)

    def bibtex(self):
        store = self.work / "bib.db"
        parse = [sys.executable, __file__, "--parse-with-bibtexparser", self.bib]

        def ours():
            remove(store, f"{store}-wal", f"{store}-shm", f"{store}.assets")
            return self.command("import", "--create", "--store", store, self.bib, "--quiet", allowed=(0, 3))

        def parser():
            # Its own clock, as for bibtexparser: what is compared is parsing.
            result = run([self.tool.parent / "bibtex-parse", self.bib], keep_output=True)
            return result._replace(seconds=json.loads(result.output)["seconds"])

        def bibtexparser():
            # Its own clock: starting Python and importing the module is not parsing.
            result = run(parse, keep_output=True)
            return result._replace(seconds=float(result.output))

        def bibtool():
            return run(f"bibtool -q '{self.bib}' -o /dev/null 2>/dev/null", allowed=(0, 1))

        runs = take_turns(ours, [parser, bibtexparser, bibtool], self.rounds)
        ours, parser, bibtexparser, bibtool = runs
        self.table.faster("import BibTeX, against bibtexparser", ours, bibtexparser, 10)
        self.table.faster("parse BibTeX, against bibtexparser", parser, bibtexparser, 20)
        self.table.faster("parse BibTeX, against bibtool", parser, bibtool, 5)
        rate = self.bib.stat().st_size / median(parser) / 1e6
        self.table.add("parse BibTeX, its speed", f"{rate:.0f} MB/s", "", "", "≥ 150 MB/s", rate >= 150)
        remove(store, f"{store}-wal", f"{store}-shm", f"{store}.assets")

    def start(self):
        runs = take_turns(
            lambda: self.command("--version"), [lambda: run(["restic", "version"])], max(20, self.rounds)
        )
        milliseconds = [median(one) * 1000 for one in runs]
        self.table.add(
            "backup-tool --version, against restic version",
            f"{milliseconds[0]:.1f} ms",
            f"{milliseconds[1]:.1f} ms",
            f"{milliseconds[0] / milliseconds[1]:.2f}×",
            "≤ 15 ms",
            milliseconds[0] <= 15,
            max(one.memory for one in runs[0]),
        )

    def memory(self):
        """All rows with a peak, and whether it grows with the library: a tenth of the data must not need much less."""
        peaks = [row["memory"] for row in self.table.rows if row["memory"] is not None]
        if peaks:
            self.table.add("highest memory of all the above", f"{max(peaks)} MB", "", "", f"≤ {MEMORY_BAR} MB", max(peaks) <= MEMORY_BAR)
        small = self.work / "small.db"
        part = self.work / "part"
        remove(small, f"{small}.assets", part, self.work / "small.tar.zst")
        part.mkdir()
        for index, path in enumerate(sorted(path for path in self.pdfs.rglob("*.pdf"))[::10]):
            os.link(path, part / f"{index:05}.pdf")
        self.command("store", "init", "--store", small)
        self.command("import", "--create", "--store", small, self.bib, "--attachments", part, "--quiet", allowed=(0, 3))
        tenth = self.command("export", "--store", small, "-o", self.work / "small.tar.zst", "--quiet").memory
        remove(self.archive)
        whole = self.command("export", "--store", self.store, "-o", self.archive, "--quiet").memory
        self.table.add(
            "memory of an export, all files against a tenth", f"{whole:.0f} MB", f"{tenth:.0f} MB",
            f"+{whole - tenth:.0f} MB", "≤ +20 MB", whole - tenth <= 20,
        )
        remove(small, f"{small}-wal", f"{small}-shm", f"{small}.assets", part, self.work / "small.tar.zst")

    # -- correctness -------------------------------------------------------------------------------------------------------

    def correctness(self):
        digest = self.digest(self.store)
        second = self.work / "second.db"
        remove(second, f"{second}.assets")
        # 3: the library has conflicts, and a restore says that they came with it.
        self.command("restore", self.archive, "--create", "--store", second, "--quiet", allowed=(0, 3))
        self.check("content digest equal after restore", self.digest(second) == digest, digest[:16])
        remove(second, f"{second}-wal", f"{second}-shm", f"{second}.assets")
        self.attempt("verify --level deep", [self.tool, "verify", self.archive, "--level", "deep", "--quiet"])
        self.readers()
        self.entries()
        self.corpora()

    def digest(self, store):
        return self.command("store", "digest", "--store", store, keep_output=True).output.strip()

    def readers(self):
        """Programs that never heard of us read what we write, and find what the checksums say."""
        for name, unpack in [
            ("tar", "tar --zstd -xf '{archive}'"),
            ("bsdtar", "bsdtar -xf '{archive}'"),
            ("zstd and tar", "zstd -dcq '{archive}' | tar -xf -"),
        ]:
            self.unpacked(name, unpack.format(archive=self.archive))
        self.attempt("zstd --test", ["zstd", "-tq", self.archive])
        archive = self.work / "ours.zip"
        remove(archive)
        self.command("export", "--store", self.store, "-o", archive, "--quiet")
        self.attempt("unzip -t", ["unzip", "-tqq", archive])
        self.unpacked("unzip", f"unzip -q '{archive}'")
        remove(archive)

    def unpacked(self, name, command):
        folder = self.work / "unpacked"
        remove(folder)
        folder.mkdir()
        self.attempt(f"sha256sum -c of what {name} unpacked", command + " && sha256sum --quiet -c SHA256SUMS", folder=folder)
        remove(folder)

    def entries(self):
        """bibtexparser finds the same entries and fields in our export as in the imported file."""
        before = collections.Counter(parsed_entries(self.bib))
        after = collections.Counter(parsed_entries(self.layout / "library.bib"))
        lost, new = before - after, after - before
        detail = f"{sum(before.values())} entries; {sum(lost.values())} lost, {sum(new.values())} new"
        for entry in list(lost)[:3]:
            detail += f"\n    lost: {entry[0]} {entry[1]} {[name for name, _ in entry[2]]}"
        for entry in list(new)[:3]:
            detail += f"\n    new: {entry[0]} {entry[1]} {[name for name, _ in entry[2]]}"
        self.check("bibtexparser finds the same entries and fields", not lost and not new, detail)

    def corpora(self):
        """Every event line of the shared corpora comes back with every key; every entry with every field."""
        corpora = ROOT.parent / "shared" / "corpora"
        if not corpora.is_dir():
            return
        store, layout = self.work / "corpora.db", self.work / "corpora"
        remove(store, f"{store}.assets", layout)
        self.command("store", "init", "--store", store)
        self.command("import", "--create", "--store", store, corpora, "--quiet", allowed=(0, 3))
        self.command("export", "--store", store, "-o", layout, "--format", "dir", "--quiet")
        before = collections.Counter(events(corpora.rglob("*.jsonl")))
        after = collections.Counter(events((layout / "events").rglob("*.jsonl")))
        lost = before - after
        self.check("every event of the corpora comes back with every key", not lost, f"{sum(before.values())} events")
        before, after = collections.Counter(), collections.Counter(parsed_entries(layout / "library.bib"))
        for path in sorted(corpora.rglob("*.bib")):
            before.update(parsed_entries(path))
        # The same entry in two files is one publication.
        lost = set(before) - set(after)
        detail = f"{len(before)} different entries; lost: {[entry[1] for entry in list(lost)[:5]]}"
        self.check("every entry of the corpora comes back with every field", not lost, detail)
        remove(store, f"{store}-wal", f"{store}-shm", f"{store}.assets", layout)


# -- reading by others ---------------------------------------------------------------------------------------------------


def bib_text(path):
    """The text of a file that may be made of files in two encodings: each line is UTF-8, else Latin-1."""
    return "".join(utf8_or_latin1(line) for line in pathlib.Path(path).read_bytes().splitlines(keepends=True))


def utf8_or_latin1(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def parse_with_bibtexparser(path):
    import logging

    logging.disable(logging.CRITICAL)
    import bibtexparser

    text = bib_text(path)
    begin = time.perf_counter()
    library = bibtexparser.parse_string(text, parse_stack=[])
    return library, time.perf_counter() - begin


def parsed_entries(path):
    """(type, key, fields) of every entry that bibtexparser reads, duplicates included, without what white space and line
    ends do to a value, and without the `file` field, in which an export adds the plain path."""
    from bibtexparser import model

    library, _ = parse_with_bibtexparser(path)
    for block in library.blocks:
        if isinstance(block, (model.DuplicateBlockKeyBlock, model.DuplicateFieldKeyBlock)):
            block = block.ignore_error_block
        if isinstance(block, model.Entry):
            fields = [(field.key.lower(), undelimited(" ".join(field.value.split()))) for field in block.fields]
            fields = tuple(field for field in fields if field[0] != "file")
            yield block.entry_type.lower(), block.key, fields


def undelimited(value):
    """`{2020}`, `"2020"` and `2020` say the same; a piece of a concatenation stays as it is."""
    pair = value[:1] + value[-1:]
    return value[1:-1].strip() if pair in ("{}", '""') and "#" not in value else value


def events(paths):
    for path in paths:
        for line in path.read_text("utf-8").splitlines():
            if line.strip():
                yield json.dumps(json.loads(line), sort_keys=True)


# -- the report ----------------------------------------------------------------------------------------------------------


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return "?"


def machine():
    model = next(
        (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine()
    )
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": f"{model}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}",
        "peers": [first_line([name, "--version"]) for name in ("tar", "zstd", "sha256sum")]
        + [first_line(["restic", "version"]), first_line(["borg", "--version"]), "bibtexparser " + bibtexparser_version()],
    }


def bibtexparser_version():
    from importlib import metadata

    try:
        return metadata.version("bibtexparser")
    except metadata.PackageNotFoundError:
        return "?"


def record(report, table):
    """Puts the figures between the two marks of docs/BENCHMARKS.md."""
    text = DOCUMENT.read_text()
    begin, end = "<!-- figures -->\n", "<!-- end of figures -->"
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    facts = report["machine"]
    lines = [
        f"Measured on {facts['date']}: {facts['cpu']}, {facts['system']}, data on tmpfs; median of {report['rounds']} runs.",
        f"Peers: {'; '.join(facts['peers'])}.",
        "",
        table.markdown(),
        "",
        "Checked in the same run:",
        "",
    ]
    lines += [f"- {one['what']}: {'yes' if one['right'] else '**no**'}" for one in report["checks"]]
    DOCUMENT.write_text(before + begin + "\n".join(lines) + "\n" + end + after)


def touch_memory():
    """Makes the host of a virtual machine give it its memory. Fetched while a program runs it costs whoever comes first."""
    with open("/proc/meminfo", encoding="ascii") as file:
        available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, available * 8 // 10, flags=kind).close()


def main():
    options = argparse.ArgumentParser(description="Measures backup-tool against its peers.")
    options.add_argument("--tool", type=pathlib.Path, default=ROOT / ".build/release/backup-tool")
    options.add_argument("--data", type=pathlib.Path, default=pathlib.Path("/dev/shm/backup-tool-bench"))
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only", action="append", help="run only rows whose name contains this")
    options.add_argument("--record", action="store_true", help="write the figures into docs/BENCHMARKS.md")
    options.add_argument("--parse-with-bibtexparser", metavar="FILE", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.parse_with_bibtexparser:
        print(parse_with_bibtexparser(chosen.parse_with_bibtexparser)[1])
        return 0
    # Settings of the person who measures must not change what is measured.
    for name in ("BACKUP_TOOL_STORE", "XDG_CONFIG_HOME", "SOURCE_DATE_EPOCH", "BACKUP_TOOL_VAULT", "BACKUP_TOOL_PASSWORD"):
        os.environ.pop(name, None)

    touch_memory()
    # On the data's own file system: it is the memory, and hard links work.
    with tempfile.TemporaryDirectory(prefix="run-", dir=chosen.data) as work:
        os.environ["HOME"] = os.environ["TMPDIR"] = work
        bench = Bench(chosen.tool.resolve(), chosen.data.resolve(), pathlib.Path(work), chosen.rounds)
        library = ["export", "verify", "restore", "one_file", "memory", "correctness", "vault_of_pdfs"]
        for step in ["start", "bibtex", "events", "many_events", "sync", *library, "vault_of_small_files"]:
            if chosen.only and not any(part in step for part in chosen.only):
                continue
            say(step.replace("_", " "))
            try:
                if step in library:
                    bench.prepare()
                getattr(bench, step)()
            except Wrong as problem:
                bench.check(f"{step} can be measured", False, str(problem))

    report = {"machine": machine(), "rounds": chosen.rounds, "rows": bench.table.rows, "checks": bench.checks}
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "latest.json").write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    if chosen.record:
        record(report, bench.table)
    print(bench.table.text())
    wrong = [one for one in bench.checks if not one["right"]]
    print(f"\n{len(bench.checks) - len(wrong)} of {len(bench.checks)} checks are right")
    for one in wrong:
        print(f"WRONG: {one['what']} {one['detail']}")
    if wrong:
        return 1
    return 0 if all(row["met"] in (True, None) for row in bench.table.rows) else 3


if __name__ == "__main__":
    sys.exit(main())
