#!/usr/bin/env python3
"""Runs the tests of all files that have slow ones, in their slow forms, and ends with one table: test, tried, survived, lost,
seed.

A test whose rounds are counted (countRounds) gets a line. A round is lost when the test recorded an issue; a test that
was running when the process ended lost its last round. The arguments go to `swift test`."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def slow_files():
    """A pattern for the ids of the tests that stand in files with slow forms. `make test` runs the others."""
    files = pathlib.Path(__file__).resolve().parent.parent.joinpath("Tests").glob("**/*.swift")
    texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
    names = [name for name, text in texts.items() if "isTorture" in text or "countRounds()" in text]
    return r"/(?:" + "|".join(sorted(names)) + r")\.swift:"


def notes(path):
    """The seed, and how many rounds of each test began."""
    seed, rounds = os.environ.get("BACKUP_TOOL_SEED", "?"), collections.Counter()
    if not os.path.exists(path):
        return seed, rounds
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.rstrip("\n").split("\t")
            if words[0] == "seed":
                seed = words[1]
            elif words[0] == "rounds":
                rounds[words[1]] += int(words[2])
    return seed, rounds


def events(path):
    """Issues of each test, which tests were running at the end, and how many tests there were."""
    issues, running, tests = collections.Counter(), set(), set()
    if not os.path.exists(path):
        return issues, running, tests
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # the last line of a process that was ended
            payload = event["payload"]
            if event["kind"] != "event" or "/" not in payload.get("testID", ""):
                continue
            name = payload["testID"].split("/")[-2]
            tests.add(name)
            if payload["kind"] == "testStarted":
                running.add(name)
            elif payload["kind"] in ("testEnded", "testSkipped"):
                running.discard(name)
            elif payload["kind"] == "issueRecorded" and not payload.get("issue", {}).get("isKnown"):
                issues[name] += 1
    return issues, running, tests


def table(seed, rounds, issues, running):
    lines = [("test", "tried", "survived", "lost", "seed")]
    for name in sorted(set(rounds) | set(issues) | running):
        tried = max(rounds[name], 1)
        lost = min(issues[name] + (name in running), tried)
        lines.append((name, str(tried), str(tried - lost), str(lost), seed))
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    for line in lines:
        cells = [cell.ljust(width) if column in (0, 4) else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())


def main():
    with tempfile.TemporaryDirectory() as folder:
        notes_path, events_path = f"{folder}/notes", f"{folder}/events"
        environment = dict(os.environ, BACKUP_TOOL_TORTURE="1", BACKUP_TOOL_TORTURE_NOTES=notes_path)
        words = ["swift", "test", "--disable-xctest", "--event-stream-output-path", events_path] + sys.argv[1:]
        if "--filter" not in words:
            words += ["--filter", slow_files()]
        start = time.monotonic()
        status = subprocess.run(words, env=environment).returncode
        minutes, seconds = divmod(int(time.monotonic() - start), 60)
        seed, rounds = notes(notes_path)
        issues, running, tests = events(events_path)
        print()
        table(seed, rounds, issues, running)
        for name in sorted(running):
            print(f"The test process ended while {name} was running.")
        if status == 0 and not tests:
            status = 1
        print(f"{len(tests)} tests in {minutes} min {seconds} s: {'all passed' if status == 0 else 'NOT all passed'}. "
              f"BACKUP_TOOL_SEED={seed} replays this run.")
    sys.exit(status if 0 <= status < 256 else 1)


main()
