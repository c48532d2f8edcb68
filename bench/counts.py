#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions per snooze, spin + await, deadline and read, as callgrind counts them. A clock is read
and a poll made as time passes, so the least of a few runs counts; nothing else differs between them.
Fails when one is more than 3 % above what is committed.

usage: counts.py PROGRAM [--update]
"""

import json
import pathlib
import re
import subprocess
import sys
import os

COMMITTED = pathlib.Path(__file__).with_name("counts.json")
TOLERANCE = 0.03
FEW, MANY = 5_000, 20_000
RUNS = 3
SUBJECTS = [("snooze", "libev"), ("spin_and_await", "libev"), ("deadline", "libev"),
            ("read", "libev"), ("read", "io_uring")]


def instructions(program, subject, backend, rounds):
    process = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, subject,
         str(rounds)],
        capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "MOTET_BACKEND": backend})
    match = re.search(r"Collected : (\d+)", process.stderr)
    if process.returncode != 0 or match is None:
        sys.exit(f"{subject} on {backend} failed:\n{process.stderr}")
    return int(match.group(1))


def least(program, subject, backend, rounds):
    return min(instructions(program, subject, backend, rounds) for _ in range(RUNS))


def main():
    program = sys.argv[1]
    counts = {}
    for subject, backend in SUBJECTS:
        many = least(program, subject, backend, MANY)
        few = least(program, subject, backend, FEW)
        counts[f"{subject} on {backend}"] = round((many - few) / (MANY - FEW), 1)
    if "--update" in sys.argv[2:]:
        COMMITTED.write_text(json.dumps(counts, indent=2) + "\n")
    committed = json.loads(COMMITTED.read_text())
    failure = False
    for name, count in counts.items():
        committed_count = committed[name]
        excess = count > committed_count * (1 + TOLERANCE)
        failure = failure or excess
        print(f"{name:28} {count:8.1f} instructions, committed {committed_count:8.1f}"
              + ("  MORE THAN 3 % ABOVE" if excess else ""))
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
