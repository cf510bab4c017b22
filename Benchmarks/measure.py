"""Runs one program and prints, as JSON, how it ended, how long it took and its peak memory in MB.

    python3 -S -E measure.py STDOUT STDERR PROGRAM [ARGUMENT…]

A process of its own, because the kernel counts the memory of whoever started a program as the program's: this one is
small, and stays so.
"""

import os
import sys
import time

out, err, *words = sys.argv[1:]
write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
actions = [
    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
    (os.POSIX_SPAWN_OPEN, 1, out, write, 0o600),
    (os.POSIX_SPAWN_OPEN, 2, err, write, 0o600),
]
begin = time.perf_counter()
child = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - begin
code = os.waitstatus_to_exitcode(status)
print('{"seconds": %.6f, "memory": %.1f, "code": %d}' % (seconds, usage.ru_maxrss / 1024, code))
