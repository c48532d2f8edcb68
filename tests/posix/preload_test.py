#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Preloads motet-posix into a program with fibers, and into programs without.

usage: preload_test.py LIBRARY PROGRAM
"""

import os
import subprocess
import sys

LIBRARY, PROGRAM = sys.argv[1:]
# Programs without motet, and their input.
OTHERS = [
    (["cat"], "one\ntwo\n"),
    (["sh", "-c", "sleep 0.01; echo $((6 * 7)) | tr 4 5; exit 3"], ""),
    ([sys.executable, "-c", "import select, time; time.sleep(0.01); print(select.select([0], [], [], 1)[0], input())"], "line\n"),
    (["dd", "if=/dev/zero", "bs=100000", "count=3", "status=none"], ""),
]


def outcome(command, variables, text=""):
    result = subprocess.run(command, input=text, env=os.environ | variables, capture_output=True, text=True, timeout=50)
    return result.returncode, result.stdout, result.stderr


def main():
    preloaded = {"LD_PRELOAD": LIBRARY}
    cases = [({}, "one after the other"), (preloaded, "together"), (preloaded | {"MOTET_POSIX": "off"}, "one after the other"),
             (preloaded | {"MOTET_POSIX": "on"}, "together")]
    failures = 0
    for variables, expected in cases:
        actual = outcome([PROGRAM], variables)
        if actual != (0, expected + "\n", ""):
            print(f"with {variables}: {actual} instead of {expected!r}")
            failures += 1
    for command, text in OTHERS:
        without, with_library = outcome(command, {}, text), outcome(command, preloaded, text)
        if without != with_library:
            print(f"{command}: {with_library} with the library, {without} without")
            failures += 1
    sys.exit(1 if failures else 0)


main()
