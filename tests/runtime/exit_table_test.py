#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How a process ends, from each place and by each way: what it returns and what it destroys.

usage: exit_table_test.py PROGRAM
"""

import concurrent.futures
import os
import signal
import subprocess
import sys

ANOTHER, OWN = ["~another"], ["~own"]
OTHERS_FIRST, OWN_FIRST = ANOTHER + OWN, OWN + ANOTHER
ABORTED = -signal.SIGABRT
WAYS = ["exit", "quick_exit", "failure", "main returns", "main exits"]

# In each place the fiber, or the function, that ends the process has a local, "own", and there is
# another fiber on its thread. exit() destroys only that one's locals, and those of no other thread;
# quick_exit() none; so with the failure that std::terminate() is called for. (Where main returns,
# or exits, the place waits.) Per way: exit code, and what is destroyed; None: it is a race.
TABLE = {
    "main": [(7, ANOTHER), (7, []), (ABORTED, []), (0, OWN_FIRST), (6, ANOTHER)],
    "run": [(7, ANOTHER), (7, []), (ABORTED, None), (0, OWN_FIRST), (6, ANOTHER)],
    "spun": [(7, ANOTHER), (7, []), (1, OTHERS_FIRST), (0, OTHERS_FIRST), (6, OTHERS_FIRST)],
    # run() throws what nobody was told of.
    "spun in run": [
        (7, ANOTHER), (7, []), (ABORTED, OTHERS_FIRST), (0, OTHERS_FIRST), (6, OTHERS_FIRST)],
    "posted": [(7, ANOTHER), (7, []), (1, OTHERS_FIRST), (0, OTHERS_FIRST), (6, [])],
    # The fiber that waits for the call is one of main's: exit() cancels it, and the call with it.
    "called": [(7, ANOTHER), (7, []), (1, OWN_FIRST), (0, OWN_FIRST), (6, OWN)],
    "pool": [(7, ANOTHER), (7, []), (1, OWN_FIRST), (0, OWN_FIRST), (6, None)],
    "thread": [(7, ANOTHER), (7, []), (1, OWN_FIRST), (0, OWN_FIRST), (6, [])],
    "plain thread": [(7, []), (7, []), (ABORTED, []), (0, None), (6, None)],
    "main fiber of a plain thread": [
        (7, ANOTHER), (7, []), (ABORTED, []), (0, None), (6, None)],
    "fiber of a plain thread": [(7, ANOTHER), (7, []), (1, OTHERS_FIRST), (0, []), (6, [])],
    # The other fiber is one of main's, which exit() elsewhere does not end.
    "offloaded": [(7, []), (7, []), (1, OTHERS_FIRST), (0, OTHERS_FIRST), (6, OTHERS_FIRST)],
    "offloaded with fibers": [
        (7, ANOTHER), (7, []), (1, OWN_FIRST), (0, OWN_FIRST), (6, OWN_FIRST)],
    # What it throws once its caller has left is destroyed there, perhaps too late.
    "offloaded and owned": [(7, []), (7, []), (0, None), (0, None), (6, None)],
    "abandoned": [(7, []), (7, []), (0, None), (0, None), (6, None)],
    "abroad": [(7, ANOTHER), (7, []), (1, OTHERS_FIRST), (0, OTHERS_FIRST), (6, OWN)],
    "foreign loop": [(7, []), (7, []), (1, None), (0, None), (6, None)],
}

HEARD = "heard by nobody"


def problem(program, place, way, code, destroyed):
    """Returns what is wrong, or None."""
    cell = f"{place}, {way}"
    environment = dict(os.environ)
    if "exit" in way:  # frames are left as they are, with what they own
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    try:
        process = subprocess.run(
            [program, place, way], capture_output=True, text=True, timeout=20, env=environment)
    except subprocess.TimeoutExpired:
        return f"{cell}: does not end"
    complaint = HEARD if way == "failure" and code != 0 else ""
    if process.returncode != code:
        return f"{cell}: exit code {process.returncode}, not {code}: {process.stderr}"
    if destroyed is not None and process.stdout.splitlines() != destroyed:
        return f"{cell}: destroyed {process.stdout.splitlines()}, not {destroyed}"
    if complaint not in process.stderr or (not complaint and process.stderr):
        return f"{cell}: complained {process.stderr!r}, not {complaint!r}"
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cells = [(place, way, *expectation) for place, row in TABLE.items()
             for way, expectation in zip(WAYS, row, strict=True)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        complaints = list(filter(None, pool.map(lambda cell: problem(sys.argv[1], *cell), cells)))
    print(*complaints, sep="\n")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
