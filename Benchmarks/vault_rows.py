"""The vault, measured against restic and borg. All three encrypt and compress; each has the same files to keep."""

import os
import random
import shutil

from event_rows import remove_store
from running import median, remove, run, take_turns

SMALL_FILES = 100_000
SMALL_BYTES = 4096
VAULT_MEMORY_BAR = 150  # MB


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def without(runs, opening):
    """The runs without what opening takes, most of which is deriving the key from the password."""
    return [one._replace(seconds=max(one.seconds - median(opening), 0.001)) for one in runs]


class VaultRows:
    """Rows of the table; mixed into the bench, which has `tool`, `data`, `work`, `rounds`, `table` and `check`."""

    def prepare_vaults(self):
        password = self.work / "password"
        password.write_text("correct horse battery staple\n")
        password.chmod(0o600)
        os.environ["BACKUP_TOOL_PASSWORD_FILE"] = os.environ["RESTIC_PASSWORD_FILE"] = str(password)
        os.environ["BORG_PASSPHRASE"] = password.read_text().strip()
        self.vault, self.restic, self.borg = (self.work / name for name in ("vault", "restic", "borg"))

    # -- what each is asked to do --------------------------------------------------------------------------------------

    def back_up(self, store, *options, allowed=(0,)):
        return self.command("vault", "backup", "--vault", self.vault, "--store", store, "--quiet", *options, allowed=allowed)

    def restic_run(self, *words, **options):
        return run(["restic", "-q", "-r", self.restic, *words], **options)

    def new_vault(self):
        remove(self.vault)
        self.command("vault", "init", "--vault", self.vault, "--quiet")

    def new_restic(self):
        remove(self.restic)
        self.restic_run("init")

    def new_borg(self, mode):
        remove(self.borg)
        run(["borg", "init", "-e", mode, self.borg])

    # -- the library with all the PDFs ---------------------------------------------------------------------------------

    def vault_of_pdfs(self):
        self.prepare_vaults()
        self.first_backup()
        self.unchanged("back up when nothing changed", self.store, self.layout, 0.25)
        self.read_again()
        self.check_data()
        self.restore_from_vault()
        self.some_changed()
        remove(self.vault, self.restic, self.borg)

    def first_backup(self):
        def ours():
            self.new_vault()
            return self.back_up(self.store)

        def restic():
            self.new_restic()
            return self.restic_run("backup", ".", folder=self.layout)

        def borg(mode):
            self.new_borg(mode)
            return run(["borg", "create", f"{self.borg}::first", "."], folder=self.layout)

        # The first two or three rounds also fetch memory from the virtual machine's host, until all contestants' files have some.
        rounds = max(9, self.rounds)
        runs = take_turns(ours, [restic, lambda: borg("repokey-blake2"), lambda: borg("repokey")], rounds)
        self.table.time("first backup, against restic", runs[0], runs[1], 0.3)
        self.table.time("first backup, against borg (BLAKE2)", runs[0], runs[2], 0.3)
        ratio = median(runs[0]) / median(runs[3])
        self.table.add(
            "the same, against borg (SHA-256)", f"{median(runs[0]):.3f} s", f"{median(runs[3]):.3f} s", f"{ratio:.3f}×", "", None
        )
        sizes = [size_of(self.vault), size_of(self.restic)]
        ratio = sizes[0] / sizes[1]
        self.table.add(
            "size of the vault, against restic", f"{sizes[0] / 1e6:.0f} MB", f"{sizes[1] / 1e6:.0f} MB",
            f"{ratio:.3f}×", "≤ 1.03×", ratio <= 1.03,
        )
        peak = max(one.memory for one in runs[0])
        self.table.add(
            "memory of a first backup, against restic", f"{peak:.0f} MB", f"{max(one.memory for one in runs[1]):.0f} MB",
            "", f"≤ {VAULT_MEMORY_BAR} MB", peak <= VAULT_MEMORY_BAR,
        )

    def unchanged(self, what, store, folder, bar):
        runs = take_turns(
            lambda: self.back_up(store),
            [
                lambda: self.restic_run("backup", ".", folder=folder),
                lambda: self.command("vault", "key", "list", "--vault", self.vault, "--quiet"),
                lambda: self.restic_run("key", "list"),
            ],
            # What is left of a few tenths of a second when most of it is taken away.
            3 * self.rounds,
        )
        self.table.time(what + ", key derivation not counted", without(runs[0], runs[2]), without(runs[1], runs[3]), bar)

    def read_again(self):
        runs = take_turns(
            lambda: self.back_up(self.store, "--force"),
            [lambda: self.restic_run("backup", "--force", ".", folder=self.layout)],
            self.rounds,
        )
        self.table.time("back up reading everything again", runs[0], runs[1], 0.5)

    def check_data(self):
        runs = take_turns(
            lambda: self.command("vault", "check", "--read-data", "--vault", self.vault, "--quiet"),
            [lambda: self.restic_run("check", "--read-data")],
            self.rounds,
        )
        self.table.time("check --read-data", runs[0], runs[1], 0.35)
        self.attempt("restic finds our vault sound", ["restic", "-q", "-r", self.vault, "check", "--read-data"])

    def restore_from_vault(self):
        target = self.work / "from-vault"

        def ours():
            remove(target)
            return self.command("restore", f"vault:{self.vault}", "--to", target, "--quiet")

        def restic():
            remove(target)
            return self.restic_run("restore", "latest", "--target", target)

        runs = take_turns(ours, [restic], self.rounds)
        self.table.time("restore from the vault", runs[0], runs[1], 0.4)
        remove(target)
        self.attempt("restic restores from our vault", ["restic", "-q", "-r", self.vault, "restore", "latest", "--target", target])
        self.attempt("and the files are the right ones", ["sha256sum", "--quiet", "-c", "SHA256SUMS"], folder=target / "library")
        remove(target)

    def some_changed(self):
        """Each round changes other files, in the store and in the peer's folder alike."""
        assets = self.work / "library.db.assets"
        pdfs = sorted(path.relative_to(assets) for path in assets.rglob("*.pdf"))
        events = self.event_log(100_000).read_text().splitlines(keepends=True)
        pick = random.Random(7)
        runs, added = [[], []], [0, 0]
        contestants = [
            (self.vault, lambda: self.back_up(self.store, allowed=(0, 3))),
            (self.restic, lambda: self.restic_run("backup", ".", folder=self.layout)),
        ]
        for number in range(self.rounds):
            self.add_records(events[number * 1000 : (number + 1) * 1000])
            for name in pick.sample(pdfs, len(pdfs) // 100):
                text = pick.randbytes(1000)
                overwrite_middle(assets / name, text)
                overwrite_middle(self.layout / name, text)
            for index, (folder, back_up) in enumerate(contestants):
                before = size_of(folder)
                runs[index].append(back_up())
                added[index] += size_of(folder) - before
                if index == 0:
                    self.take_lists()
        self.table.time("back up with 1 % of the PDFs changed and 1,000 new records", runs[0], runs[1], 0.4)
        ratio = added[0] / added[1]
        self.table.add(
            "what that added", f"{added[0] / self.rounds / 1e6:.1f} MB", f"{added[1] / self.rounds / 1e6:.1f} MB",
            f"{ratio:.3f}×", "≤ 1.1×", ratio <= 1.1,
        )

    def take_lists(self):
        """The peer keeps the lists of files, too, which change with every file."""
        for name in ("manifest.json", "SHA256SUMS"):
            text = run(["restic", "-q", "-r", self.vault, "dump", "latest", f"/library/{name}"], keep_output=True).output
            (self.layout / name).write_text(text)

    def add_records(self, lines):
        log, files = self.work / "more.jsonl", self.work / "files"
        log.write_text("".join(lines))
        self.command("events", "import", "--create", "--store", self.store, log, "--quiet")
        remove(files)
        kinds = "publications,notes,events,records,settings"
        self.command("export", "--store", self.store, "-o", files, "--format", "dir", "--only", kinds, "--quiet")
        shutil.copytree(files, self.layout, dirs_exist_ok=True)
        remove(files, log)

    # -- many small files ----------------------------------------------------------------------------------------------

    def vault_of_small_files(self):
        self.prepare_vaults()
        source, store = self.work / "small", self.work / "small-files.db"
        remove(source)
        make = random.Random(11)
        for number in range(SMALL_FILES):
            folder = source / f"{number // 1000:03}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number:06}.dat").write_bytes(make.randbytes(SMALL_BYTES))
        remove_store(store)
        self.command("store", "init", "--store", store)
        empty = self.work / "empty.bib"
        empty.write_text("")
        self.command("import", "--create", "--store", store, empty, "--attachments", source, "--quiet", allowed=(0, 3))

        def ours():
            self.new_vault()
            return self.back_up(store)

        def restic():
            self.new_restic()
            return self.restic_run("backup", ".", folder=source)

        runs = take_turns(ours, [restic], self.rounds)
        self.table.time(f"first backup of {SMALL_FILES:,} small attachments", runs[0], runs[1], 0.4)
        self.unchanged("the same unchanged", store, source, 0.25)
        remove_store(store)
        remove(source, self.vault, self.restic)


def overwrite_middle(path, text):
    with open(path, "r+b") as file:
        file.seek(max(0, path.stat().st_size // 2))
        file.write(text)
