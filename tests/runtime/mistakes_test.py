#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each mistake of docs/gotchas.md is told clearly: runs the programs of mistakes.cpp.

usage: mistakes_test.py PROGRAM
"""

import re
import signal
import subprocess
import sys

# Of each program: how it ends (None: in whatever way), and what its output and its errors contain.
ENDS = {
    "std_mutex_across_a_switch": (0, r"has held thread \d+ for \d+ ms: it is blocked in futex\(\)"),
    "sleep_of_the_thread": (0, r"has held thread \d+ for \d+ ms: it is blocked in clock_nanosleep\(\)"),
    "local_on_two_threads": (0, r"a motet::local object is used on a second thread"),
    "forgotten_await": (-signal.SIGABRT, r"nobody asked"),
    "thrown_int": (0, r"an int: 42"),
    "handle_of_nothing": (0, r"the fiber handle is empty"),
    "handle_after_the_end": (0, r"^1\n1\n$"),
    "unclosed_channel": (0, r"every fiber of this thread waits(.|\n)*fiber 2 waiting: pop from a channel"),
    "two_locks": (0, r"fiber 2 waiting: lock of a mutex \w+, held by fiber 3(.|\n)*"
                     r"fiber 3 waiting: lock of a mutex \w+, held by fiber 2"),
    "deep_recursion": (None, r'fiber \d+ "deep", spun at \S+:\d+, has overflowed its stack of \d+ bytes; '
                             r"spin_options.stack_size gives it more"),
    "switch_in_a_handler": (-signal.SIGABRT, r"within the no_switch_guard made at \S+mistakes.cpp:\d+"),
    "nested_run": (0, r"this thread already has a runtime"),
    "fork_in_the_middle": (0, r"await\(\): the fiber will never end, because its thread is gone"),
    "left_at_the_end": (0, r"its parent has ended"),
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, (status, messages) in ENDS.items():
        result = subprocess.run([sys.argv[1], name], capture_output=True, text=True, timeout=50)
        # The note is of the machine and not of the mistake: `motet_auto` writes it where io_uring is refused.
        output = result.stdout + re.sub(r"motet: io_uring is refused here.*\n", "", result.stderr)
        assert status is None or result.returncode == status, (name, result)
        assert re.search(messages, output), (name, output)
        assert "not reached" not in output, (name, output)


if __name__ == "__main__":
    main()
