#!/usr/bin/env python3
"""Asks restic which snapshots it would keep, and writes Tests/Goldens/retention.json.

It needs restic 0.16 or later on the PATH (the goldens are of 0.18; Debian 12 has 0.14, which keeps the oldest
snapshot in no case) and a few minutes. The times are chosen to hurt: turns of the year whose ISO week belongs to
the other year, the leap day, ends of months, the hours when clocks change, offsets that put one instant on two days.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "Tests/Goldens/retention.json"

# (time on the wall, zone)
EDGES = [
    ("2020-12-28 09:00:00", "UTC"), ("2020-12-31 23:59:59", "UTC"), ("2021-01-01 00:00:00", "UTC"),
    ("2021-01-03 23:00:00", "UTC"), ("2021-01-04 01:00:00", "UTC"), ("2024-02-28 12:00:00", "UTC"),
    ("2024-02-29 12:00:00", "UTC"), ("2024-03-01 12:00:00", "UTC"), ("2024-12-30 08:00:00", "UTC"),
    ("2025-10-26 00:30:00", "Europe/Berlin"), ("2025-10-26 02:30:00", "Europe/Berlin"),
    ("2025-10-26 03:30:00", "Europe/Berlin"), ("2026-03-29 01:30:00", "Europe/Berlin"),
    ("2026-03-29 03:30:00", "Europe/Berlin"), ("2026-01-31 23:30:00", "America/New_York"),
    ("2026-02-01 05:00:00", "Asia/Kolkata"), ("2026-02-01 00:10:00", "Asia/Kolkata"),
    ("2026-02-28 23:59:59", "UTC"), ("2026-03-31 23:59:59", "UTC"),
]

POLICIES = [
    ["--keep-last", "1"], ["--keep-last", "7"], ["--keep-last", "500"], ["--keep-hourly", "5"],
    ["--keep-daily", "1"], ["--keep-daily", "10"], ["--keep-daily", "200"], ["--keep-weekly", "4"],
    ["--keep-weekly", "100"], ["--keep-monthly", "6"], ["--keep-yearly", "1"], ["--keep-yearly", "10"],
    ["--keep-daily", "7", "--keep-weekly", "5", "--keep-monthly", "12", "--keep-yearly", "75"],
    ["--keep-last", "3", "--keep-hourly", "6", "--keep-daily", "3", "--keep-weekly", "2", "--keep-yearly", "2"],
    ["--keep-within", "1d"], ["--keep-within", "1m"], ["--keep-within", "1m2d3h"], ["--keep-within", "1y1m1d1h"],
    ["--keep-within", "2y3m"], ["--keep-within", "36h"], ["--keep-within-hourly", "2m"], ["--keep-within-daily", "1y"],
    ["--keep-within-weekly", "1y"], ["--keep-within-monthly", "3y"], ["--keep-within-yearly", "9y"],
    ["--keep-within-hourly", "3d", "--keep-within-daily", "20d", "--keep-within-weekly", "3m", "--keep-monthly", "2"],
    ["--keep-tag", "keep"], ["--keep-tag", "keep,exam", "--keep-tag", "draft"], ["--keep-tag", ""],
    ["--keep-tag", "exam", "--keep-last", "2", "--keep-within", "5d"],
    ["--keep-daily", "5", "--group-by", ""], ["--keep-last", "4", "--group-by", "host"],
    ["--keep-weekly", "3", "--group-by", "paths"], ["--keep-last", "2", "--group-by", "host,paths,tags"],
    ["--keep-last", "2", "--group-by", "tags"],
]


def timeline():
    """About a hundred snapshots: (time, zone, host, path, tags)."""
    generator = random.Random(20261121)
    rows = [(time, zone, "desk", "a", []) for time, zone in EDGES]
    zones = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]
    while len(rows) < 98:
        dense = len(rows) % 2
        year, month = (2026, generator.randint(2, 3)) if dense else (generator.randint(2018, 2026), generator.randint(1, 12))
        if year == 2026:
            month = min(month, 3)
        time = "%04d-%02d-%02d %02d:%02d:%02d" % (
            year, month, generator.randint(1, 28), generator.randint(0, 23), generator.randint(0, 59),
            generator.randint(0, 59))
        tags = generator.choice([[], [], [], ["keep"], ["keep", "exam"], ["draft"], ["exam"]])
        host = generator.choice(["desk", "desk", "desk", "laptop"])
        rows.append((time, generator.choice(zones), host, generator.choice(["a", "a", "a", "b"]), tags))
    # Two snapshots of a clock that is wrong: restic lets them take part.
    rows += [("2090-01-01 00:00:00", "UTC", "desk", "a", []), ("2099-06-01 12:00:00", "UTC", "laptop", "a", [])]
    return rows


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        environment = dict(os.environ, RESTIC_REPOSITORY=folder + "/repo", RESTIC_PASSWORD="x", RESTIC_CACHE_DIR="cache")

        def restic(*words, **more):
            result = subprocess.run(
                ["restic", *words], env=dict(environment, **more), stdout=subprocess.PIPE, check=True, text=True)
            return result.stdout

        restic("init", "-q")
        for name in "ab":
            pathlib.Path(name).write_text(name)
        for time, zone, host, path, tags in timeline():
            tag_words = [word for tag in tags for word in ("--tag", tag)]
            restic("backup", "-q", "--host", host, "--time", time, *tag_words, path, TZ=zone)
        snapshots = json.loads(restic("snapshots", "--json"))
        for snapshot in snapshots:
            snapshot["paths"] = [path.replace(folder, "/home") for path in snapshot["paths"]]
        keys = {(s["time"], s["hostname"], tuple(s["paths"])): s["short_id"] for s in snapshots}
        assert len(keys) == len(snapshots), "two snapshots cannot be told apart"
        cases = []
        for words in POLICIES:
            groups = json.loads(restic("forget", "--dry-run", "--json", *words, TZ="UTC"))
            kept = []
            for group in groups:
                for reason in group["reasons"] or []:
                    snapshot = reason["snapshot"]
                    paths = tuple(path.replace(folder, "/home") for path in snapshot["paths"])
                    kept.append([keys[(snapshot["time"], snapshot["hostname"], paths)], *reason["matches"]])
            cases.append({"policy": words, "groups": len(groups), "kept": sorted(kept)})
        fields = ("short_id", "time", "hostname", "paths", "tags")
        lines = [json.dumps({key: s[key] for key in fields if key in s}) for s in snapshots]
        cases = [json.dumps(case) for case in cases]
        text = '{"snapshots":[\n%s\n],"cases":[\n%s\n]}\n' % (",\n".join(lines), ",\n".join(cases))
        TARGET.write_text(text)
        print("%d snapshots, %d policies" % (len(snapshots), len(cases)), file=sys.stderr)


main()
