"""What all measurements share: running programs, taking turns, the table of figures."""

import collections
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

MEASURE = str(pathlib.Path(__file__).resolve().parent / "measure.py")
Run = collections.namedtuple("Run", "seconds memory output")


class Wrong(Exception):
    """Something did not do what it must; no figure can make up for that."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, allowed=(0,), folder=None, keep_output=False):
    """Runs a program to its end: its time, its peak memory in MB, what it printed."""
    shell = isinstance(command, str)
    words = ["bash", "-c", "set -o pipefail; " + command] if shell else [str(word) for word in command]
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        measure = [sys.executable, "-S", "-E", MEASURE, out.name, err.name, *words]
        measured = subprocess.run(measure, cwd=folder, stdout=subprocess.PIPE, check=True).stdout
        result = json.loads(measured)
        if result["code"] not in allowed:
            text = err.read().decode(errors="replace")[-2000:]
            raise Wrong(f"{' '.join(words)}\nended with {result['code']}\n{text}")
        output = out.read().decode(errors="replace") if keep_output else ""
    return Run(result["seconds"], result["memory"], output)


def remove(*paths):
    for path in paths:
        path = pathlib.Path(path)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()


def take_turns(ours, peers, rounds):
    """`ours` and each of `peers` are functions that do one run. Returns the runs of each."""
    contestants = [ours, *peers]
    for contestant in contestants:
        contestant()
    runs = [[] for _ in contestants]
    for _ in range(rounds):
        for index, contestant in enumerate(contestants):
            runs[index].append(contestant())
    return runs


def median(runs):
    return statistics.median(one.seconds for one in runs)


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, ours, peer, ratio, bar, met, memory=None):
        row = {"what": what, "ours": ours, "peer": peer, "ratio": ratio, "bar": bar, "met": met}
        row["memory"] = None if memory is None else round(memory)
        self.rows.append(row)
        print("  " + "  ".join(str(cell) for cell in self.cells(row)), file=sys.stderr, flush=True)

    def time(self, what, ours, peer, most):
        """A row about time: ours may take `most` times what the peer takes."""
        ratio = median(ours) / median(peer)
        memory = max(one.memory for one in ours)
        self.add(what, f"{median(ours):.3f} s", f"{median(peer):.3f} s", f"{ratio:.3f}×", f"≤ {most}×", ratio <= most, memory)

    def faster(self, what, ours, peer, least):
        """A row about speed: ours must be at least `least` times as fast."""
        ratio = median(peer) / median(ours)
        memory = max(one.memory for one in ours)
        self.add(
            what, f"{median(ours):.3f} s", f"{median(peer):.3f} s", f"{ratio:.1f}× faster", f"≥ {least}×", ratio >= least, memory
        )

    @staticmethod
    def cells(row):
        memory = "" if row["memory"] is None else f"{row['memory']} MB"
        verdict = "" if row["met"] is None else ("met" if row["met"] else "MISSED")
        return [row["what"], row["ours"], row["peer"], row["ratio"], row["bar"], memory, verdict]

    HEAD = ["what", "ours", "peer", "ratio", "bar", "memory", ""]

    def text(self):
        lines = [self.HEAD] + [self.cells(row) for row in self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.HEAD))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)

    def markdown(self):
        lines = ["| " + " | ".join(self.HEAD) + " |", "|" + "---|" * len(self.HEAD)]
        return "\n".join(lines + ["| " + " | ".join(self.cells(row)) + " |" for row in self.rows])
