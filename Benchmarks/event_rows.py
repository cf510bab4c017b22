"""Event logs and syncing, measured against DuckDB and sqlite-utils.

    event_rows.py --duckdb DATABASE import|export FILE      what DuckDB is asked to do; prints its seconds
"""

import json
import pathlib
import sys
import time

from running import median, remove, run, say, take_turns

MAKE_EVENTS = str(pathlib.Path(__file__).resolve().parent / "make-events.py")
SYNCED = 100_000


def remove_store(path):
    remove(path, f"{path}-wal", f"{path}-shm", f"{path}.assets")


class EventRows:
    """Rows of the table; mixed into the bench, which has `tool`, `data`, `work`, `rounds`, `table` and `check`."""

    def event_log(self, count):
        path = self.data / f"events-{count}.jsonl"
        if not path.exists():
            say(f"making {count} events")
            run([sys.executable, MAKE_EVENTS, count, f"{path}.partial"])
            path.with_suffix(".jsonl.partial").rename(path)
        return path

    def duckdb(self, database, action, path):
        # Its own clock: starting Python and importing the module is not importing events.
        result = run([sys.executable, __file__, "--duckdb", database, action, path], keep_output=True)
        return result._replace(seconds=float(result.output))

    def import_events(self, store, log):
        return self.command("events", "import", "--create", "--store", store, log, "--quiet")

    def events(self):
        log = self.event_log(1_000_000)
        store, duck, lite = self.work / "events.db", self.work / "duck.db", self.work / "lite.db"

        def ours_new():
            remove_store(store)
            return self.import_events(store, log)

        def duck_new():
            remove(duck, f"{duck}.wal")
            return self.duckdb(duck, "import", log)

        new = take_turns(ours_new, [duck_new], self.rounds)
        self.table.time("import 1,000,000 new events, against DuckDB", new[0], new[1], 0.5)
        self.check("all of them are there", self.count(store) == 1_000_000)
        # Once: it takes half a minute, and no warm-up changes that.
        sqlite_utils = pathlib.Path(sys.executable).with_name("sqlite-utils")
        insert = [sqlite_utils, "insert", lite, "event", log, "--nl", "--pk", "id", "--ignore", "--silent"]
        self.table.time("the same, against sqlite-utils", new[0], [run(insert)], 0.12)
        remove(lite)

        again = take_turns(
            lambda: self.import_events(store, log), [lambda: self.duckdb(duck, "import", log)], self.rounds
        )
        self.table.time("import the same again, against DuckDB", again[0], again[1], 0.6)
        report = json.loads(
            self.command("events", "import", "--create", "--store", store, log, "--json", keep_output=True).output.splitlines()[-1]
        )
        self.check("a second import writes nothing", report["writes"] == 0 and report["unchanged"] == 1_000_000)

        folder, copied = self.work / "days", self.work / "copied.json"

        def ours_export():
            remove(folder)
            return self.command("events", "export", "--store", store, "-o", folder, "--quiet")

        def duck_export():
            remove(copied)
            return self.duckdb(duck, "export", copied)

        out = take_turns(ours_export, [duck_export], self.rounds)
        self.table.time("export to day files, against DuckDB's COPY", out[0], out[1], 1.5)
        lines = sorted(line for day in folder.iterdir() for line in day.read_bytes().splitlines())
        self.check("every line comes back byte for byte", lines == sorted(log.read_bytes().splitlines()))
        remove(folder, copied, duck, f"{duck}.wal")
        self.empty_sync(store)
        remove_store(store)

    def count(self, store):
        return json.loads(self.command("store", "info", "--store", store, "--json", keep_output=True).output)["records"]["events"]

    def many_events(self):
        """Ten times as many: time and memory against our own figures for one million."""
        store, folder = self.work / "many.db", self.work / "days"
        counts = (1_000_000, 10_000_000)
        figures = {count: {"import new": [], "import again": [], "export": []} for count in counts}
        rounds = range(min(self.rounds, 3))
        # A virtual machine may have less quick memory than memory, and lose what it does not use: imports and exports get
        # their rounds one after the other, and no more lies around than they need.
        logs = {count: self.event_log(count) for count in counts}
        for count in [count for _ in rounds for count in counts]:
            remove_store(store)
            figures[count]["import new"].append(self.import_events(store, logs[count]))
            figures[count]["import again"].append(self.import_events(store, logs[count]))
        remove(logs[counts[1]])
        for count in reversed(counts):
            if count == counts[0]:
                remove_store(store)
                self.import_events(store, logs[count])
            for _ in rounds:
                export = self.command("events", "export", "--store", store, "-o", folder, "--quiet")
                figures[count]["export"].append(export)
                remove(folder)
        remove_store(store)
        for what, many in figures[10_000_000].items():
            few = figures[1_000_000][what]
            self.table.time(f"{what}: 10,000,000 events, against 1,000,000", many, few, 11)
            peaks = [max(one.memory for one in runs) for runs in (many, few)]
            ratio = peaks[0] / peaks[1]
            self.table.add(
                f"{what}: its memory", f"{peaks[0]:.0f} MB", f"{peaks[1]:.0f} MB", f"{ratio:.2f}×", "≤ 1.3×, ≤ 400 MB",
                ratio <= 1.3 and peaks[0] <= 400,
            )

    def sync(self):
        """A hundred thousand changed records from one store to another, through a hub in a file."""
        log = self.event_log(SYNCED)
        first, second, hub = self.work / "first.db", self.work / "second.db", self.work / "hub.db"
        push, pull = [], []
        for _ in range(self.rounds + 1):
            for path in (first, second, hub):
                remove_store(path)
            self.import_events(first, log)
            self.command("store", "init", "--store", second)
            self.command("hub", "init", hub)
            push.append(self.command("sync", "--store", first, "--hub", hub, "--quiet"))
            pull.append(self.command("sync", "--store", second, "--hub", hub, "--quiet"))
        self.check("both stores hold the same", self.digest(first) == self.digest(second))
        for what, runs in (("push", push[1:]), ("pull", pull[1:])):
            rate = SYNCED / median(runs)
            memory = max(one.memory for one in runs)
            self.table.add(
                f"sync 100,000 records, {what}", f"{rate:,.0f}/s", "", "", "≥ 50,000/s", rate >= 50_000, memory
            )
        for path in (first, second, hub):
            remove_store(path)

    def empty_sync(self, store):
        hub = self.work / "hub.db"
        remove_store(hub)
        self.command("hub", "init", hub)
        self.command("sync", "--store", store, "--hub", hub, "--quiet")
        runs = [self.command("sync", "--store", store, "--hub", hub, "--quiet") for _ in range(max(10, self.rounds))]
        milliseconds = median(runs) * 1000
        self.table.add(
            "sync of 1,000,000 records when nothing changed", f"{milliseconds:.1f} ms", "", "", "≤ 20 ms",
            milliseconds <= 20, max(one.memory for one in runs),
        )
        remove_store(hub)


def duckdb_does(database, action, path):
    """The ids are text, as in any event log; DuckDB would guess here that all are UUIDs, which ours are not bound to be."""
    import duckdb

    begin = time.perf_counter()
    connection = duckdb.connect(database)
    if action == "import":
        read = f"SELECT * REPLACE (id::VARCHAR AS id) FROM read_json('{path}', format = 'newline_delimited')"
        exists = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'event'").fetchone()[0]
        if not exists:
            connection.execute(f"CREATE TABLE event AS {read} LIMIT 0")
            connection.execute("ALTER TABLE event ADD PRIMARY KEY (id)")
        connection.execute(f"INSERT OR IGNORE INTO event {read}")
    else:
        connection.execute(f"COPY event TO '{path}' (FORMAT json)")
    connection.close()
    return time.perf_counter() - begin


if __name__ == "__main__":
    _, _, database, action, path = sys.argv
    print(duckdb_does(database, action, path))
