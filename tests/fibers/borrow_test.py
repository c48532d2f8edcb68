#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What may borrow a local: runs each case of borrow_programs, which was built with AddressSanitizer.

usage: borrow_test.py PROGRAM
"""

import os
import re
import subprocess
import sys

# A local that fibers use for longer than it lives.
WRONG = "borrow_in_free_spin"
REPORT = re.compile("AddressSanitizer: stack-use-after-(return|scope)")

# How often the local is used when: a borrower fails; the owner throws before the borrowers have
# run, and when they wait; the owner is cancelled. In a group what is captured uses it, too.
CLEAN = {
    "borrow_in_group": ["8", "4", "8", "8"],
    "borrow_in_await_all": ["4", "0", "4", "4"],
    "borrow_in_await_any": ["4", "0", "4", "4"],
    "borrow_in_first_value": ["4", "0", "4", "4"],
}


def run(program, name):
    environment = dict(os.environ)
    options = environment.get("ASAN_OPTIONS", "")
    environment["ASAN_OPTIONS"] = f"{options}:detect_stack_use_after_return=1"
    return subprocess.run(
        [program, name], capture_output=True, text=True, timeout=20, env=environment)


def problems(program):
    result = run(program, WRONG)
    if result.returncode == 0 or not REPORT.search(result.stderr):
        yield f"{WRONG}: not reported, but {result.returncode}: {result.stderr}"
    for name, uses in CLEAN.items():
        right = run(program, name)
        if right.returncode != 0 or right.stderr:
            yield f"{name}: exit code {right.returncode}: {right.stderr}"
        elif right.stdout.split() != uses:
            yield f"{name}: used {right.stdout.split()} times, not {uses}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    complaints = list(problems(sys.argv[1]))
    print(*complaints, sep="\n")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
