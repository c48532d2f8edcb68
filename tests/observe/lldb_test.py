#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lldb shows every parked fiber as a thread, in a process and in its core file. Both were built with -g.

usage: lldb_test.py PROGRAM SCRIPT
"""

import os
import re
import subprocess
import sys

from gdb_test import has, in_a_core_file, in_a_process

PATIENCE = 300


def lldb(commands, *target):
    words = ["lldb-19", "--no-lldbinit", "--batch"]
    for command in commands:
        words += ["-o", command]
    process = subprocess.run([*words, *target], text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return process.stdout


def look(fiber, script, *target):
    text = lldb([f"command script import {script}", "fibers", "bt all"], *target)
    lists, _, stacks = text.partition("(lldb) bt all")
    has(lists, rf'^  fiber {fiber["parked"]} "parked" waiting: suspend; spun at .*gdb_program.cpp:\d+, thread #\d+$')
    has(lists, rf'^  fiber {fiber["awaiting"]} waiting: await of fiber {fiber["parked"]} "parked"; spun at')
    has(lists, rf'^  fiber {fiber["locking"]} waiting: lock of a mutex 0x[0-9a-f]+, held by fiber '
        rf'{fiber["holding"]}; spun at')
    # They have no registers of their own: one has not run, the other runs.
    has(lists, rf'^  fiber {fiber["fresh"]} "fresh" runnable; spun at .*:\d+$')
    has(lists, rf'^\* fiber {fiber["elsewhere"]} "elsewhere" waiting: suspend; spun at .*:\d+$')

    number = re.search(r'"parked" waiting: suspend.*, thread #(\d+)$', lists, re.MULTILINE)[1]
    stack = re.search(rf"^. thread #{number},?.*\n((?: +\*? ?frame #.*\n)+)", stacks, re.MULTILINE)
    if stack is None:
        sys.exit(f"no stack of thread {number} in:\n{text}")
    has(stack[1], *[r"frame #\d+: .*deep_inside.*gdb_program.cpp:\d+"] * 3, "main::|run_body|live")
    has(stacks, r"frame #\d+: .*in_no_call_of_motets")
    has(stacks, r"frame #\d+: .*live_elsewhere")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, script = (os.path.abspath(path) for path in sys.argv[1:])
    in_a_process(look, program, script)
    in_a_core_file(look, program, script, before_core=["-c"])


if __name__ == "__main__":
    main()
